/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The model that the tests of a file share, and functions that measure its tenants' shares and
 * charges. */

#include "model.h"
#include "test.h"

static Model m;

static inline TenantPolicy fixed(uint32_t percent) {
        return tenant_policy(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = percent});
}

static inline TenantPolicy weighted(uint32_t weight) {
        return tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED}, &(ComputeRequest){.weight = weight});
}

static inline uint32_t tenant(TenantPolicy policy) {
        return model_tenant(&m, &policy);
}

/* Runs the model for `ns`. Returns the tenant's share of the card's time meanwhile, in percent. */
static inline double share(uint32_t of, uint64_t ns) {
        uint64_t before = m.tenants[of].ran;

        model_run(&m, m.now + ns);
        return 100 * (double) (m.tenants[of].ran - before) / (double) ns;
}

typedef struct Shares {
        double of[MODEL_TENANTS];
} Shares;

static inline Shares shares(uint64_t ns) {
        uint64_t before[MODEL_TENANTS] = {0};
        Shares s = {0};

        for (uint32_t i = 0; i < m.n_tenants; i++)
                before[i] = m.tenants[i].ran;
        model_run(&m, m.now + ns);
        for (uint32_t i = 0; i < m.n_tenants; i++)
                s.of[i] = 100 * (double) (m.tenants[i].ran - before[i]) / (double) ns;
        return s;
}

/* What each tenant, and all of them together, had and was charged: percent of the card's time. */
typedef struct Charges {
        double had[MODEL_TENANTS], charged[MODEL_TENANTS], had_all, charged_all;
} Charges;

/* Runs the model for `ns`. each: called every 0.1 ms of that time, unless it is NULL. */
static inline Charges charges(uint64_t ns, void (*each)(void)) {
        uint64_t ran[MODEL_TENANTS] = {0}, used[MODEL_TENANTS] = {0}, from = m.now;
        Charges b = {.had_all = 0};

        for (uint32_t i = 0; i < m.n_tenants; i++) {
                ran[i] = m.tenants[i].ran;
                used[i] = m.tenants[i].window.used;
        }
        for (; each && m.now < from + ns; each())
                model_run(&m, m.now + 100 * USEC);
        model_run(&m, from + ns);
        for (uint32_t i = 0; i < m.n_tenants; i++) {
                b.had[i] = 100 * (double) (m.tenants[i].ran - ran[i]) / (double) ns;
                b.charged[i] = 100 * (double) (m.tenants[i].window.used - used[i]) / (double) ns;
                b.had_all += b.had[i];
                b.charged_all += b.charged[i];
        }
        return b;
}

#define ASSERT_NEAR(a, b, by)                                                                                \
        do {                                                                                                 \
                double a_ = (a), b_ = (b);                                                                   \
                if (a_ < b_ - (by) || a_ > b_ + (by))                                                        \
                        TEST_FAIL_("%s is %.3f, expected %.3f +- %.3f", #a, a_, b_, (double) (by));          \
        } while (0)
