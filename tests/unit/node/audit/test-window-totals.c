/* SPDX-License-Identifier: Apache-2.0 */

/* What is reported where shares are no caps: the arbiter, programs on its virtual clock, and the
 * time that the card itself counts for each process. */

#include <stdio.h>

#include "../../arbiter/model.h"
#include "node/audit/overuse.h"
#include "random.h"
#include "test.h"
#include "thorough.h"

#define WINDOW (10 * SEC)

enum { TENANTS = 4 };

static Model m;

typedef struct Audited {
        Overuse overuse[TENANTS];
        uint64_t ran[MODEL_TENANTS], granted[TENANTS];
        unsigned reported_after[TENANTS]; /* windows; 0: not reported */
} Audited;

static Audited j;

static uint64_t granted_to(uint32_t t) {
        return m.engine.tenants[m.tenants[t].engine].window.granted;
}

static uint32_t floor_of(uint32_t t, uint32_t n) {
        uint64_t weights = 0;

        for (uint32_t i = 0; i < n; i++)
                weights += m.tenants[i].policy.weight;
        return (uint32_t) (OVERUSE_PPM * (uint64_t) m.tenants[t].policy.weight / weights);
}

/* One window, as the agent checks it. The time of the tenant without windows counts for the first
 * tenant: it is a process of that container that bypasses the preload library. */
static void audit_window(uint32_t n, unsigned window) {
        uint64_t had[TENANTS], given[TENANTS], all = 0;

        for (uint32_t i = 0; i < n; i++) {
                had[i] = m.tenants[i].ran - j.ran[i];
                given[i] = granted_to(i) - j.granted[i];
                j.ran[i] = m.tenants[i].ran;
                j.granted[i] = granted_to(i);
                all += given[i];
        }
        if (m.n_tenants > n) {
                had[0] += m.tenants[n].ran - j.ran[n];
                j.ran[n] = m.tenants[n].ran;
        }
        for (uint32_t i = 0; i < n; i++) {
                uint64_t due = overuse_due(WINDOW, given[i], all - given[i], floor_of(i, n));

                if (overuse_window(&j.overuse[i], WINDOW, WINDOW, had[i],
                                   (uint32_t) (due / (WINDOW / OVERUSE_PPM))))
                        j.reported_after[i] = window;
        }
}

static void run(uint32_t n, unsigned windows) {
        j = (Audited){0};
        for (unsigned w = 1; w <= windows; w++) {
                model_run(&m, w * WINDOW);
                audit_window(n, w);
        }
}

static uint32_t weighted(uint32_t weight) {
        return model_tenant(
                &m, &(TenantPolicy){.gated = true, .conserving = true, .rate = POLICY_PPM, .weight = weight});
}

static void assert_none_reported(const char *what, uint32_t n, uint64_t a, uint64_t b) {
        for (uint32_t i = 0; i < n; i++)
                if (j.reported_after[i] != 0) {
                        printf("%s: tenant %u, kernels of %llu and %llu us\n", what, i,
                               (unsigned long long) (a / USEC), (unsigned long long) (b / USEC));
                        ASSERT_INT(j.reported_after[i], 0);
                }
}

static const uint64_t kernels[] = {50 * USEC, 2 * MSEC, 50 * MSEC, 700 * MSEC, 3 * SEC, 8 * SEC, 10 * SEC};

enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* Every kernel length beside every other, at equal shares and at one to nine. */
static void a_tenant_in_its_windows_is_not_reported(void) {
        for (uint32_t weight = 1; weight <= 9; weight += 8)
                for (size_t a = 0; a < KERNELS; a++)
                        for (size_t b = 0; b <= a; b++) {
                                model_init(&m, 77 + a * KERNELS + b);
                                (void) model_process(&m, weighted(1), kernels[a]);
                                (void) model_process(&m, weighted(weight), kernels[b]);
                                run(2, a > 3 ? 20 : 4);
                                assert_none_reported("always", 2, kernels[a], kernels[b]);
                        }
}

/* Up to four containers of one to three processes. Some have requests, come late, are stopped for a
 * while, or lose doorbells. The last container may report anything false: no other container is
 * reported for it. */
