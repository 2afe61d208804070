/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the evictor frees cards for a pod: the node with the cheapest victims (victims.h). The
 * candidates are the nodes where the pod is refused for its cards alone, and to which no pod is
 * nominated. Reads the view and changes nothing. */

#include "scheduler/question/unsettled.h"
#include "scheduler/view/view.h"

typedef struct EvictorPlan {
        LedgerNode *node;    /* NULL: on no node can cards be freed */
        VictimChoice choice; /* there */
        bool fits;           /* fits on some node already: kube-scheduler will find it */
        bool blocked;        /* would fit on some node, but for a PodDisruptionBudget */
        Unsettled later;
} EvictorPlan;

/* w->nodes, and w->priority, which must be that of the watch. request: of that pod. steps: left of
 * the search, for this and other plans together. Returns 0 and *ret, which lives as long as the
 * arena, or -ENOMEM. */
int evictor_plan_make(const View *v, const PendingPod *w, const Request *request, uint64_t *steps,
                      Arena *arena, EvictorPlan *ret);
