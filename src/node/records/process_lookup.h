/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod and container of this node a process belongs to, by its cgroup. */

#include "node/kubelet/process_owner.h"
#include "node/records/records.h"
#include "node/records/roster.h"

enum { PROCESS_LOOKUP_NAME_SIZE = 64 }; /* bytes of a container's name, with its NUL */

/* The name of the process's container; NULL when it is not known or pod is NULL. */
const char *process_lookup_container(const RosterPod *pod, const ProcessOwner *owner);

/* Whether the UID is that of a pod of this node, or of one that left a record. A cgroup may have
 * any name. */
bool process_lookup_is_ours(const Roster *roster, const Records *records, const ProcessOwner *owner);
