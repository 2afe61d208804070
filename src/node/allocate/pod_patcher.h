/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes into pods' annotations what the node has decided: the place it gave, and that the slice is
 * given out. Nobody waits for it: what cannot be written is tried again until it is, or the pod is
 * gone. Each patch carries the pod's UID, so that it never hits a later pod of the same name. */

#include "kube/client.h"
#include "node/records/roster.h"

typedef struct PodPatcher PodPatcher;

int pod_patcher_new(KubeClient *client, Roster *roster, PodPatcher **ret); /* 0 or -ENOMEM */
PodPatcher *pod_patcher_free(PodPatcher *t);                               /* before its client */

void pod_patcher_place(PodPatcher *t,
                       const RosterPod *pod); /* every system key by its place, not assigned yet */
void pod_patcher_assign(PodPatcher *t,
                        const RosterPod *pod); /* the slices are given out; a no-op when that stands there */

/* Every system key as the node's books have it, with keys that do not belong there removed, and
 * assigned. */
void pod_patcher_restore(PodPatcher *t, const RosterPod *pod);
bool pod_patcher_is_pending(const PodPatcher *t,
                            const RosterPod *pod); /* a patch of it is under way, or waits */

size_t pod_patcher_waiting(const PodPatcher *t); /* patches that are not written yet */

DEFINE_CLEANUP(PodPatcher *, pod_patcher_free)