static void no_mixture_of_tenants_is_reported(void) {
        for (uint64_t seed = 1; seed <= few_or_all(20, 100); seed++) {
                Random random = {seed};
                uint32_t n = 2 + random_below(&random, 3);
                ModelMisreport misreport = (ModelMisreport) (random_below(&random, MISREPORT_LATE + 1));

                model_init(&m, seed);
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t t = weighted(1 + random_below(&random, 5)),
                                 processes = 1 + random_below(&random, 3);

                        for (uint32_t k = 0; k < processes; k++) {
                                ModelProcess *p =
                                        model_process(&m, t, kernels[random_below(&random, KERNELS - 2)]);

                                if (random_below(&random, 3) == 0) {
                                        p->request = (1 + random_below(&random, 3000)) * MSEC;
                                        p->rest = (1 + random_below(&random, 3000)) * MSEC;
                                }
                                p->lost_doorbell = random_below(&random, 4) == 0;
                                p->misreport = i + 1 == n && k == 0 ? misreport : MISREPORT_NONE;
                        }
                }
                m.late = random_below(&random, 3) == 0 ? MSEC : 0;
                run(n, 12);
                for (uint32_t i = 0; i + 1 < n; i++)
                        if (j.reported_after[i] != 0)
                                printf("seed %llu misreport %d: tenant %u of %u\n", (unsigned long long) seed,
                                       (int) misreport, i, n);
                for (uint32_t i = 0; i + 1 < n; i++)
                        ASSERT_INT(j.reported_after[i], 0);
                if (misreport == MISREPORT_NONE)
                        ASSERT_INT(j.reported_after[n - 1], 0);
        }
}

/* A process of the first container that launches at any time, beside others in their windows. */
static void bypass(uint64_t kernel) {
        (void) model_process(&m, model_tenant(&m, &(TenantPolicy){.weight = 1}), kernel);
}

/* The driver's time slices give it half of the card, and its part is a quarter. */
static void a_bypass_is_reported(void) {
        for (size_t a = 0; a < KERNELS - 3; a++)
                for (size_t b = 0; b < KERNELS - 3; b++) {
                        model_init(&m, a * KERNELS + b);
                        (void) weighted(1);
                        (void) model_process(&m, weighted(3), kernels[a]);
                        bypass(kernels[b]);
                        run(2, 12);
                        ASSERT_TRUE(j.reported_after[0] >= OVERUSE_ROW && j.reported_after[0] <= 6);
                        ASSERT_INT(j.reported_after[1], 0);
                }
}

/* Beside a process of the same container that keeps to its windows, so that the container is given
 * windows. */
static void a_bypass_beside_windows_blames_no_other(void) {
        for (size_t a = 0; a < KERNELS - 3; a++) {
                model_init(&m, a);
                (void) model_process(&m, weighted(1), 2 * MSEC);
                (void) model_process(&m, weighted(1), kernels[a]);
                bypass(2 * MSEC);
                run(2, 15);
                ASSERT_INT(j.reported_after[1], 0);
        }
}

/* A container may have what no other container wants, and may use its part without windows. */
static void a_harmless_bypass_is_not_reported(void) {
        model_init(&m, 5);
        (void) weighted(1);
        (void) weighted(9);
        bypass(2 * MSEC);
        run(2, 12);
        ASSERT_INT(j.reported_after[0], 0);
        model_init(&m, 6);
        (void) weighted(1);
        (void) model_process(&m, weighted(1), 2 * MSEC);
        bypass(2 * MSEC);
        run(2, 12);
        ASSERT_INT(j.reported_after[0], 0);
}

/* A container that reports years of use, or work that never ends, is given nothing for it. */
static void false_reports_give_no_time(void) {
        static const ModelMisreport misreports[] = {MISREPORT_BUSY_JUMPS, MISREPORT_BUSY_ZERO,
                                                    MISREPORT_NEVER_DRAINS, MISREPORT_FUTURE,
                                                    MISREPORT_ABSENT};

        for (size_t i = 0; i < sizeof misreports / sizeof misreports[0]; i++) {
                model_init(&m, 9);
                model_process(&m, weighted(1), 2 * MSEC)->misreport = misreports[i];
                (void) model_process(&m, weighted(3), 2 * MSEC);
                bypass(2 * MSEC);
                run(2, 20);
                ASSERT_TRUE(j.reported_after[0] >= OVERUSE_ROW && j.reported_after[0] <= 12);
        }
}

static void due_is_the_largest_of_three(void) {
        ASSERT_INT(overuse_due(WINDOW, 0, 0, 0), WINDOW);
        ASSERT_INT(overuse_due(WINDOW, 0, WINDOW, 0), 0);
        ASSERT_INT(overuse_due(WINDOW, 0, 2 * WINDOW, 250000), WINDOW / 4);
        ASSERT_INT(overuse_due(WINDOW, WINDOW / 2, WINDOW, 250000), WINDOW / 2);
        ASSERT_INT(overuse_due(WINDOW, WINDOW / 2, WINDOW / 5, 250000), WINDOW / 5 * 4);
        ASSERT_INT(overuse_due(WINDOW, 3 * WINDOW, 0, 250000), WINDOW);
}

int main(void) {
        return TEST_MAIN(TEST(due_is_the_largest_of_three), TEST(a_tenant_in_its_windows_is_not_reported),
                         TEST(no_mixture_of_tenants_is_reported), TEST(a_bypass_is_reported),
                         TEST(a_bypass_beside_windows_blames_no_other),
                         TEST(a_harmless_bypass_is_not_reported), TEST(false_reports_give_no_time));
}
