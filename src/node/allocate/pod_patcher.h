/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes into pods' annotations what the node has decided: the placement that it gave, and that the
 * slices are given out (`assigned`). The caller does not wait: a patch that fails is tried again
 * until it is written or the pod is gone. Each patch carries the pod's UID, so that it never
 * changes a later pod of the same name. */

#include "kube/client.h"
#include "node/records/roster.h"

typedef struct PodPatcher PodPatcher;

/* Client and roster outlive it. 0 or -ENOMEM. */
int pod_patcher_new(KubeClient *client, Roster *roster, PodPatcher **ret);
PodPatcher *pod_patcher_free(PodPatcher *p);

/* Writes every system key by the pod's placement, with `assigned` false. */
void pod_patcher_place(PodPatcher *p, const RosterPod *pod);

/* Writes `assigned` as true, unless the annotations say so already. */
void pod_patcher_assign(PodPatcher *p, const RosterPod *pod);

/* Writes every system key by the pod's placement, with `assigned` true, and removes keys that the
 * placement does not need. */
void pod_patcher_restore(PodPatcher *p, const RosterPod *pod);

/* a patch of the pod is not written yet */
bool pod_patcher_is_pending(const PodPatcher *p, const RosterPod *pod);
/* pods with patches that are not written yet */
size_t pod_patcher_waiting(const PodPatcher *p);
