/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses the unit of a ResourcePolicy that is open for a pod now. kube-scheduler asks filter after
 * its own filters have run, so an offered node with cards that fit has room in cpu and memory, too.
 * Pure: the table of pods (policy_table.h) counts, and filter and bind obey. */

#include "scheduler/policy/policy_spec.h"

/* State of one unit while filter answers about a pod. */
typedef struct PolicyUnitState {
        uint32_t pods;    /* pods that count against max */
        bool over_amount; /* its pods and the new one would exceed maxResources */
        bool has_nodes;   /* the unit selects a node of the cluster */
        bool has_room;    /* an offered node of the unit has room for the pod */
        bool terminating; /* a pod placed in the unit is terminating */
} PolicyUnitState;

typedef enum PolicyVerdict {
        POLICY_OPEN,     /* the pod may take a node of `unit` */
        POLICY_WAITS,    /* it waits for room in `unit` */
        POLICY_PREEMPTS, /* kube-scheduler may look for victims in `unit`, before the next unit opens */
        POLICY_NONE,     /* no unit has room; the pod waits for the first that gets some */
} PolicyVerdict;

typedef struct PolicyChoice {
        PolicyVerdict verdict;
        size_t unit; /* n_units for POLICY_NONE */
        /* Seconds until a pod that POLICY_WAITS may look at the next unit; 0: only a change ends
         * the wait. */
        uint64_t wait;
} PolicyChoice;

/* Whether max or maxResources of the unit keep one more pod out. */
bool policy_choice_is_full(const PolicyUnit *unit, const PolicyUnitState *state);

/* The pod that asks. */
typedef struct PolicyAsker {
        uint64_t waited; /* seconds since the first failed attempt of the pod */
        bool may_preempt;
        /* number of units, from the first on, in which kube-scheduler has looked for victims */
        size_t preempted;
} PolicyAsker;

/* states: one for each unit of the policy. */
PolicyChoice policy_choice_make(const PolicySpec *spec, const PolicyUnitState *states,
                                const PolicyAsker *asker);
