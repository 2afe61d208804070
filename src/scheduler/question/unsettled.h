/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* preempt and the evictor put a decision off if cheaper victims, or none, will do once the gangs
 * have settled. They have settled when planned cards are given back, and when the watch shows
 * members bound, which may then be victims. For one pod this takes GANGS_ATTEMPT at most. */

#include "scheduler/question/pending.h"
#include "scheduler/question/victims.h"

/* Whether a decision about the pod may still be put off. The time begins with the first call for
 * this pod; another gang does not extend it. */
bool unsettled_may_wait(PendingPod *pod, usec_t now);

/* The cheapest victims when all has settled; any: there are some. */
typedef struct Unsettled {
        bool any;
        VictimCost cost;
} Unsettled;

void unsettled_add(Unsettled *u, const VictimCost *cost);

/* Whether those are cheaper than today's victims; today NULL: no victims would do now. */
bool unsettled_is_cheaper(const Unsettled *u, const VictimCost *today);

/* The grants of gangs on a node that have not settled; in the arena. */
typedef struct UnsettledGrants {
        const Grant **plans; /* planned grants; the array has room for `more` behind them */
        size_t n_plans;
        /* members being bound; of their profiles only the priority is known, so their start makes
         * no set cheaper */
        VictimSoon *soon;
        size_t n_soon;
} UnsettledGrants;

/* Collects them for the node. Returns 0 or -ENOMEM. */
int unsettled_grants(const View *v, const LedgerNode *node, size_t more, Arena *arena, UnsettledGrants *ret);
