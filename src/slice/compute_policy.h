/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The compute policies and their settings. Three structs carry the settings, because three parties
 * decide:
 *
 *     CardCompute     the node, for all slices of a card: the policy and its two parameters
 *     ComputeRequest  one container, for its slice: percentage, weight, priority
 *     TenantPolicy    the arbiter, from both: rate, weight, priority (arbiter/tenant_policy.h)
 *
 * The enumerators are the values of SliceLimits.policy. A node's annotation and the agent's option
 * number the policies from 0, beginning with COMPUTE_FAIR; compute_policy_from_number() converts
 * them. No libc. */

#include <stdbool.h>
#include <stdint.h>

typedef enum ComputePolicy {
        COMPUTE_UNSET,      /* fixed for a slice with a percentage, native for one without */
        COMPUTE_FAIR,       /* a fixed 1/max_inst; shares of absent containers stay idle */
        COMPUTE_PREEMPTIVE, /* 1/(containers that have work) */
        COMPUTE_WEIGHTED,   /* weight / sum of weights of the containers that have work */
        COMPUTE_FIXED,      /* the slice's percentage, never more */
        COMPUTE_SOFT,       /* the slice's percentage while others want the card, too */
        COMPUTE_NATIVE,     /* the driver's own scheduling */
        COMPUTE_POLICIES
} ComputePolicy;

enum {
        COMPUTE_NUMBER_MAX = 5, /* largest policy number in an annotation or option */
        COMPUTE_INSTANCES = 20, /* max_inst where none is set */
        COMPUTE_INSTANCES_MAX = 100,
        COMPUTE_PRIO_RATIO = 80, /* prio_ratio in percent, where none is set */
        COMPUTE_WEIGHT_MAX = 10000
};

/* Converts the number in an annotation or option, which is at most COMPUTE_NUMBER_MAX. */
static inline ComputePolicy compute_policy_from_number(uint32_t number) {
        return (ComputePolicy) (COMPUTE_FAIR + number);
}

typedef struct CardCompute {
        ComputePolicy policy;
        uint32_t max_inst, prio_ratio; /* 0: not set */
        /* a slice with weight or priority changes its card's policy to COMPUTE_WEIGHTED */
        bool yields;
} CardCompute;

typedef struct ComputeRequest {
        uint32_t percent; /* of the card's time; 0: none; more than 100 counts as 100 */
        uint32_t weight;  /* 0 counts as 1 */
        bool high_priority;
} ComputeRequest;
