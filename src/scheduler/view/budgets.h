/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PodDisruptionBudgets of policy/v1: how many more of their pods may be disrupted. */

#include "scheduler/view/profiles.h"

typedef struct Budget Budget;

typedef struct Budgets {
        Budget *by_name; /* "namespace/name" */
} Budgets;

enum {
        BUDGET_E_MALFORMED = 1,
        BUDGET_TERMS_MAX = 256,    /* labels and expressions of one selector */
        BUDGET_VALUES_MAX = 1024,  /* values in all expressions of one selector */
        BUDGETS_OF_A_POD_MAX = 16, /* further budgets are not counted for a pod */
};

/* Takes over one object, or drops it when deleted. Returns 0; BUDGET_E_MALFORMED with a fault, also
 * for a selector over the limits (the earlier state stays until the next list ends); or -ENOMEM. */
int budgets_set(Budgets *b, Str object, bool deleted, uint32_t generation, Fault *fault);

/* Drops the budgets that the list of this generation did not have. Returns their number. */
size_t budgets_sweep(Budgets *b, uint32_t generation);
void budgets_done(Budgets *b);

/* Finds the budgets that an eviction of this pod counts against: of its namespace, with a selector
 * that matches its labels. A budget that names the pod in status.disruptedPods is left out, as by
 * kube-scheduler (filterPodsWithPDBViolation): the API server has counted the pod already.
 *
 * A null selector matches no pod, and a pod without labels is in no budget. An empty selector
 * matches every pod of the namespace, as policy/v1 and the Eviction API have it; kube-scheduler
 * 1.36 matches no pod with it.
 *
 * Returns the number of budgets written to ret. */
size_t budgets_of(const Budgets *b, const Profile *pod, const Budget *ret[static BUDGETS_OF_A_POD_MAX]);

int64_t budget_allowed(const Budget *b); /* status.disruptionsAllowed */
