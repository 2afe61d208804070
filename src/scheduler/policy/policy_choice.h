/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which unit of a ResourcePolicy is open for a pod now. kube-scheduler asks after its own filters,
 * and the cards have been asked: an offered node that fits is room, of cpu and memory as well.
 * Pure: the table of pods (policy_table.h) counts, and filter and bind obey. */

#include "scheduler/policy/policy_spec.h"

/* One unit at the moment of the question. */
typedef struct PolicyUnitState {
        uint32_t pods;    /* that count against max */
        bool over_amount; /* its pods and this one would exceed maxResources */
        bool has_nodes;   /* the cluster has nodes of it */
        bool has_room;    /* a node of it is offered and fits */
        bool terminating; /* a pod of it is terminating */
} PolicyUnitState;

typedef enum PolicyVerdict {
        POLICY_OPEN,     /* the pod may take a node of `unit` */
        POLICY_WAITS,    /* it waits in `unit` */
        POLICY_PREEMPTS, /* kube-scheduler may look for victims in `unit`, before the next unit opens */
        POLICY_NONE,     /* no unit has room, and it waits for any */
} PolicyVerdict;

typedef struct PolicyChoice {
        PolicyVerdict verdict;
        size_t unit; /* n_units for POLICY_NONE */
        /* Of POLICY_WAITS with a timeout: seconds until the pod may go on. 0: no time ends the
         * wait. */
        uint64_t wait;
} PolicyChoice;

/* Whether max or maxResources of the unit keep one more pod out. */
bool policy_choice_is_full(const PolicyUnit *unit, const PolicyUnitState *state);

typedef struct PolicyAsker {
        uint64_t waited; /* seconds since the first failed attempt of the pod */
        bool may_preempt;
        size_t preempted; /* units, from the first on, in which victims have been looked for */
} PolicyAsker;

PolicyChoice policy_choice_make(const PolicySpec *spec, const PolicyUnitState *states,
                                const PolicyAsker *asker);
