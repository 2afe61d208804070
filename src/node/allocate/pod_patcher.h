/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes into pods' annotations what the node has decided: the place that it gave, and that the
 * slices are given out. The caller does not wait: a patch that fails is tried again until it is
 * written or the pod is gone. Each patch carries the pod's UID, so that it never changes a later
 * pod of the same name. */

#include "kube/client.h"
#include "node/records/roster.h"

typedef struct PodPatcher PodPatcher;

/* Client and roster outlive it. 0 or -ENOMEM. */
int pod_patcher_new(KubeClient *client, Roster *roster, PodPatcher **ret);
PodPatcher *pod_patcher_free(PodPatcher *p);

/* Writes every system key as the pod's place asks, not assigned yet. */
void pod_patcher_place(PodPatcher *p, const RosterPod *pod);

/* Writes that the slices are given out, unless the annotations say so already. */
void pod_patcher_assign(PodPatcher *p, const RosterPod *pod);

/* Writes every system key as the node's records have it, assigned, and removes keys that the place
 * does not need. */
void pod_patcher_restore(PodPatcher *p, const RosterPod *pod);

bool pod_patcher_is_pending(const PodPatcher *p, const RosterPod *pod); /* a patch of it is not written */
size_t pod_patcher_waiting(const PodPatcher *p);                        /* patches that are not written */
