/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one try of the evictor needs of the pod, its node and its victims, as copies: the pods may
 * go while the try lasts. */

#include "scheduler/controllers/evictor_plan.h"

typedef struct EvictorPod {
        Str namespace_, name, uid;
} EvictorPod;

typedef struct EvictorTry {
        Arena arena; /* of all texts and of `victims` */
        Str namespace_, name, uid, node;
        int64_t priority;
        EvictorPod *victims;
        size_t n, next; /* next: the victim whose eviction is under way */
        usec_t until;   /* in draining and keeping */
        usec_t drained; /* draining ends here at the latest */
        char cards[64]; /* for people: "gpu1", "gpu0, gpu2" */
} EvictorTry;

/* Fills an empty try. Victims with a PodDisruptionBudget come first: when their eviction is
 * refused, no other pod has been evicted in vain. 0 or -ENOMEM; call evictor_try_done() in any
 * case. */
int evictor_try_copy(EvictorTry *t, const Budgets *budgets, const PendingPod *w, const EvictorPlan *plan);
void evictor_try_done(EvictorTry *t); /* makes it empty */

/* Whether the cards of all victims are free: their grants on the node are gone, and so are the
 * processes that the agent names as holding their slices. */
bool evictor_try_is_drained(const EvictorTry *t, const View *v);
