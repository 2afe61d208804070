/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/tenant_policy.h"

enum { RATIO_MIN = 20, RATIO_MAX = 99, PER_PERCENT = POLICY_PPM / 100 };

static uint32_t clamp(uint32_t n, uint32_t low, uint32_t high) {
        return n < low ? low : n > high ? high : n;
}

static ComputePolicy policy_of(const CardCompute *card, const ComputeRequest *request) {
        if (card->policy > COMPUTE_UNSET && card->policy < COMPUTE_POLICIES)
                return card->policy;
        return request->percent > 0 ? COMPUTE_FIXED : COMPUTE_NATIVE;
}

static TenantPolicy shared(uint32_t weight) {
        return (TenantPolicy){.gated = true, .conserving = true, .rate = POLICY_PPM, .weight = weight};
}

/* A rate of the whole card is no cap, so the tenant is work-conserving. */
static TenantPolicy fixed(uint32_t rate) {
        return rate < POLICY_PPM ? (TenantPolicy){.gated = true, .rate = rate, .weight = 1} : shared(1);
}

/* The settings of each policy. For the engine, preemptive and weighted are the same: the weight is
 * 1 unless set. Under a soft cap the percentage is the weight: if all of a card is given out that
 * equals the cap, and the rest goes to tenants with work. */
static TenantPolicy settings_of(const CardCompute *card, const ComputeRequest *request) {
        uint32_t percent = clamp(request->percent, 0, 100);

        switch (policy_of(card, request)) {
        case COMPUTE_FAIR:
                return fixed(POLICY_PPM /
                             clamp(card->max_inst > 0 ? card->max_inst : COMPUTE_INSTANCES, 1, 1000));
        case COMPUTE_PREEMPTIVE:
        case COMPUTE_WEIGHTED:
                return shared(clamp(request->weight, 1, COMPUTE_WEIGHT_MAX));
        case COMPUTE_FIXED:
                return percent > 0 ? fixed(percent * PER_PERCENT) : (TenantPolicy){.weight = 1};
        case COMPUTE_SOFT:
                return shared(clamp(percent, 1, 100));
        default:
                return (TenantPolicy){.weight = 1};
        }
}

TenantPolicy tenant_policy(const CardCompute *card, const ComputeRequest *request) {
        uint32_t ratio =
                clamp(card->prio_ratio > 0 ? card->prio_ratio : COMPUTE_PRIO_RATIO, RATIO_MIN, RATIO_MAX);
        TenantPolicy t = settings_of(card, request);

        t.high = t.gated && request->high_priority;
        if (t.high && t.rate > ratio * PER_PERCENT)
                t.rate = ratio * PER_PERCENT;
        return t;
}
