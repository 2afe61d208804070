/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One model for a test's functions, and what its tenants have of the card. */

#include "model.h"
#include "test.h"

static Model m;

static inline Terms fixed(uint32_t percent) {
        return policy_terms(&(PolicyWish){.policy = 1 + POLICY_FIXED, .percent = percent});
}

static inline Terms weighted(uint32_t weight) {
        return policy_terms(&(PolicyWish){.policy = 1 + POLICY_WEIGHTED, .weight = weight});
}

static inline uint32_t tenant(Terms terms) {
        return model_tenant(&m, &terms);
}

/* Percent of the card's time from now on. */
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

#define ASSERT_NEAR(a, b, by)                                                                                \
        do {                                                                                                 \
                double a_ = (a), b_ = (b);                                                                   \
                if (a_ < b_ - (by) || a_ > b_ + (by))                                                        \
                        TEST_FAIL_("%s is %.3f, expected %.3f +- %.3f", #a, a_, b_, (double) (by));          \
        } while (0)
