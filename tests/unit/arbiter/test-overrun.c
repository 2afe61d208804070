/* SPDX-License-Identifier: Apache-2.0 */

/* Work that goes on beside another one's window, because it was thought to be shorter, its process
 * was killed, or nobody said when it ended: all that is charged is the card's time, and everybody
 * has his share; on the model. */

#include "measured.h"

static Charges two(TenantPolicy a, uint64_t kernel_a, ModelLie lie_a, TenantPolicy b, uint64_t kernel_b,
                   ModelLie lie_b) {
        Charges r;

        model_init(&m, 12);
        model_process(&m, tenant(a), kernel_a)->lie = lie_a;
        model_process(&m, tenant(b), kernel_b)->lie = lie_b;
        model_run(&m, 5 * SEC);
        r = charges(40 * SEC, NULL);
        printf("# %g ms, lie %d: %.1f, charged %.1f; %g ms, lie %d: %.1f, charged %.1f\n",
               (double) kernel_a / 1e6, lie_a, r.had[0], r.charged[0], (double) kernel_b / 1e6, lie_b,
               r.had[1], r.charged[1]);
        return r;
}

static void what_is_longer_than_it_was_thought(void) {
        static const uint64_t kernels[] = {6 * MSEC, 12 * MSEC, 20 * MSEC, 60 * MSEC},
                              others[] = {100 * USEC, MSEC, 20 * MSEC};

        for (unsigned i = 0; i < 4; i++)
                for (unsigned k = 0; k < 3; k++) {
                        Charges b = two(fixed(30), kernels[i], LIE_SHORT, fixed(60), others[k], LIE_NONE);

                        ASSERT_NEAR(b.charged_all, b.had_all, 1.8);
                        ASSERT_NEAR(b.had[0], 30, 2);
                        ASSERT_NEAR(b.had[1], 60, 2);
                        b = two(weighted(1), kernels[i], LIE_SHORT, weighted(2), others[k], LIE_NONE);
                        ASSERT_NEAR(b.charged_all, b.had_all, 2);
                        ASSERT_NEAR(b.had[0], 33.3, 2);
                }
}

/* A window that is open all the time beside an overdue kernel, as that of a conserving one is whom
 * nobody else waits for. */
static void a_window_that_goes_on(void) {
        static const uint64_t kernels[] = {200 * MSEC, 500 * MSEC, 2 * SEC,
                                           5 * SEC}; /* the last two with windows behind */

        for (unsigned i = 0; i < 4; i++) {
                Charges b = two(weighted(1), kernels[i], LIE_SHORT, weighted(2), MSEC, LIE_NONE);

                ASSERT_NEAR(b.charged_all, b.had_all, kernels[i] < SEC ? 2.5 : 5);
                if (kernels[i] < SEC) /* of longer ones there are few in that time */
                        ASSERT_NEAR(b.had[0], 33.3, 2);
        }
}

/* Who comes first opens a window beside the two: of three at once, too, no time is charged
 * twice. */
static void three_at_once(void) {
        TenantPolicy high = tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED, .prio_ratio = 80},
                                          &(ComputeRequest){.high_priority = true});
        ModelProcess *p;
        Charges b;

        model_init(&m, 33);
        model_process(&m, tenant(fixed(30)), 12 * MSEC)->lie = LIE_SHORT;
        (void) model_process(&m, tenant(fixed(60)), MSEC);
        p = model_process(&m, tenant(high), 200 * USEC);
        p->request = 2 * MSEC;
        p->rest = 7 * MSEC;
        model_run(&m, 10 * SEC);
        b = charges(40 * SEC, NULL);
        printf("# three at once: had %.1f, charged %.1f\n", b.had_all, b.charged_all);
        ASSERT_NEAR(b.charged_all, b.had_all, 4);
}

/* Whatever lies he tells beside such a kernel: its owner loses nothing by them, and he has no more
 * than is his. */
static void nobody_gains_beside_it(void) {
        for (int lie = LIE_NONE; lie <= (int) LIE_BLOCKED; lie++) {
                Charges b = two(fixed(30), 12 * MSEC, LIE_SHORT, fixed(60), MSEC, (ModelLie) lie);

                ASSERT_TRUE(b.had[0] > 29 && b.had[1] < 61);
        }
}

/* Nor does he gain who never says when his work was over, and has kernels that go on in another
 * one's window. */
