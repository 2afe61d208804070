/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* preempt and the evictor wait while cheaper victims, or none, would do when all is settled. Then
 * gangs have given planned cards back, and the watch shows members bound, which may be victims.
 * They wait GANGS_ATTEMPT for one pod at the most. */

#include "scheduler/question/pending.h"
#include "scheduler/question/victims.h"

/* Whether the time of the pod has not passed. It begins with the first call for this pod, and no
 * second gang begins it again. */
bool unsettled_may_wait(PendingPod *pod, usec_t now);

/* The cheapest victims once all is settled. */
typedef struct Unsettled {
        bool any;
        VictimCost cost;
} Unsettled;

void unsettled_add(Unsettled *u, const VictimCost *cost);

/* Whether they are cheaper than those of today; NULL: today none would do. */
bool unsettled_is_cheaper(const Unsettled *u, const VictimCost *today);

/* What is not settled on a node; in the arena. */
typedef struct UnsettledGrants {
        const Grant **plans; /* with room for `more` behind them */
        size_t n_plans;
        VictimSoon *soon; /* only their priority is known: their start makes none cheaper */
        size_t n_soon;
} UnsettledGrants;

/* 0 or -ENOMEM. */
int unsettled_grants(const View *v, const LedgerNode *node, size_t more, Arena *arena, UnsettledGrants *ret);
