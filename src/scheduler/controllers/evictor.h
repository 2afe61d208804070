/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Evicts pods of lower priority where kube-scheduler never preempts: the summed resources of a node
 * suffice for a pod, but no single card does. kube-scheduler's dry run then spares every pod there
 * ("expected at least one victim pod on node"), so that it does not call the extender's preempt
 * verb. The evictor is off unless the administrator turns it on, and only the leader evicts.
 *
 * A pod gets a try when its last filter call was answered with no node, and at least one node was
 * refused for its cards alone. Its preemptionPolicy must not be Never, and kube-scheduler must not
 * have nominated it within PENDING_DELAY. Priority and policy are those of the watch. The evictor
 * takes the node with the cheapest victims (victims.h). Nodes to which a pod is nominated are left
 * out, and so are pods that the Eviction API does not evict.
 *
 *     idle -> evicting      the cards are held (hold.h); the victims are evicted one after another
 *     evicting -> draining  all evictions were accepted; the victims' grants are still there
 *              -> idle      a 429 of a PodDisruptionBudget, or another failure; the pod no longer
 *                           waits; the hold is lost
 *     draining -> keeping   the last victim's grant is gone, and the node holds none of its slices:
 *                           the card is free
 *     keeping -> draining   the node says that processes of a victim still hold its slices
 *     draining, keeping -> idle   the pod is bound, or gone; time is up; the hold is lost
 *
 * While the pod that is next waits for a gang (unsettled.h), no other pod gets a try.
 *
 * After each try that ends without the pod being bound, the pod waits longer for its next one.
 * There is one try at a time in the cluster: the next begins when this one is idle again. A
 * restart, and a change of the leader, end the try and the hold; victims that were evicted stay
 * evicted. */

#include "kube/api.h"
#include "scheduler/question/scheduler_context.h"

#define EVICTOR_KEEP  (60 * USEC_PER_SEC)  /* the free card is kept for its pod */
#define EVICTOR_DRAIN (600 * USEC_PER_SEC) /* longest wait for the victims' end; then the try ends */

typedef struct Evictor Evictor;

/* context and its view outlive the evictor. Returns 0 or -ENOMEM. */
int evictor_new(SchedulerContext *context, Evictor **ret);
Evictor *evictor_free(Evictor *e);

/* Goes on with the try at this time, or else considers one waiting pod. Returns whether there is
 * more to do. A timer calls it several times a second while there is, and at once while more pods
 * are due. */
bool evictor_step(Evictor *e, usec_t now);

/* The name of its state: "idle", "evicting", "draining", "keeping". */
const char *evictor_state(const Evictor *e);

DEFINE_CLEANUP(Evictor *, evictor_free)
