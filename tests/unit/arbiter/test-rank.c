/* SPDX-License-Identifier: Apache-2.0 */

/* High priority, and what it leaves to the other tenants; on the model. */

#include <stdlib.h>

#include "measured.h"

static int by_length(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return *x < *y ? -1 : *x > *y;
}

static uint64_t p99(ModelProcess *p) {
        ASSERT_TRUE(p->n_latencies > 100);
        qsort(p->latencies, p->n_latencies, sizeof p->latencies[0], by_length);
        return p->latencies[p->n_latencies * 99 / 100];
}

static uint64_t requests(bool neighbour, ComputePolicy policy) {
        TenantPolicy high = tenant_policy(&(CardCompute){.policy = policy, .prio_ratio = 99},
                                          &(ComputeRequest){.percent = 90, .high_priority = true});
        ModelProcess *p;

        model_init(&m, 11);
        p = model_process(&m, tenant(high), 200 * USEC);
        p->request = 20 * MSEC;
        p->rest = 31 * MSEC;
        if (neighbour)
                (void) model_process(&m,
                                     tenant(tenant_policy(&(CardCompute){.policy = policy},
                                                          &(ComputeRequest){.percent = 10})),
                                     MSEC);
        model_run(&m, 60 * SEC);
        return p99(p);
}

static void high_priority_is_hardly_disturbed(void) {
        ComputePolicy policies[] = {COMPUTE_WEIGHTED, COMPUTE_SOFT};

        for (size_t i = 0; i < 2; i++) {
                uint64_t alone = requests(false, policies[i]), beside = requests(true, policies[i]);

                printf("# p99 of 20 ms: %.3f ms alone, %.3f ms beside\n", (double) alone / 1e6,
                       (double) beside / 1e6);
                ASSERT_TRUE(beside * 10 <= alone * 11);
        }
}

static void high_priority_is_bounded(void) {
        TenantPolicy high = tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED, .prio_ratio = 80},
                                          &(ComputeRequest){.high_priority = true});
        Shares s;

        model_init(&m, 12);
        (void) model_process(&m, tenant(high), MSEC);
        (void) model_process(&m, tenant(weighted(1)), MSEC);
        model_run(&m, 2 * SEC);
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 80, 2);
        ASSERT_NEAR(s.of[1], 20, 2);
}

static TenantPolicy first(void) {
        return tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED, .prio_ratio = 80},
                             &(ComputeRequest){.high_priority = true});
}

/* The tenants without high priority divide what it leaves, whenever they begin: one of them begins
 * at once, after 2 s, or after ten minutes. */
static void late_tenant_beside_high_priority(void) {
        static const uint64_t seconds[] = {0, 2, 600};

        for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
                Shares s;

                model_init(&m, 12);
                (void) model_process(&m, tenant(first()), MSEC);
                (void) model_process(&m, tenant(weighted(1)), MSEC);
                model_run(&m, seconds[i] * SEC + 1);
                (void) model_process(&m, tenant(weighted(1)), MSEC);
                model_run(&m, m.now + 2 * SEC);
                s = shares(20 * SEC);
                ASSERT_NEAR(s.of[0], 80, 2);
                ASSERT_NEAR(s.of[1], 10, 1);
                ASSERT_NEAR(s.of[2], 10, 1);
        }
}

static void pauses_beside_high_priority(void) {
        ModelProcess *p;

        model_init(&m, 12);
        (void) model_process(&m, tenant(first()), MSEC);
        (void) model_process(&m, tenant(weighted(1)), MSEC);
        p = model_process(&m, tenant(weighted(1)), 200 * USEC);
        p->request = 2 * MSEC;
        p->rest = 30 * MSEC;
        model_run(&m, 60 * SEC);
        printf("# longest of %u requests: %.1f ms\n", p->n_latencies, (double) p->longest / 1e6);
        ASSERT_TRUE(p->n_latencies > 60 * 15);
        ASSERT_TRUE(p->longest < 100 * MSEC);
}

/* A tenant had more than its weight through high priority. After a change of policy it does not
 * have to wait for that, nor for a debt under another weight. */
static void policy_change_forgets_past_use(void) {
        model_init(&m, 12);
        (void) model_process(&m, tenant(first()), MSEC);
        (void) model_process(&m, tenant(weighted(1)), MSEC);
        model_run(&m, 60 * SEC);
        for (uint32_t i = 0; i < 2; i++)
                engine_set_policy(
                        &m.engine, i,
                        &(TenantPolicy){
                                .gated = true, .conserving = true, .rate = POLICY_PPM, .weight = i + 1});
        m.wake = m.now;
        model_run(&m, m.now + SEC);
        ASSERT_NEAR(share(0, 5 * SEC), 33.3, 2);
}

/* A debt is the same number of ns of the card under any weight. */
static void a_debt_keeps_its_length(void) {
        const TenantPolicy light = weighted(1), heavy = weighted(1000);
        Account a;

        account_init(&a, &light, 5000);
        account_charge(&a, &light, (int64_t) (7 * SEC), 5000);
        account_set_rank(&a, &heavy, 5000);
        ASSERT_INT(a.clock, 5000 + ((int64_t) (7 * SEC) - ACCOUNT_BURST_NS) * 16 / 1000);
        account_set_rank(&a, &light, 5000);
        ASSERT_INT(a.clock, 5000 + ((int64_t) (7 * SEC) - ACCOUNT_BURST_NS) * 16);
}

int main(void) {
        return TEST_MAIN(TEST(high_priority_is_hardly_disturbed), TEST(high_priority_is_bounded),
                         TEST(late_tenant_beside_high_priority), TEST(pauses_beside_high_priority),
                         TEST(policy_change_forgets_past_use), TEST(a_debt_keeps_its_length));
}
