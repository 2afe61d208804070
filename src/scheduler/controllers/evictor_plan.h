/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses where the evictor frees cards for a pod: on the node with the cheapest victims
 * (victims.h). The candidates are the nodes where the pod is refused for its cards alone, to which
 * no pod is nominated, and of units of the pod's ResourcePolicy that have room. Reads the view and
 * changes nothing. */

#include "scheduler/question/unsettled.h"
#include "scheduler/view/view.h"

typedef struct EvictorPlan {
        LedgerNode *node;    /* NULL: on no node can cards be freed */
        VictimChoice choice; /* the victims on that node */
        bool fits;           /* the pod fits on some node already: kube-scheduler will find it */
        bool blocked;        /* it would fit on some node if no PodDisruptionBudget forbade it */
        /* The cheapest victims once the gangs' planned cards are settled. */
        Unsettled later;
} EvictorPlan;

/* Makes the plan for pod w from the nodes in w->nodes. w->priority must be that of the watch.
 * request: of that pod. steps: what is left of the search for victims, for this and other plans
 * together. Returns 0 with *ret, and its data live as long as the arena, or -ENOMEM. */
int evictor_plan_make(const View *v, const PendingPod *w, const Request *request, uint64_t *steps,
                      Arena *arena, EvictorPlan *ret);
