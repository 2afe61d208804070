/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Evicts pods of lower priority where kube-scheduler never preempts: where the sums of a node have
 * room for a pod, and no card has. kube-scheduler's dry run spares every pod there ("expected at
 * least one victim pod on node"), so that no extender is asked. Off unless the administrator says
 * otherwise; only the leader evicts.
 *
 * A pod gets a try when its last filter call was answered with no node, at least one node was
 * refused for its cards alone, its preemptionPolicy is not Never, and kube-scheduler has not
 * nominated it within WAITER_DELAY. Priority and policy are those of the watch. The node is the one
 * whose victims are the cheapest (victims.h), among those nodes to which no pod is nominated, and
 * of pods that the Eviction API evicts.
 *
 *     idle -> evicting     the place is held (hold.h), and the victims are evicted one after the other
 *     evicting -> draining all of them accepted; their grants are still there
 *              -> idle     a 429 of a PodDisruptionBudget, or another failure; the pod no longer waits; the place is lost
 *     draining -> keeping  the last victim's grant is gone, and the node holds none of its slices: the card is free
 *     keeping -> draining  the node says that processes of a victim still hold its slices
 *     draining, keeping -> idle   the pod is bound, or gone, or time is up, or the place is lost
 *
 * After each try that ends without the pod being bound, the pod waits longer for its next one.
 *
 * One try at a time in the cluster: the next begins when this one is idle again. A restart, and a
 * change of the leader, end the try and the hold; victims that were evicted stay evicted. */

#include "kube/api.h"
#include "scheduler/metrics.h"
#include "scheduler/view.h"
#include "scheduler/waiters.h"

#define EVICTOR_KEEP  (60 * USEC_PER_SEC)  /* the free card is kept for its pod */
#define EVICTOR_DRAIN (600 * USEC_PER_SEC) /* longer grace is not waited for */

typedef struct Evictor Evictor;

typedef struct EvictorOptions {
        KubeClient *client; /* these outlive the evictor; the view is freed after it */
        View *view;
        Metrics *metrics;
        KubeEventRecorder *recorder;                /* NULL: no Events */
        const char *(*may_not_act)(void *userdata); /* NULL or why not: the leader alone acts. NULL: always */
        void *userdata;
} EvictorOptions;

int evictor_new(const EvictorOptions *options, Evictor **ret); /* 0 or -ENOMEM */
Evictor *evictor_free(Evictor *e);

/* For filter and preempt. */
Waiters *evictor_waiters(Evictor *e);

/* One look at the try, or else at one waiter, at this time. A timer of the evictor does it several
 * times a second while there is something to do, and at once while more waiters are due. Returns
 * whether there is something to do. */
bool evictor_step(Evictor *e, usec_t now);

const char *evictor_state(const Evictor *e); /* its name: "idle", "evicting", "draining", "keeping" */

DEFINE_CLEANUP(Evictor *, evictor_free)
