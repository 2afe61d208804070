/* SPDX-License-Identifier: Apache-2.0 */

/* Work that continues during another tenant's window: it was underestimated, its process was
 * killed, or its end was not reported. All charges together equal the card's time, and each tenant
 * has its share. On the model. */

#include "measured.h"

static Charges two(TenantPolicy a, uint64_t kernel_a, ModelMisreport misreport_a, TenantPolicy b,
                   uint64_t kernel_b, ModelMisreport misreport_b) {
        Charges r;

        model_init(&m, 12);
        model_process(&m, tenant(a), kernel_a)->misreport = misreport_a;
        model_process(&m, tenant(b), kernel_b)->misreport = misreport_b;
        model_run(&m, 5 * SEC);
        r = charges(40 * SEC, NULL);
        printf("# %g ms, misreport %d: %.1f, charged %.1f; %g ms, misreport %d: %.1f, charged %.1f\n",
               (double) kernel_a / 1e6, misreport_a, r.had[0], r.charged[0], (double) kernel_b / 1e6,
               misreport_b, r.had[1], r.charged[1]);
        return r;
}

static void underestimated_kernels(void) {
        static const uint64_t kernels[] = {6 * MSEC, 12 * MSEC, 20 * MSEC, 60 * MSEC},
                              others[] = {100 * USEC, MSEC, 20 * MSEC};

        for (unsigned i = 0; i < 4; i++)
                for (unsigned k = 0; k < 3; k++) {
                        Charges b = two(fixed(30), kernels[i], MISREPORT_SHORT, fixed(60), others[k],
                                        MISREPORT_NONE);

                        ASSERT_NEAR(b.charged_all, b.had_all, 1.8);
                        ASSERT_NEAR(b.had[0], 30, 2);
                        ASSERT_NEAR(b.had[1], 60, 2);
                        b = two(weighted(1), kernels[i], MISREPORT_SHORT, weighted(2), others[k],
                                MISREPORT_NONE);
                        ASSERT_NEAR(b.charged_all, b.had_all, 2);
                        ASSERT_NEAR(b.had[0], 33.3, 2);
                }
}

/* A window that stays open beside an overrun: its tenant is work-conserving, and no other tenant
 * waits for the card. */
static void window_stays_open_beside_overrun(void) {
        static const uint64_t kernels[] = {200 * MSEC, 500 * MSEC, 2 * SEC, 5 * SEC};

        for (unsigned i = 0; i < 4; i++) {
                Charges b = two(weighted(1), kernels[i], MISREPORT_SHORT, weighted(2), MSEC, MISREPORT_NONE);

                ASSERT_NEAR(b.charged_all, b.had_all, kernels[i] < SEC ? 2.5 : 5);
                if (kernels[i] < SEC) /* longer ones are too few in that time */
                        ASSERT_NEAR(b.had[0], 33.3, 2);
        }
}

/* A high-priority tenant opens a window beside the work of two others. No time is charged twice
 * when the work of three tenants is on the card at once. */
static void work_of_three_tenants_at_once(void) {
        TenantPolicy high = tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED, .prio_ratio = 80},
                                          &(ComputeRequest){.high_priority = true});
        ModelProcess *p;
        Charges b;

        model_init(&m, 33);
        model_process(&m, tenant(fixed(30)), 12 * MSEC)->misreport = MISREPORT_SHORT;
        (void) model_process(&m, tenant(fixed(60)), MSEC);
        p = model_process(&m, tenant(high), 200 * USEC);
        p->request = 2 * MSEC;
        p->rest = 7 * MSEC;
        model_run(&m, 10 * SEC);
        b = charges(40 * SEC, NULL);
        printf("# three at once: had %.1f, charged %.1f\n", b.had_all, b.charged_all);
        ASSERT_NEAR(b.charged_all, b.had_all, 4);
}

/* A tenant with any of the false reports runs beside underestimated kernels. The owner of these
 * kernels keeps its share, and the tenant with the false report has no more than its own. */
static void false_reports_beside_overrun(void) {
        for (int misreport = MISREPORT_NONE; misreport <= (int) MISREPORT_LATE; misreport++) {
                Charges b = two(fixed(30), 12 * MSEC, MISREPORT_SHORT, fixed(60), MSEC,
                                (ModelMisreport) misreport);

                ASSERT_TRUE(b.had[0] > 29 && b.had[1] < 61);
        }
}

