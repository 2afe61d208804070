/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/tenant_policy.h"

enum { WEIGHT_MAX = 10000, RATIO_MIN = 20, RATIO_MAX = 99, PER_PERCENT = POLICY_PPM / 100 };

static uint32_t clamp(uint32_t n, uint32_t low, uint32_t high) {
        return n < low ? low : n > high ? high : n;
}

static uint32_t policy_of(const PolicyWish *w) {
        if (w->policy >= 1 && w->policy <= POLICY_N)
                return w->policy - 1;
        return w->percent > 0 ? POLICY_FIXED : POLICY_NATIVE;
}

static TenantPolicy fixed(uint32_t rate) {
        return (TenantPolicy){.gated = true, .rate = rate, .weight = 1};
}

static TenantPolicy shared(uint32_t weight) {
        return (TenantPolicy){.gated = true, .conserving = true, .rate = POLICY_PPM, .weight = weight};
}

/* Weights are on by themselves where one is more than 1, so 1 and 2 are the same to the engine.
 * Under a soft cap the percentages are the weights: with all of the card given out that is the cap,
 * and what was not given out goes to those who have work. */
static TenantPolicy terms_of(const PolicyWish *w) {
        uint32_t percent = clamp(w->percent, 0, 100);

        switch (policy_of(w)) {
        case POLICY_FAIR:
                return fixed(POLICY_PPM / clamp(w->max_inst > 0 ? w->max_inst : POLICY_INSTANCES, 1, 1000));
        case POLICY_PREEMPTIVE:
        case POLICY_WEIGHTED:
                return shared(clamp(w->weight, 1, WEIGHT_MAX));
        case POLICY_FIXED:
                return percent > 0 ? fixed(percent * PER_PERCENT) : (TenantPolicy){.weight = 1};
        case POLICY_SOFT:
                return shared(clamp(percent, 1, 100));
        default:
                return (TenantPolicy){.weight = 1};
        }
}

TenantPolicy tenant_policy(const PolicyWish *wish) {
        uint32_t ratio =
                clamp(wish->prio_ratio > 0 ? wish->prio_ratio : POLICY_PRIO_RATIO, RATIO_MIN, RATIO_MAX);
        TenantPolicy t = terms_of(wish);

        t.high = t.gated && wish->high;
        if (t.high && t.rate > ratio * PER_PERCENT)
                t.rate = ratio * PER_PERCENT;
        return t;
}
