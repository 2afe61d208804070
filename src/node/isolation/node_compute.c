/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/node_compute.h"

#include <string.h>

#include "base/log.h"

void node_compute_init(NodeCompute *c, uint32_t policy) {
        *c = (NodeCompute){.terms = {.policy = policy}, .mode = SHARE_MODE_NONE, .stale = true};
}

int node_compute_update(NodeCompute *c, const NodeAnnotations *annotations, uint32_t policy, Fault *fault) {
        ComputeTerms before = c->terms;
        int r = compute_terms_want(&c->terms, annotations, policy, fault);

        if (!c->known || before.policy != c->terms.policy || before.max_inst != c->terms.max_inst ||
            before.prio_ratio != c->terms.prio_ratio || before.users_policy != c->terms.users_policy)
                c->stale = true;
        c->known = true;
        return r;
}

static SlicePolicy policy_of(const NodeCompute *c, ShareMode mode) {
        ComputeRule rule = compute_rule(&c->terms, mode);

        return (SlicePolicy){.compute = {.policy = 1 + rule.policy,
                                         .max_inst = rule.max_inst,
                                         .prio_ratio = rule.prio_ratio},
                             .yields = rule.yields};
}

void node_compute_fill(const NodeCompute *c, ShareMode mode, SliceSpec *spec) {
        SlicePolicy policy = policy_of(c, mode);

        spec->policy = policy.compute.policy;
        spec->max_inst = policy.compute.max_inst;
        spec->prio_ratio = policy.compute.prio_ratio;
}

void node_compute_publish(NodeCompute *c, Slicedir *slicedir, ShareMode mode) {
        SlicePolicy policy = policy_of(c, mode);
        Fault fault = FAULT_NULL;

        if (!c->known || (!c->stale && c->mode == mode) || !share_mode_is_isolated(mode) || slicedir->fd < 0)
                return;
        c->mode = mode;
        c->stale = slice_policy_apply(slicedir, &policy, NULL, &fault) != 0;
        if (c->stale)
                log_warning("a slice keeps its policy of compute: %s", fault.text);
}
