/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nodes and pods say about compute (CONTRACT sections 5, 8 and 13), as numbers. Pure. */

#include "share/mode.h"
#include "wire/node.h"
#include "wire/pod.h"

enum {
        COMPUTE_NATIVE = 5,
        COMPUTE_FIXED = 3,
        COMPUTE_PREEMPTIVE = 1,
        COMPUTE_FAIR = 0
}; /* of six policies */
enum {
        COMPUTE_POLICY_MAX = 5,
        COMPUTE_INSTANCES = 20,
        COMPUTE_INSTANCES_MAX = 100,
        COMPUTE_WEIGHT_MAX = 10000
};

/* What is in force on a node. */
typedef struct ComputeTerms {
        uint32_t policy;               /* 0..5 */
        uint32_t max_inst, prio_ratio; /* 0: not said */
        bool users_policy;             /* the node's annotation is good, and says the policy */
} ComputeTerms;

/* The node's annotations as they are now; where one is not there `configured` holds, or nothing is
 * said. Of one that is malformed the value before stays, and the fault names all such:
 * COMPUTE_E_TERMS. 0 when all are good. */
enum { COMPUTE_E_TERMS = 1 };
int compute_terms_want(ComputeTerms *t, const NodeAnnotations *annotations, uint32_t configured,
                       Fault *fault);

/* The same on a node of this mode: where it gives out percentages they are held. ret->yields: a
 * container's weight or priority is enough to have its card weighted: policy 1, and 5 where it is
 * nobody's word. */
typedef struct ComputeRule {
        uint32_t policy, max_inst, prio_ratio;
        bool yields;
} ComputeRule;
ComputeRule compute_rule(const ComputeTerms *t, ShareMode mode);

/* What a container's environment asks. Values that are not understood, or come from elsewhere
 * (valueFrom), are as if they were not there; the fault names all such: COMPUTE_E_ASK. */
typedef struct ComputeAsk {
        uint32_t weight;    /* 1 at least */
        bool high_priority; /* it comes first */
} ComputeAsk;
enum { COMPUTE_E_ASK = 1 };
int compute_ask(const PodContainer *c, ComputeAsk *ret, Fault *fault);
