/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One try of the evictor: the pod, its node and its victims, copied because the pods may go while
 * the try lasts. */

#include "scheduler/controllers/evictor_plan.h"

typedef struct EvictorPod {
        Str namespace_, name, uid;
} EvictorPod;

typedef struct EvictorTry {
        Arena arena; /* owns all texts and `victims` */
        Str namespace_, name, uid, node;
        int64_t priority;
        EvictorPod *victims;
        size_t n, next; /* next: index of the victim that is being evicted */
        usec_t until;   /* when the state draining or keeping ends at the latest */
        usec_t drained; /* when draining ends at the latest, also after keeping has gone back to it */
        char cards[64]; /* for people: "gpu1", "gpu0, gpu2" */
} EvictorTry;

/* Fills an empty try from the plan. Victims with a PodDisruptionBudget are first: if the eviction
 * of one is refused, no other pod has been evicted in vain. Returns 0 or -ENOMEM; call
 * evictor_try_done() in any case. */
int evictor_try_copy(EvictorTry *t, const Budgets *budgets, const PendingPod *w, const EvictorPlan *plan);
void evictor_try_done(EvictorTry *t); /* frees its texts and empties it */

/* Whether the cards of all victims are free: the watch has removed their grants on the node, and
 * the agent reports no slice of theirs that processes still hold. */
bool evictor_try_is_drained(const EvictorTry *t, const View *v);
