/* SPDX-License-Identifier: Apache-2.0 */

/* The table of shares, with its bounds: tenants that always want the card, under caps that make up
 * 100 %. */

#include "arbiter/tunables.h"
#include "table.h"
#include "test.h"
#include "thorough.h"

static void check(const TableCase *c, uint64_t seed) {
        TableResult r = table_run(c, seed);
        double kernels = 100 * (double) c->kernel * c->n_tenants / ((double) SEC * c->seconds);
        /* The time held by several processes is charged less a switch, and this card has no
         * switches. */
        double second = c->n_processes > 1 ? 2 : 0.2, ten = c->n_processes > 1 ? 1.3 : 0;

        if (r.error_1 <= table_bound(c, 1) + second && r.error_10 <= table_bound(c, 10) + ten &&
            r.sum >= 97 - kernels)
                return;
        TEST_FAIL_("%u tenants of %u processes, the first %u %%, kernels of %g us: off by %.2f points in a "
                   "second (%.2f), %.2f in ten (%.2f), sum %.2f %%",
                   c->n_tenants, c->n_processes, c->caps[0], (double) c->kernel / 1e3, r.error_1,
                   table_bound(c, 1), r.error_10, table_bound(c, 10), r.sum);
}

/* Without THOROUGH a third of the cases, with each length and each cap. */
static void check_all(uint32_t tenants, uint32_t processes) {
        for (uint32_t k = 0; k < 6; k++)
                for (uint32_t c = (k + processes) % few_or_all(3, 1); c < 5; c += few_or_all(3, 1)) {
                        TableCase one;

                        table_case(table_caps[c], tenants, &one);
                        one.kernel = table_kernels[k];
                        one.n_processes = processes;
                        check(&one, 1 + k * 8 + c);
                }
}

static void one_tenant(void) {
        check_all(1, 1);
        check_all(1, 4);
}

static void two_tenants(void) {
        check_all(2, 1);
        check_all(2, 4);
}

static void three_tenants(void) {
        check_all(3, 1);
        check_all(3, 4);
}

/* Programs that launch late in each window, as on a machine with too few processors: by at most 0.2
 * ms to 2 ms, and at least a tenth of that. Alone they lose little of their share. Beside others
 * the mean delay of each window is charged, because the card was kept from the others. */
static void late(void) {
        double worst[2] = {100, 100};

        for (uint32_t k = 0; k < 4; k++)
                for (uint32_t i = 0; i < 24; i++) {
                        uint32_t tenants = 1 + i % 3, several = i / 3 % 2;
                        double bound = several ? 91 : 97;
                        TableResult r;
                        TableCase c;

                        table_case(table_caps[(i + k) % 5], tenants, &c);
                        c.kernel = table_kernels[k];
                        c.n_processes = several ? 3 : 1;
                        c.per_process = several;
                        c.late = (const uint64_t[]){200 * USEC, 700 * USEC, 1300 * USEC, 2 * MSEC}[i / 6];
                        if (tenants > 1)
                                bound -= 55 * (double) c.late / (double) QUANTUM_NS;
                        r = table_run(&c, 1 + k * 24 + i);
                        worst[several] = r.sum < worst[several] ? r.sum : worst[several];
                        if (r.sum < bound)
                                TEST_FAIL_("%u tenants of %u processes, the first %u %%, kernels of %g us, "
                                           "late by %g ms: sum %.2f %%, expected %.2f",
                                           tenants, c.n_processes, c.caps[0], (double) c.kernel / 1e3,
                                           (double) c.late / 1e6, r.sum, bound);
                }
        printf("# sums of late programs, at least: %.2f %%, %.2f %% of several processes\n", worst[0],
               worst[1]);
}

/* Kernels of all lengths beside each other: each gets its share of a longer time. */
static void mixed(void) {
        static const uint64_t kernels[4] = {5 * USEC, 500 * USEC, 20 * MSEC, 300 * MSEC};
        static const uint32_t caps[4] = {40, 30, 20, 10};
        static Model m;
        uint64_t before[4];

        model_init(&m, 7);
        for (uint32_t i = 0; i < 4; i++) {
                TenantPolicy policy = tenant_policy(&(CardCompute){.policy = COMPUTE_UNSET},
                                                    &(ComputeRequest){.percent = caps[i]});

                (void) model_process(&m, model_tenant(&m, &policy), kernels[i]);
        }
        model_run(&m, 10 * SEC);
        for (uint32_t i = 0; i < 4; i++)
                before[i] = m.tenants[i].ran;
        model_run(&m, 110 * SEC);
        for (uint32_t i = 0; i < 4; i++) {
                double percent = (double) (m.tenants[i].ran - before[i]) / 1e9;

                printf("# %u %%: %.2f\n", caps[i], percent);
                ASSERT_TRUE(percent > caps[i] - 1.3 && percent < caps[i] + 1.3);
        }
}

int main(void) {
        return TEST_MAIN(TEST(one_tenant), TEST(two_tenants), TEST(three_tenants), TEST(late), TEST(mixed));
}
