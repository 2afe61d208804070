/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes into pods' annotations what the node has decided: the place it gave, and that the slice is
 * given out. Nobody waits for it: what cannot be written is tried again until it is, or the pod is
 * gone. Each patch carries the pod's UID, so that it never hits a later pod of the same name. */

#include "kube/client.h"
#include "node/records/roster.h"

typedef struct Teller Teller;

int teller_new(KubeClient *client, Roster *roster, Teller **ret); /* 0 or -ENOMEM */
Teller *teller_free(Teller *t);                                   /* before its client */

void teller_place(Teller *t, const RosterPod *pod); /* every system key by its place, not assigned yet */
void teller_assigned(Teller *t,
                     const RosterPod *pod); /* the slices are given out; a no-op when that stands there */

/* Every system key as the node's books have it, with keys that do not belong there removed, and
 * assigned. */
void teller_restore(Teller *t, const RosterPod *pod);
bool teller_is_telling(const Teller *t, const RosterPod *pod); /* a patch of it is under way, or waits */

size_t teller_waiting(const Teller *t); /* patches that are not written yet */

DEFINE_CLEANUP(Teller *, teller_free)
