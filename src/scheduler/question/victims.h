/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pods of one node would have to go so that a pod finds its cards: the cheapest set of pods
 * of lower priority. Pure: it reads the ledger, the profiles and the budgets, and changes nothing.
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
 * The search is exact where at most VICTIMS_EXACT pods come into question: on one card for a
 * request of one card, on the node for a request of several. Beyond that it ends after a number of
 * steps with the best set found so far.
 *
 * That set is never worse than the one of kube-scheduler's own way, which spares one pod after the
 * other as long as the pod still fits. Pods that would violate a budget are spared first, then the
 * most important ones. In such a set no pod can be spared, and without violated budgets no other
 * set has a lower highest priority. */

#include "scheduler/view/budgets.h"
#include "scheduler/view/profiles.h"
#include "share/placement.h"

enum {
        VICTIMS_E_NONE = 1, /* no set of pods that may go makes room */
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

/* For qsort(), most important first. Pods of equal priority are ordered by start: the earlier one
 * is more important (MoreImportantPod of kube-scheduler). Equal ones are ordered by UID, so that
 * the same question has the same answer. */
int victim_compare(const void *a, const void *b); /* of const Profile *const * */

/* A pod that will come into question when the watch shows it bound (unsettled.h). */
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
        /* Of pods nominated to this node that come before this one. Those that fit are placed
         * first. */
        const Request *const *first;
        size_t n_first;
        const Grant *const *gone; /* these count as gone, as do pods that are being deleted */
        size_t n_gone;
        const VictimSoon *soon; /* these come into question like pods with a profile */
        size_t n_soon;
        /* The victims are evicted by the Eviction API: only pods that it evicts come into
         * question. */
        bool by_eviction;
        /* Steps left for this and other questions together. At 0 the exact search is left out. */
        uint64_t *steps;
} VictimQuestion;

typedef struct VictimChoice {
        const Profile **pods; /* most important first; in the arena */
        size_t n;             /* 0: it fits as soon as the pods that count as gone are gone */
        VictimCost cost;
        Placement placement; /* the cards of the pod then; in the arena */
} VictimChoice;

/* 0, VICTIMS_E_NONE, VICTIMS_E_BUDGETS or -ENOMEM. */
int victims_choose(const VictimQuestion *q, Arena *arena, VictimChoice *ret);

/* What this set costs; pods is sorted in place. 0 or -ENOMEM. */
int victims_cost(const Budgets *budgets, const Profile **pods, size_t n, Arena *arena, VictimCost *ret);