/* A tenant does not report when its work ended, and its kernels continue in the other tenant's
 * window. It gains nothing by that. */
static void unreported_end(void) {
        for (uint64_t kernel = 500 * USEC; kernel < 40 * MSEC; kernel *= 3) {
                Charges b = two(fixed(30), kernel, MISREPORT_FUTURE, fixed(60), MSEC, MISREPORT_NONE);

                ASSERT_TRUE(b.had[0] < 31);
                ASSERT_NEAR(b.had[1], 60, 1.5);
        }
}

/* A tenant reports the end of its work too early. The use that it reports later tells the true
 * end. */
static void end_reported_too_early(void) {
        static const uint64_t kernels[] = {1500 * USEC, 2 * MSEC, 2200 * USEC, 3 * MSEC};

        for (unsigned i = 0; i < 4; i++) {
                Charges b = two(fixed(30), kernels[i], MISREPORT_OVER, fixed(60), MSEC, MISREPORT_NONE);

                ASSERT_TRUE(b.had[0] < 32);
                ASSERT_NEAR(b.had[1], 60, 2);
        }
}

/* Two overruns take turns with each other, and with the tenant that has a window. */
static void two_overruns_at_once(void) {
        static const uint64_t kernels[] = {60 * MSEC, 300 * MSEC};

        for (unsigned i = 0; i < 2; i++) {
                Charges b = two(weighted(1), kernels[i], MISREPORT_SHORT, weighted(1), kernels[i],
                                MISREPORT_SHORT);

                ASSERT_NEAR(b.charged_all, b.had_all, 3);
                ASSERT_NEAR(b.had[0], 50, 3);
                model_init(&m, 5);
                for (unsigned k = 0; k < 2; k++)
                        model_process(&m, tenant(weighted(1)), kernels[i])->misreport = MISREPORT_SHORT;
                (void) model_process(&m, tenant(weighted(1)), MSEC);
                model_run(&m, 5 * SEC);
                b = charges(40 * SEC, NULL);
                printf("# beside two of %g ms: %.1f of 33.3\n", (double) kernels[i] / 1e6, b.had[2]);
                ASSERT_TRUE(b.had[2] > 29);
        }
}

/* Kernels of seconds, with known lengths: each is in OVERRUN for most of its time, and ends before
 * it is reported. When one ends, the other tenants are paid back at once. That includes what one
 * of them paid in its own window beside the overrun, before it was in OVERRUN itself. */
