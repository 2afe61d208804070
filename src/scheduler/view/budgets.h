/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodDisruptionBudgets of policy/v1: how many more pods of a kind may be disrupted. */

#include "scheduler/view/profiles.h"

typedef struct Budget Budget;

typedef struct Budgets {
        Budget *by_name; /* "namespace/name" */
} Budgets;

enum {
        BUDGET_E_MALFORMED = 1,
        BUDGET_TERMS_MAX = 256,    /* of one selector: labels and expressions */
        BUDGET_VALUES_MAX = 1024,  /* of all its expressions */
        BUDGETS_OF_A_POD_MAX = 16, /* that are counted for one pod */
};

/* One object of the watch. Returns 0, BUDGET_E_MALFORMED with a fault (also for a selector over the
 * limits; an earlier state of the object stays), or -ENOMEM. */
int budgets_set(Budgets *b, Str object, bool deleted, uint32_t generation, Fault *fault);

/* Drops the budgets of an older list. Returns how many. */
size_t budgets_sweep(Budgets *b, uint32_t generation);
void budgets_done(Budgets *b);
size_t budgets_count(const Budgets *b);

/* The budgets that an eviction of this pod counts against. A budget does when it is of the pod's
 * namespace, its selector matches the pod's labels, and status.disruptedPods does not name the pod.
 * kube-scheduler leaves the named ones out as well (filterPodsWithPDBViolation), because the API
 * server has counted them already.
 *
 * A null selector matches no pod, and a pod without labels is in no budget. An empty selector
 * matches every pod of the namespace, as policy/v1 and the Eviction API have it; kube-scheduler
 * 1.36 matches no pod with it.
 *
 * Returns how many were written to ret. */
size_t budgets_of(const Budgets *b, const Profile *pod, const Budget *ret[static BUDGETS_OF_A_POD_MAX]);

int64_t budget_allowed(const Budget *b); /* status.disruptionsAllowed */