static void who_does_not_say_when_it_was_over(void) {
        for (uint64_t kernel = 500 * USEC; kernel < 40 * MSEC; kernel *= 3) {
                Charges b = two(fixed(30), kernel, LIE_FUTURE, fixed(60), MSEC, LIE_NONE);

                ASSERT_TRUE(b.had[0] < 31);
                ASSERT_NEAR(b.had[1], 60, 1.5);
        }
}

/* What it says to have used itself says when it was over, too. */
static void who_says_that_it_was_over_sooner(void) {
        static const uint64_t kernels[] = {1500 * USEC, 2 * MSEC, 2200 * USEC, 3 * MSEC};

        for (unsigned i = 0; i < 4; i++) {
                Charges b = two(fixed(30), kernels[i], LIE_OVER, fixed(60), MSEC, LIE_NONE);

                ASSERT_TRUE(b.had[0] < 32);
                ASSERT_NEAR(b.had[1], 60, 2);
        }
}

/* They take turns with each other, and with whoever has a window. */
static void two_overdue_at_once(void) {
        static const uint64_t kernels[] = {60 * MSEC, 300 * MSEC};

        for (unsigned i = 0; i < 2; i++) {
                Charges b = two(weighted(1), kernels[i], LIE_SHORT, weighted(1), kernels[i], LIE_SHORT);

                ASSERT_NEAR(b.charged_all, b.had_all, 3);
                ASSERT_NEAR(b.had[0], 50, 3);
                model_init(&m, 5);
                for (unsigned k = 0; k < 2; k++)
                        model_process(&m, tenant(weighted(1)), kernels[i])->lie = LIE_SHORT;
                (void) model_process(&m, tenant(weighted(1)), MSEC);
                model_run(&m, 5 * SEC);
                b = charges(40 * SEC, NULL);
                printf("# beside two of %g ms: %.1f of 33.3\n", (double) kernels[i] / 1e6, b.had[2]);
                ASSERT_TRUE(b.had[2] > 29);
        }
}

/* Kernels of seconds, and known: each is overdue nearly all of the time. Whoever ends pays the
 * others back at once, also what one of them paid in his window beside another one, before he was
 * overdue himself. */
static void two_long_ones_and_a_third(void) {
        static const uint64_t kernels[] = {2 * SEC, 5 * SEC};

        for (unsigned i = 0; i < 2; i++) {
                Charges b;

                model_init(&m, 5);
                for (unsigned k = 0; k < 2; k++)
                        (void) model_process(&m, tenant(weighted(1)), kernels[i]);
                (void) model_process(&m, tenant(weighted(1)), MSEC);
                model_run(&m, 12 * SEC);
                b = charges(900 * SEC, NULL);
                printf("# %.0f s, twice: had %.1f, %.1f, and the third %.1f, charged %.1f\n",
                       (double) kernels[i] / 1e9, b.had[0], b.had[1], b.had[2], b.charged[2]);
                ASSERT_TRUE(b.had[2] >= 32 && b.had[2] <= 38);
                ASSERT_NEAR(b.charged_all, b.had_all, 1);
        }
}

static Charges with_an_accomplice(uint32_t cap, uint64_t kernel, ModelLie lie, uint32_t third) {
        uint32_t a;

        model_init(&m, 5);
        model_process(&m, tenant(fixed(cap)), kernel)->lie = lie;
        a = tenant(fixed(30));
        for (unsigned i = 0; i < 8; i++)
                model_process(&m, a, 20 * MSEC)->lie = LIE_NEVER_DRAINS;
        (void) model_process(&m, tenant(fixed(third)), MSEC);
        model_run(&m, 25 * SEC);
        return charges(200 * SEC, NULL);
}

/* Who is overdue beside one who never says that he has ended pays as if that one were not there: or
 * a container that was stopped, or an accomplice, makes his cap void, and somebody else has
 * less. */
static void beside_one_who_never_ends(void) {
        Charges b = with_an_accomplice(10, 500 * MSEC, LIE_SHORT, 60);

        printf("# 10 %% beside one who never ends: had %.1f, an honest one %.1f of 60\n", b.had[0], b.had[2]);
        ASSERT_TRUE(b.had[0] <= 10.5);
        ASSERT_TRUE(b.had[2] >= 58);
        b = with_an_accomplice(30, 2 * SEC, LIE_NONE, 30);
        printf("# two honest ones beside one who never ends: had %.1f, %.1f of 30\n", b.had[0], b.had[2]);
        ASSERT_TRUE(b.had[0] >= 28 && b.had[0] <= 31);
        ASSERT_TRUE(b.had[2] >= 29);
}

