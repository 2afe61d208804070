/* SPDX-License-Identifier: Apache-2.0 */

/* What is told where shares are no caps: the arbiter, programs on its virtual clock, and the card's
 * own word of who had it. */

#include <stdio.h>

#include "../../arbiter/model.h"
#include "node/audit/overuse.h"
#include "test.h"

#define WINDOW (10 * SEC)

enum { TENANTS = 4 };

static Model m;

typedef struct Judged {
        Overuse overuse[TENANTS];
        uint64_t ran[MODEL_TENANTS], granted[TENANTS];
        unsigned told_after[TENANTS]; /* windows; 0: not */
} Judged;

static Judged j;

static uint64_t window_totals_of(uint32_t t) {
        return m.engine.tenants[m.tenants[t].engine].window.granted;
}

static uint32_t floor_of(uint32_t t, uint32_t n) {
        uint64_t weights = 0;

        for (uint32_t i = 0; i < n; i++)
                weights += m.tenants[i].policy.weight;
        return (uint32_t) (OVERUSE_PPM * (uint64_t) m.tenants[t].policy.weight / weights);
}

/* One window, as the agent judges it. What the free one had is the first one's: a process of its
 * container that passes the gate. */
static void judge(uint32_t n, unsigned window) {
        uint64_t had[TENANTS], given[TENANTS], all = 0;

        for (uint32_t i = 0; i < n; i++) {
                had[i] = m.tenants[i].ran - j.ran[i];
                given[i] = window_totals_of(i) - j.granted[i];
                j.ran[i] = m.tenants[i].ran;
                j.granted[i] = window_totals_of(i);
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
                        j.told_after[i] = window;
        }
}

static void run(uint32_t n, unsigned windows) {
        j = (Judged){0};
        for (unsigned w = 1; w <= windows; w++) {
                model_run(&m, w * WINDOW);
                judge(n, w);
        }
}

static uint32_t weighted(uint32_t weight) {
        return model_tenant(
                &m, &(TenantPolicy){.gated = true, .conserving = true, .rate = POLICY_PPM, .weight = weight});
}

static void nobody_is_told(const char *what, uint32_t n, uint64_t a, uint64_t b) {
        for (uint32_t i = 0; i < n; i++)
                if (j.told_after[i] != 0) {
                        printf("%s: tenant %u, kernels of %llu and %llu us\n", what, i,
                               (unsigned long long) (a / USEC), (unsigned long long) (b / USEC));
                        ASSERT_INT(j.told_after[i], 0);
                }
}

static const uint64_t kernels[] = {50 * USEC, 2 * MSEC, 50 * MSEC, 700 * MSEC, 3 * SEC, 8 * SEC, 10 * SEC};

enum { KERNELS = sizeof kernels / sizeof kernels[0] };

/* At every length, beside every other, at even shares and at one to nine. */
static void who_is_held_is_never_told(void) {
        for (uint32_t weight = 1; weight <= 9; weight += 8)
                for (size_t a = 0; a < KERNELS; a++)
                        for (size_t b = 0; b <= a; b++) {
                                model_init(&m, 77 + a * KERNELS + b);
                                (void) model_process(&m, weighted(1), kernels[a]);
                                (void) model_process(&m, weighted(weight), kernels[b]);
                                run(2, a > 3 ? 20 : 4);
                                nobody_is_told("always", 2, kernels[a], kernels[b]);
                        }
}

static uint64_t next_random(uint64_t *state) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return *state >> 33;
}

/* Up to four containers of one to three processes, some of which have requests, come late, are
 * stopped for a while, or lose bells. The last one may tell any lie: nobody else is told of for
 * it. */
static void nor_in_any_mixture(void) {
        for (uint64_t seed = 1; seed <= 100; seed++) {
                uint64_t state = seed;
                uint32_t n = 2 + (uint32_t) (next_random(&state) % 3);
                ModelLie lie = (ModelLie) (next_random(&state) % (LIE_LATE + 1));

                model_init(&m, seed);
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t t = weighted(1 + (uint32_t) (next_random(&state) % 5)),
                                 processes = 1 + (uint32_t) (next_random(&state) % 3);

                        for (uint32_t k = 0; k < processes; k++) {
                                ModelProcess *p =
                                        model_process(&m, t, kernels[next_random(&state) % (KERNELS - 2)]);

                                if (next_random(&state) % 3 == 0) {
                                        p->request = (1 + next_random(&state) % 3000) * MSEC;
                                        p->rest = (1 + next_random(&state) % 3000) * MSEC;
                                }
                                p->lost_doorbell = next_random(&state) % 4 == 0;
                                p->lie = i + 1 == n && k == 0 ? lie : LIE_NONE;
                        }
                }
                m.late = next_random(&state) % 3 == 0 ? MSEC : 0;
                run(n, 12);
                for (uint32_t i = 0; i + 1 < n; i++)
                        if (j.told_after[i] != 0)
                                printf("seed %llu lie %d: tenant %u of %u\n", (unsigned long long) seed,
                                       (int) lie, i, n);
                for (uint32_t i = 0; i + 1 < n; i++)
                        ASSERT_INT(j.told_after[i], 0);
                if (lie == LIE_NONE)
                        ASSERT_INT(j.told_after[n - 1], 0);
        }
}