static void two_long_overruns_and_a_third_tenant(void) {
        static const uint64_t kernels[] = {2 * SEC, 3 * SEC};

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

static Charges with_an_accomplice(uint32_t cap, uint64_t kernel, ModelMisreport misreport, uint32_t third) {
        uint32_t a;

        model_init(&m, 5);
        model_process(&m, tenant(fixed(cap)), kernel)->misreport = misreport;
        a = tenant(fixed(30));
        for (unsigned i = 0; i < 8; i++)
                model_process(&m, a, 20 * MSEC)->misreport = MISREPORT_NEVER_DRAINS;
        (void) model_process(&m, tenant(fixed(third)), MSEC);
        model_run(&m, 25 * SEC);
        return charges(200 * SEC, NULL);
}

/* An overrun beside a tenant that never reports its end is charged as if that tenant were absent.
 * Otherwise a stopped container or an accomplice would void the cap, and a third tenant would have
 * less. */
static void overrun_beside_endless_one(void) {
        Charges b = with_an_accomplice(10, 500 * MSEC, MISREPORT_SHORT, 60);

        printf("# 10 %% beside an endless overrun: had %.1f, an honest tenant %.1f of 60\n", b.had[0],
               b.had[2]);
        ASSERT_TRUE(b.had[0] <= 10.5);
        ASSERT_TRUE(b.had[2] >= 58);
        b = with_an_accomplice(30, 2 * SEC, MISREPORT_NONE, 30);
        printf("# two honest tenants beside an endless overrun: had %.1f, %.1f of 30\n", b.had[0], b.had[2]);
        ASSERT_TRUE(b.had[0] >= 28 && b.had[0] <= 31);
        ASSERT_TRUE(b.had[2] >= 29);
}

/* A tenant that was long beside an overrun without end is not paid back by tenants that came
 * later. */
static void later_tenants_beside_endless_overrun(void) {
        Charges b;

        model_init(&m, 5);
        model_process(&m, tenant(fixed(5)), MSEC)->misreport = MISREPORT_NEVER_DRAINS;
        (void) model_process(&m, tenant(fixed(30)), MSEC);
        model_run(&m, 900 * SEC);
        model_process(&m, tenant(fixed(30)), 500 * MSEC)->misreport = MISREPORT_SHORT;
        (void) model_process(&m, tenant(fixed(35)), MSEC);
        (void) charges(60 * SEC, NULL);
        b = charges(120 * SEC, NULL);
        printf("# early tenant: had %.1f of 30; later tenant: %.1f of 35\n", b.had[1], b.had[3]);
        ASSERT_TRUE(b.had[1] <= 32);
        ASSERT_TRUE(b.had[3] >= 34);
}

/* A process ends with work in flight and without a last report. Its use is the time since it last
 * reported any, although other words of its row changed later. */
static void use_of_a_killed_process(void) {
        static ReportAggregate t;
        RowReport said = {.want_since = 1, .in_flight = MSEC};

        t = REPORT_AGGREGATE_NULL;
        for (uint64_t i = 0; i < 50; i++) { /* only want_since changes */
                said.want_since = 1 + i;
                report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
                report_aggregate_add(&t, 0, &said, 7, SEC + i * MSEC, SEC);
                report_aggregate_end(&t, SEC + i * MSEC);
        }
        report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
        report_aggregate_forget(&t, 0, SEC + 60 * MSEC);
        report_aggregate_end(&t, SEC + 60 * MSEC);
        ASSERT_TRUE(t.report.drained);
        ASSERT_INT(t.report.busy, 60 * MSEC);
        ASSERT_INT(t.report.drained_at, SEC + 60 * MSEC);
        t.rows[0] = (RowState){.report = said, .unreported_since = SEC, .known = true};
        report_aggregate_forget(&t, 0, 100 * SEC);
        ASSERT_INT(t.report.busy, 60 * MSEC + SEC + 4 * MSEC);
        t.rows[0] = (RowState){.report = {.want_since = 1},
                               .unreported_since = SEC,
                               .known = true}; /* nothing was in flight */
        report_aggregate_forget(&t, 0, 101 * SEC);
        ASSERT_INT(t.report.busy, 60 * MSEC + SEC + 4 * MSEC);
}

static uint64_t life, dies;

static void kill_the_first(void) {
        ModelProcess *p = &m.processes[0];

        if (p->left == 0)
                dies = m.now + life;
        else if (m.now >= dies)
                model_begin_again(&m, p);
}

/* A process is killed a fixed time after its first launch, with a kernel of unknown length on the
 * card, and started again; all the time. */
static void process_is_killed_repeatedly(void) {
        static const uint64_t kernels[] = {12 * MSEC, 60 * MSEC},
                              lives[] = {3 * MSEC, 8 * MSEC, 15 * MSEC, 40 * MSEC};

        for (unsigned i = 0; i < 8; i++) {
                Charges b;

                life = lives[i / 2];
                model_init(&m, 12);
                model_process(&m, tenant(fixed(30)), kernels[i % 2])->misreport = MISREPORT_SHORT;
                (void) model_process(&m, tenant(fixed(60)), MSEC);
                model_run(&m, 2 * SEC);
                b = charges(20 * SEC, kill_the_first);
                printf("# %g ms, killed after %g ms: %.1f of 30, beside it %.1f of 60, charged %.1f\n",
                       (double) kernels[i % 2] / 1e6, (double) life / 1e6, b.had[0], b.had[1], b.charged_all);
                /* The tails of two windows are charged by halves, in whatever turns the card ran
                 * them. */
                ASSERT_NEAR(b.charged_all, b.had_all, 3);
                ASSERT_NEAR(b.had[0], 30,
                            3.5); /* turns are whole milliseconds, and this tenant has the first */
                ASSERT_NEAR(b.had[1], 60, 3);
        }
}

int main(void) {
        return TEST_MAIN(TEST(underestimated_kernels), TEST(window_stays_open_beside_overrun),
                         TEST(work_of_three_tenants_at_once), TEST(false_reports_beside_overrun),
                         TEST(unreported_end), TEST(end_reported_too_early), TEST(two_overruns_at_once),
                         TEST(two_long_overruns_and_a_third_tenant), TEST(overrun_beside_endless_one),
                         TEST(later_tenants_beside_endless_overrun), TEST(use_of_a_killed_process),
                         TEST(process_is_killed_repeatedly));
}