/* Who has been there for long gets nothing back that somebody pays who came later. */
static void who_comes_beside_one_who_never_ends(void) {
        Charges b;

        model_init(&m, 5);
        model_process(&m, tenant(fixed(5)), MSEC)->lie = LIE_NEVER_DRAINS;
        (void) model_process(&m, tenant(fixed(30)), MSEC);
        model_run(&m, 900 * SEC);
        model_process(&m, tenant(fixed(30)), 500 * MSEC)->lie = LIE_SHORT;
        (void) model_process(&m, tenant(fixed(35)), MSEC);
        (void) charges(60 * SEC, NULL);
        b = charges(120 * SEC, NULL);
        printf("# who was there had %.1f of 30, who came %.1f of 35\n", b.had[1], b.had[3]);
        ASSERT_TRUE(b.had[1] <= 32);
        ASSERT_TRUE(b.had[3] >= 34);
}

/* A row with work in flight of which nothing more is ever said: what it used is the time since it
 * last said any, whatever else of it moved. */
static void what_the_dead_had(void) {
        static ReportAggregate t;
        RowReport said = {.want_since = 1, .in_flight = MSEC};

        t = REPORT_AGGREGATE_NULL;
        for (uint64_t i = 0; i < 50; i++) { /* wants is said anew */
                said.want_since = 1 + i;
                report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
                report_aggregate_add(&t, 0, &said, 7, SEC + i * MSEC, SEC);
                report_aggregate_end(&t, SEC + i * MSEC);
        }
        report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
        report_aggregate_forget(&t, 0, SEC + 60 * MSEC);
        report_aggregate_end(&t, SEC + 60 * MSEC);
        ASSERT_TRUE(t.drained);
        ASSERT_INT(t.busy, 60 * MSEC);
        ASSERT_INT(t.drained_at, SEC + 60 * MSEC);
        t.rows[0] = (RowState){.report = said, .unreported_since = SEC, .known = true};
        report_aggregate_forget(&t, 0, 100 * SEC);
        ASSERT_INT(t.busy, 60 * MSEC + SEC + 4 * MSEC);
        t.rows[0] = (RowState){.report = {.want_since = 1},
                               .unreported_since = SEC,
                               .known = true}; /* it had nothing there */
        report_aggregate_forget(&t, 0, 101 * SEC);
        ASSERT_INT(t.busy, 60 * MSEC + SEC + 4 * MSEC);
}

static uint64_t life, dies;

static void kill_the_first(void) {
        ModelProcess *p = &m.processes[0];

        if (p->left == 0)
                dies = m.now + life;
        else if (m.now >= dies)
                model_begin_again(&m, p);
}

/* Processes that are killed so long after their first launch, with a kernel on the card of which
 * nobody knows how long it takes, and begun again. */
static void who_is_killed_all_the_time(void) {
        static const uint64_t kernels[] = {12 * MSEC, 60 * MSEC},
                              lives[] = {3 * MSEC, 8 * MSEC, 15 * MSEC, 40 * MSEC};

        for (unsigned i = 0; i < 8; i++) {
                Charges b;

                life = lives[i / 2];
                model_init(&m, 12);
                model_process(&m, tenant(fixed(30)), kernels[i % 2])->lie = LIE_SHORT;
                (void) model_process(&m, tenant(fixed(60)), MSEC);
                model_run(&m, 2 * SEC);
                b = charges(20 * SEC, kill_the_first);
                printf("# %g ms, killed after %g ms: %.1f of 30, beside it %.1f of 60, charged %.1f\n",
                       (double) kernels[i % 2] / 1e6, (double) life / 1e6, b.had[0], b.had[1], b.charged_all);
                /* The tails of two windows are charged by halves, whatever the card's turns were. */
                ASSERT_NEAR(b.charged_all, b.had_all, 3);
                ASSERT_NEAR(b.had[0], 30,
                            3.5); /* the card's turns are whole milliseconds, and his is first */
                ASSERT_NEAR(b.had[1], 60, 3);
        }
}

int main(void) {
        return TEST_MAIN(TEST(what_is_longer_than_it_was_thought), TEST(a_window_that_goes_on),
                         TEST(three_at_once), TEST(nobody_gains_beside_it),
                         TEST(who_does_not_say_when_it_was_over), TEST(who_says_that_it_was_over_sooner),
                         TEST(two_overdue_at_once), TEST(two_long_ones_and_a_third),
                         TEST(beside_one_who_never_ends), TEST(who_comes_beside_one_who_never_ends),
                         TEST(what_the_dead_had), TEST(who_is_killed_all_the_time));
}