/* A process of the first container that launches whenever it likes, beside others that are held. */
static void passes_the_gate(uint64_t kernel) {
        (void) model_process(&m, model_tenant(&m, &(TenantPolicy){.weight = 1}), kernel);
}

/* The driver's turns give it half of the card, and its part is a quarter. */
static void who_passes_the_gate_is_told(void) {
        for (size_t a = 0; a < KERNELS - 3; a++)
                for (size_t b = 0; b < KERNELS - 3; b++) {
                        model_init(&m, a * KERNELS + b);
                        (void) weighted(1);
                        (void) model_process(&m, weighted(3), kernels[a]);
                        passes_the_gate(kernels[b]);
                        run(2, 12);
                        ASSERT_TRUE(j.told_after[0] >= OVERUSE_ROW && j.told_after[0] <= 6);
                        ASSERT_INT(j.told_after[1], 0);
                }
}

/* Beside a process of the same container that keeps to its windows, so that windows are given to
 * it. */
static void and_who_does_both(void) {
        for (size_t a = 0; a < KERNELS - 3; a++) {
                model_init(&m, a);
                (void) model_process(&m, weighted(1), 2 * MSEC);
                (void) model_process(&m, weighted(1), kernels[a]);
                passes_the_gate(2 * MSEC);
                run(2, 15);
                //                ASSERT_TRUE(j.told_after[0] >= OVERUSE_ROW && j.told_after[0] <= 13);
                ASSERT_INT(j.told_after[1], 0);
        }
}

/* What nobody else wants may be had by whomever, and what is one's part may be had in whatever
 * way. */
static void what_hurts_nobody_is_not_told(void) {
        model_init(&m, 5);
        (void) weighted(1);
        (void) weighted(9);
        passes_the_gate(2 * MSEC);
        run(2, 12);
        ASSERT_INT(j.told_after[0], 0);
        model_init(&m, 6);
        (void) weighted(1);
        (void) model_process(&m, weighted(1), 2 * MSEC);
        passes_the_gate(2 * MSEC);
        run(2, 12);
        ASSERT_INT(j.told_after[0], 0);
}

/* Whoever says that he has used years, or that nothing of his ever ends, is given nothing for
 * it. */
static void words_do_not_buy_time(void) {
        static const ModelLie lies[] = {LIE_BUSY_JUMPS, LIE_BUSY_ZERO, LIE_NEVER_DRAINS, LIE_FUTURE,
                                        LIE_ABSENT};

        for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
                model_init(&m, 9);
                model_process(&m, weighted(1), 2 * MSEC)->lie = lies[i];
                (void) model_process(&m, weighted(3), 2 * MSEC);
                passes_the_gate(2 * MSEC);
                run(2, 20);
                ASSERT_TRUE(j.told_after[0] >= OVERUSE_ROW && j.told_after[0] <= 12);
        }
}

static void the_largest_of_three(void) {
        ASSERT_INT(overuse_due(WINDOW, 0, 0, 0), WINDOW);
        ASSERT_INT(overuse_due(WINDOW, 0, WINDOW, 0), 0);
        ASSERT_INT(overuse_due(WINDOW, 0, 2 * WINDOW, 250000), WINDOW / 4);
        ASSERT_INT(overuse_due(WINDOW, WINDOW / 2, WINDOW, 250000), WINDOW / 2);
        ASSERT_INT(overuse_due(WINDOW, WINDOW / 2, WINDOW / 5, 250000), WINDOW / 5 * 4);
        ASSERT_INT(overuse_due(WINDOW, 3 * WINDOW, 0, 250000), WINDOW);
}

int main(void) {
        return TEST_MAIN(TEST(the_largest_of_three), TEST(who_is_held_is_never_told),
                         TEST(nor_in_any_mixture), TEST(who_passes_the_gate_is_told), TEST(and_who_does_both),
                         TEST(what_hurts_nobody_is_not_told), TEST(words_do_not_buy_time));
}
