/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/node_compute.h"

#include <string.h>

#include "base/log.h"

void node_compute_init(NodeCompute *c, ComputePolicy policy) {
        *c = (NodeCompute){.configured = compute_configured(policy), .mode = SHARE_MODE_NONE, .stale = true};
}

static bool is_same(const CardCompute *a, const CardCompute *b) {
        return a->policy == b->policy && a->max_inst == b->max_inst && a->prio_ratio == b->prio_ratio &&
               a->yields == b->yields;
}

int node_compute_update(NodeCompute *c, const NodeAnnotations *annotations, ComputePolicy policy,
                        Fault *fault) {
        CardCompute before = c->configured;
        int r = compute_update(&c->configured, annotations, policy, fault);

        if (!c->known || !is_same(&before, &c->configured))
                c->stale = true;
        c->known = true;
        return r;
}

void node_compute_fill(const NodeCompute *c, ShareMode mode, SliceSpec *spec) {
        spec->compute = compute_for_mode(&c->configured, mode);
}

void node_compute_publish(NodeCompute *c, Slicedir *slicedir, ShareMode mode) {
        CardCompute policy = compute_for_mode(&c->configured, mode);
        Fault fault = FAULT_NULL;

        if (!c->known || (!c->stale && c->mode == mode) || !share_mode_is_isolated(mode) || slicedir->fd < 0)
                return;
        c->mode = mode;
        c->stale = slice_policy_apply(slicedir, &policy, NULL, &fault) != 0;
        if (c->stale)
                log_warning("a slice keeps its policy of compute: %s", fault.text);
}
