/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the pods of one node that would have to go so that a pod finds its cards: the cheapest set
 * of pods of lower priority. Pure: it reads the ledger, the profiles and the budgets, and changes
 * nothing.
 *
 * Sets are compared as kube-scheduler compares nodes (framework/preemption,
 * pickOneNodeForPreemption), by the first of these that differs:
 *
 *   - fewest violated PodDisruptionBudgets;
 *   - lowest highest priority;
 *   - lowest sum of priorities, each counted from the lowest possible one;
 *   - fewest pods;
 *   - latest start of the earliest started among those of the highest priority.
 *
 * The search is exact while at most VICTIMS_EXACT pods are candidates: on one card for a request of
 * one card, on the node for a request of several. With more it ends after VICTIMS_STEPS with the
 * best set found so far.
 *
 * That set is never worse than the one of kube-scheduler's own way, which spares one pod after the
 * other as long as the pod still fits. It spares first pods that would violate a budget, then the
 * most important ones. From such a set no pod can be spared; and if no budget is violated, no other
 * set has a lower highest priority. */

#include "scheduler/view/budgets.h"
#include "scheduler/view/profiles.h"
#include "share/placement.h"

enum {
        VICTIMS_E_NONE = 1, /* no set of candidates makes room */
        /* by_eviction: a set makes room, and each has a pod that the Eviction API refuses. */
        VICTIMS_E_BUDGETS,
        VICTIMS_EXACT = 12,
        VICTIMS_STEPS = 1 << (VICTIMS_EXACT + 1), /* all sets of VICTIMS_EXACT pods */
};

typedef struct VictimCost {
        int64_t violations, highest, sum, number, start;
} VictimCost;

/* Negative when a is the better one. */
int victim_cost_compare(const VictimCost *a, const VictimCost *b);

/* Comparison of Profiles for qsort(): more important pods first, as MoreImportantPod of
 * kube-scheduler has it. Higher priority comes first, then earlier start, then UID, so that the
 * same question has the same answer. */
int victim_compare(const void *a, const void *b); /* of const Profile *const * */

/* A pod that will be a candidate when the watch shows it bound (unsettled.h). */
typedef struct VictimSoon {
        const Grant *grant;
        Profile profile;
} VictimSoon;

typedef struct VictimQuestion {
        const LedgerNode *node;
        const Profiles *profiles;
        const Budgets *budgets;
        const Request *request;
        int64_t priority;  /* of the pod that needs cards */
        const Grant *hold; /* the hold of that pod; NULL: none */
        /* Requests of pods nominated to this node that come before this one. They are placed first,
         * as far as they fit. */
        const Request *const *first;
        size_t n_first;
        const Grant *const *gone; /* grants that count as gone, besides those of pods being deleted */
        size_t n_gone;
        const VictimSoon *soon; /* further candidates, as if they had a profile */
        size_t n_soon;
        /* The victims will be evicted by the Eviction API: pods that it refuses are no
         * candidates. */
        bool by_eviction;
        /* Steps left of the search, for this and other questions. At 0 only kube-scheduler's way is
         * tried. */
        uint64_t *steps;
} VictimQuestion;

typedef struct VictimChoice {
        const Profile **pods; /* most important first; in the arena */
        size_t n;             /* 0: it fits as soon as the pods that count as gone are gone */
        VictimCost cost;
        Placement placement; /* the pod's cards then; in the arena */
} VictimChoice;

/* Returns 0 with *ret, VICTIMS_E_NONE, VICTIMS_E_BUDGETS or -ENOMEM. */
int victims_choose(const VictimQuestion *q, Arena *arena, VictimChoice *ret);

/* Computes what this set costs, and sorts pods. Returns 0 or -ENOMEM. */
int victims_cost(const Budgets *budgets, const Profile **pods, size_t n, Arena *arena, VictimCost *ret);
