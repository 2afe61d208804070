/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small questions of isolation and of the audits: which card, which container, and what that was
 * given of it. */

#include "node/kubelet/owner.h"
#include "node/records/inventory.h"
#include "node/records/records.h"
#include "node/records/roster.h"

enum { GIVEN_NAME_SIZE = 64 }; /* of a container's name, with its NUL */

/* NULL: none of this machine's. */
const MachineCard *given_card(const Inventory *v, const char *uuid);
const MachineCard *given_card_at(const Inventory *v, uint32_t index);

/* The container that the process is of; NULL: it is not known, or the pod (NULL too) is not. */
const char *given_container(const RosterPod *pod, const ProcessOwner *owner);

/* A pod of this node, or what is left of one. A cgroup may have any name. */
bool given_is_ours(const Roster *roster, const Records *records, const ProcessOwner *owner);

/* It says CGPU_DISABLE; whether that is honoured is the caller's to know. */
bool given_is_open(const RosterPod *pod, const char *container);

uint32_t given_units(const DeviceSet *set, uint32_t card); /* devices of one card */
