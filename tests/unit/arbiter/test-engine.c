/* SPDX-License-Identifier: Apache-2.0 */

/* The engine with tenants that come, go, become idle, wake, hang and report falsely; on the
 * model. */

#include "measured.h"
#include "random.h"
#include "slice/schedule.h"

/* ---- policies ---- */

static void fair_share_leaves_unused_shares_idle(void) {
        TenantPolicy t = tenant_policy(&(CardCompute){.policy = COMPUTE_FAIR, .max_inst = 4},
                                       &(ComputeRequest){.percent = 0});

        model_init(&m, 1);
        (void) model_process(&m, tenant(t), 100 * USEC);
        (void) model_process(&m, tenant(t), 2 * MSEC);
        model_run(&m, 3 * SEC);
        for (unsigned i = 0; i < 2; i++)
                ASSERT_NEAR(share(i, 10 * SEC), 25, 0.5);
}

static void preemptive_shares_among_those_with_work(void) {
        TenantPolicy t =
                tenant_policy(&(CardCompute){.policy = COMPUTE_PREEMPTIVE}, &(ComputeRequest){.percent = 0});
        Shares s;

        model_init(&m, 2);
        for (unsigned i = 0; i < 4; i++)
                (void) tenant(t);
        (void) model_process(&m, 0, 100 * USEC);
        model_run(&m, 2 * SEC);
        ASSERT_TRUE(share(0, 5 * SEC) > 99);
        (void) model_process(&m, 1, 100 * USEC);
        (void) model_process(&m, 2, 100 * USEC);
        model_run(&m, m.now + SEC);
        s = shares(5 * SEC);
        for (unsigned i = 0; i < 3; i++)
                ASSERT_NEAR(s.of[i], 33.3, 0.7);
}

static void weights(void) {
        Shares s;

        model_init(&m, 3);
        (void) model_process(&m, tenant(weighted(1)), 100 * USEC);
        (void) model_process(&m, tenant(weighted(2)), 3 * MSEC);
        (void) model_process(&m, tenant(weighted(5)), 30 * USEC);
        model_run(&m, 3 * SEC);
        s = shares(20 * SEC);
        ASSERT_NEAR(s.of[0], 12.5, 1);
        ASSERT_NEAR(s.of[1], 25, 1);
        ASSERT_NEAR(s.of[2], 62.5, 1.5);
}

/* Returns the share of a tenant that always wants the card, beside one with a hundred times its
 * weight and a pause of `rest` after each 100 ms of work. Each pause that is longer than
 * IDLE_CLOSE_NS gives the first tenant a window in addition to its part. */
static double part_of_the_light(uint64_t rest, uint64_t kernel) {
        ModelProcess *p;

        model_init(&m, 7);
        p = model_process(&m, tenant(weighted(100)), 100 * USEC);
        p->request = rest > 0 ? 100 * MSEC : 0;
        p->rest = rest;
        (void) model_process(&m, tenant(weighted(1)), kernel);
        model_run(&m, 5 * SEC);
        return share(1, 40 * SEC);
}

static void far_apart_weights(void) {
        uint64_t kernels[] = {100 * USEC, MSEC};

        for (size_t i = 0; i < 2; i++) {
                ASSERT_NEAR(part_of_the_light(0, kernels[i]), 1, 0.1);
                ASSERT_TRUE(part_of_the_light(300 * USEC, kernels[i]) < 100.0 * 5.5 / 105.5);
                ASSERT_TRUE(part_of_the_light(MSEC, kernels[i]) < 100.0 * 5.5 / 105.5);
        }
        ASSERT_TRUE(part_of_the_light(300 * USEC, 5 * MSEC) < 100.0 * 5.5 / 105.5);
}

static void soft_caps_bind_under_contention_only(void) {
        Shares s;

        model_init(&m, 4);
        for (unsigned i = 0; i < 2; i++)
                (void) tenant(tenant_policy(&(CardCompute){.policy = COMPUTE_SOFT},
                                            &(ComputeRequest){.percent = i ? 70 : 30}));
        (void) model_process(&m, 0, 100 * USEC);
        model_run(&m, 2 * SEC);
        ASSERT_TRUE(share(0, 2 * SEC) > 99);
        (void) model_process(&m, 1, 100 * USEC);
        model_run(&m, m.now + SEC);
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 30, 1);
        ASSERT_NEAR(s.of[1], 70, 1.5);
}

static void native_gates_no_tenant(void) {
        model_init(&m, 5);
        for (unsigned i = 0; i < 2; i++)
                (void) model_process(&m,
                                     tenant(tenant_policy(&(CardCompute){.policy = COMPUTE_NATIVE},
                                                          &(ComputeRequest){.percent = 10})),
                                     100 * USEC);
        model_run(&m, 2 * SEC);
        ASSERT_NEAR(share(0, SEC), 50, 1);
        ASSERT_INT(m.opens, 0);
}

/* A tenant with a cap has it beside any others. The others divide the rest by weight. */
static void caps_beside_weights(void) {
        Shares s;

        model_init(&m, 6);
        (void) model_process(&m, tenant(fixed(30)), 100 * USEC);
        (void) model_process(&m, tenant(weighted(1)), 100 * USEC);
        (void) model_process(&m, tenant(weighted(1)), 100 * USEC);
        model_run(&m, 3 * SEC);
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 30, 1);
        ASSERT_NEAR(s.of[1], 35, 1);
        ASSERT_NEAR(s.of[2], 35, 1);
}

static void requests_become_policies(void) {
        TenantPolicy t =
                tenant_policy(&(CardCompute){.policy = COMPUTE_UNSET}, &(ComputeRequest){.percent = 30});

        ASSERT_TRUE(t.gated && !t.conserving && t.rate == 300000);
        ASSERT_FALSE(tenant_policy(&(CardCompute){.policy = COMPUTE_UNSET}, &(ComputeRequest){.percent = 0})
                             .gated);
        ASSERT_FALSE(tenant_policy(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = 0})
                             .gated);
        ASSERT_INT(tenant_policy(&(CardCompute){.policy = (ComputePolicy) 77},
                                 &(ComputeRequest){.percent = 4000000000u})
                           .rate,
                   POLICY_PPM);
        ASSERT_INT(
                tenant_policy(&(CardCompute){.policy = COMPUTE_FAIR}, &(ComputeRequest){.percent = 0}).rate,
                POLICY_PPM / COMPUTE_INSTANCES);
        ASSERT_TRUE(tenant_policy(&(CardCompute){.policy = COMPUTE_FAIR, .max_inst = UINT32_MAX},
                                  &(ComputeRequest){.percent = 0})
                            .rate > 0);
        t = tenant_policy(&(CardCompute){.policy = COMPUTE_PREEMPTIVE, .prio_ratio = 5},
                          &(ComputeRequest){.high_priority = true});
        ASSERT_TRUE(t.high && t.rate == 200000); /* at least 20 % */
        t = tenant_policy(&(CardCompute){.policy = COMPUTE_FIXED},
                          &(ComputeRequest){.percent = 30, .high_priority = true});
        ASSERT_TRUE(t.high && t.rate == 300000); /* the cap is kept */
        ASSERT_FALSE(tenant_policy(&(CardCompute){.policy = COMPUTE_NATIVE},
                                   &(ComputeRequest){.high_priority = true})
                             .high);
}

/* ---- tenants that wake ---- */

static void woken_tenant_is_served_soon(void) {
        ModelProcess *p;

        model_init(&m, 8);
        (void) model_process(&m, tenant(weighted(1)), 2 * MSEC);
        (void) tenant(weighted(1));
        p = model_process(&m, 1, 100 * USEC);
        p->request = MSEC;
        p->rest = 37 * MSEC;
        model_run(&m, 20 * SEC);
        ASSERT_TRUE(p->n_latencies > 400);
        for (uint32_t i = 0; i < p->n_latencies; i++)
                ASSERT_TRUE(p->latencies[i] <= 10 * MSEC); /* from the wake-up to the end of 1 ms of work */
}

/* A tenant that wants the card again has its full share from the next window on, to one of the
 * windows of 20 ms that the two have by turns. */
static void woken_tenant_has_its_share(void) {
        model_init(&m, 9);
        (void) model_process(&m, tenant(weighted(1)), MSEC);
        (void) tenant(weighted(1));
        model_run(&m, 5 * SEC);
        (void) model_process(&m, 1, MSEC);
        model_run(&m, m.now + 10 * MSEC);
        ASSERT_TRUE(m.tenants[1].ran > 0);
        ASSERT_NEAR(share(1, 100 * MSEC), 50, 12);
        ASSERT_NEAR(share(1, SEC), 50, 2);
}

/* A tenant that was idle for an hour has no more credit than one that was idle for a second. */
static void idle_time_gives_no_credit(void) {
        double before;

        model_init(&m, 10);
        (void) tenant(fixed(20));
        (void) model_process(&m, tenant(fixed(50)), MSEC);
        model_run(&m, 3600 * SEC);
        (void) model_process(&m, 0, MSEC);
        before = share(0, SEC);
        ASSERT_NEAR(before, 20, 1.5);
}

/* ---- changes ---- */

static void policies_change_while_running(void) {
        model_init(&m, 13);
        for (unsigned i = 0; i < 2; i++)
                (void) model_process(&m, tenant(fixed(20)), 100 * USEC);
        model_run(&m, 3 * SEC);
        ASSERT_NEAR(share(0, 5 * SEC), 20, 1);
        for (ComputePolicy policy = COMPUTE_FAIR; policy < COMPUTE_POLICIES; policy++) {
                TenantPolicy t = tenant_policy(&(CardCompute){.policy = policy, .max_inst = 5},
                                               &(ComputeRequest){.percent = 20});

                for (uint32_t i = 0; i < 2; i++)
                        engine_set_policy(&m.engine, i, &t);
                m.wake = m.now;
                model_run(&m, m.now + SEC);
                ASSERT_NEAR(share(0, 5 * SEC), policy == COMPUTE_FAIR || policy == COMPUTE_FIXED ? 20 : 50,
                            1);
        }
        for (uint32_t i = 0; i < 2; i++)
                engine_set_policy(&m.engine, i, &(TenantPolicy){.gated = true, .rate = 200000, .weight = 1});
        m.wake = m.now;
        model_run(&m, m.now + SEC);
        ASSERT_NEAR(share(0, 5 * SEC), 20, 1);
}

static void tenants_come_and_go(void) {
        model_init(&m, 14);
        for (unsigned i = 0; i < 3; i++)
                (void) model_process(&m, tenant(fixed(30)), 3 * MSEC);
        model_run(&m, 3 * SEC + 1234567);
        model_leave(&m, 1);
        ASSERT_NEAR(share(0, 5 * SEC), 30, 1);
        (void) model_process(&m, tenant(fixed(40)), 100 * USEC);
        model_run(&m, m.now + SEC);
        ASSERT_NEAR(share(3, 5 * SEC), 40, 1);
        ASSERT_NEAR(share(2, 5 * SEC), 30, 1);
}

/* A new arbiter continues where the old one ended, and opens no window before the old arbiter's
 * window has drained. */
static void new_arbiter_continues(void) {
        model_init(&m, 15);
        (void) model_process(&m, tenant(fixed(30)), 300 * USEC);
        (void) model_process(&m, tenant(fixed(60)), 300 * USEC);
        for (unsigned i = 0; i < 200; i++) {
                model_run(&m, m.now + 41 * MSEC + i * 77777);
                model_take_over(&m);
        }
        model_run(&m, m.now + SEC);
        ASSERT_NEAR(share(0, 10 * SEC), 30, 1);
        ASSERT_NEAR(share(1, 10 * SEC), 60, 1);
}

static void number_of_tenants_is_limited(void) {
        Engine *e = malloc(sizeof *e);
        TenantPolicy t = fixed(5);

        ASSERT_TRUE(e != NULL);
        engine_init(e, 1);
        for (int i = 0; i < ENGINE_TENANTS; i++)
                ASSERT_INT(engine_add(e, 1, &t, 0, false), i);
        ASSERT_INT(engine_add(e, 1, &t, 0, false), -1);
        engine_remove(e, 7);
        ASSERT_INT(engine_add(e, 1, &t, 0, false), 7);
        free(e);
}

/* ---- false reports and failures ---- */

/* Beside a tenant with false reports, the honest tenants have their shares. The tenant with the
 * false reports has at most `most` percent. */
static void with_false_reports(ModelMisreport misreport, double most) {
        Shares s;

        model_init(&m, 20 + misreport);
        (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        (void) model_process(&m, tenant(fixed(30)), MSEC);
        model_process(&m, tenant(fixed(20)), 500 * USEC)->misreport = misreport;
        model_run(&m, 12 * SEC);
        s = shares(20 * SEC);
        printf("# misreport %d: %.2f %.2f, with the misreport %.2f\n", misreport, s.of[0], s.of[1], s.of[2]);
        ASSERT_NEAR(s.of[0], 50, 1.5);
        ASSERT_NEAR(s.of[1], 30, 1.5);
        ASSERT_TRUE(s.of[2] <= most);
}

static void false_reports(void) {
        with_false_reports(MISREPORT_NONE, 20.5);
        with_false_reports(MISREPORT_BUSY_ZERO, 21);
        with_false_reports(MISREPORT_BUSY_BACK, 21);
        with_false_reports(MISREPORT_BUSY_JUMPS, 20.5);
        with_false_reports(MISREPORT_NEVER_DRAINS, 20.5);
        with_false_reports(MISREPORT_FUTURE, 21);
        with_false_reports(MISREPORT_ABSENT, 0);
        with_false_reports(MISREPORT_SHORT, 21);
        with_false_reports(MISREPORT_LATE, 21);
        with_false_reports(MISREPORT_BUSY_LITTLE, 21.5);
}

/* For any bits in a row, the aggregate's first_launch is a time within the window, or 0. */
static void first_launch_of_rows(void) {
        const uint64_t opened = 4000 * SEC, now = opened + 5 * MSEC;
        ReportAggregate t = REPORT_AGGREGATE_NULL;
        RowReport said = {.want_since = 1, .first_launch = 0};

        report_aggregate_begin(&t, opened, 0);
        report_aggregate_add(&t, 0, &said, 1, now, SEC);
        ASSERT_INT(t.report.first_launch, 0);
        said.first_launch = WORK_BEGAN(opened - 10 * MSEC); /* in an earlier window */
        report_aggregate_add(&t, 1, &said, 1, now, SEC);
        ASSERT_INT(t.report.first_launch, 0);
        said.first_launch = WORK_BEGAN(now + MSEC);
        report_aggregate_add(&t, 2, &said, 1, now, SEC);
        ASSERT_INT(t.report.first_launch, 0);
        said.first_launch = WORK_BEGAN(opened + 2 * MSEC);
        report_aggregate_add(&t, 3, &said, 1, now, SEC);
        said.first_launch = WORK_BEGAN(opened + 3 * MSEC);
        report_aggregate_add(&t, 4, &said, 1, now, SEC);
        ASSERT_NEAR((double) (t.report.first_launch - opened), 2 * MSEC, WORK_BEGAN_GRAIN);
        for (uint32_t i = 0; i < 100000; i++) {
                said.first_launch = i * UINT32_C(2654435761);
                report_aggregate_begin(&t, opened, 0);
                report_aggregate_add(&t, 0, &said, 1, now, SEC);
                ASSERT_TRUE(
                        t.report.first_launch == 0 ||
                        (t.report.first_launch + WORK_BEGAN_GRAIN >= opened && t.report.first_launch <= now));
        }
        report_aggregate_begin(&t, 0, 0); /* the container had no window yet */
        said.first_launch = WORK_BEGAN(now);
        report_aggregate_add(&t, 0, &said, 0, now, SEC);
        ASSERT_INT(t.report.first_launch, 0);
}

/* Kernels that are much longer than their windows, reported truly or not: without other tenants
 * they are charged in full, from the first one on. */
static void long_kernels_alone(void) {
        static const uint64_t kernels[] = {20 * MSEC, 50 * MSEC, 500 * MSEC};

        for (unsigned i = 0; i < 6; i++) {
                uint64_t kernel = kernels[i / 2], begin;

                model_init(&m, 41 + i);
                begin = m.now;
                model_process(&m, tenant(fixed(30)), kernel)->misreport =
                        i % 2 ? MISREPORT_SHORT : MISREPORT_NONE;
                for (unsigned second = 1; second <= 30; second++) {
                        model_run(&m, begin + second * SEC);
                        ASSERT_TRUE(m.tenants[0].ran <= 30 * SEC / 100 * second + kernel + 2 * QUANTUM_NS);
                }
                ASSERT_NEAR((double) m.tenants[0].ran / (30 * (double) SEC) * 100, 30, 2);
        }
}

/* Two tenants report too short estimates for a while, as launch hooks do before they have measured
 * their kernels. Later both have their shares again. */
static void estimates_recover(void) {
        ModelProcess *p[2];
        Shares s;

        model_init(&m, 48);
        for (unsigned i = 0; i < 2; i++) {
                p[i] = model_process(&m, tenant(fixed(i == 0 ? 20 : 60)), 200 * MSEC);
                p[i]->misreport = MISREPORT_SHORT;
        }
        model_run(&m, 10 * SEC);
        p[0]->misreport = p[1]->misreport = MISREPORT_NONE;
        model_run(&m, 30 * SEC);
        s = shares(60 * SEC);
        printf("# after they were wrong: %.2f of 20, %.2f of 60\n", s.of[0], s.of[1]);
        ASSERT_NEAR(s.of[0], 20, 1);
        ASSERT_NEAR(s.of[1], 60, 1);
}

/* A tenant alone on the card has short requests and reports no use. The arbiter sees the launches,
 * and no request waits for long. */
static void unreported_short_requests(void) {
        ModelProcess *p;

        model_init(&m, 51);
        p = model_process(&m, tenant(fixed(30)), 20 * USEC);
        p->misreport = MISREPORT_BUSY_ZERO;
        p->request = 100 * USEC;
        p->rest = 2 * MSEC;
        model_run(&m, 20 * SEC);
        printf("# short requests: %u, the longest took %.2f ms\n", p->n_latencies, (double) p->longest / 1e6);
        ASSERT_TRUE(p->n_latencies > 2000);
        ASSERT_TRUE(p->longest < 30 * MSEC);
}

/* One of a container's two processes is stopped with work in flight. The other one has the
 * container's share, and no tenant is charged for time that was not used. */
static void stopped_sibling_process(void) {
        ModelProcess *p;
        Shares s;

        model_init(&m, 52);
        (void) model_process(&m, tenant(fixed(30)), MSEC);
        p = model_process(&m, 0, 20 * MSEC);
        (void) model_process(&m, tenant(fixed(20)), 500 * USEC);
        model_run(&m, 3 * SEC);
        while (!m.tenants[0].window.open || p->left == 0)
                model_run(&m, m.now + 100 * USEC);
        p->stopped = true;
        model_run(&m, m.now + 3 * SEC);
        s = shares(5 * SEC);
        printf("# beside a stopped one: %.2f of 30, %.2f of 20\n", s.of[0], s.of[1]);
        ASSERT_NEAR(s.of[0], 30, 2);
        ASSERT_NEAR(s.of[1], 20, 1);
        model_run(&m, m.now + 5 * SEC);
        ASSERT_INT(m.events, 1); /* only the stopped process could report the end of its work */
        p->stopped = false;
        p->look = m.now;
        model_run(&m, m.now + 40 * SEC);
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 30, 2);
}

/* A kernel that does not end is reported, although no other tenant wants the card and its window
 * could stay open. */
static void hung_kernel_alone(void) {
        static const TenantPolicy natives[] = {
                {.gated = true, .conserving = true, .rate = POLICY_PPM, .weight = 1},
                {.gated = true, .rate = POLICY_PPM, .weight = 1}};

        for (unsigned i = 0; i < 2; i++) {
                model_init(&m, 54 + i);
                (void) model_process(&m, tenant(natives[i]), 60 * SEC);
                model_run(&m, 9 * SEC);
                ASSERT_INT(m.events, 0);
                model_run(&m, 15 * SEC);
                ASSERT_INT(m.events, 1);
        }
}

/* A process that gets a processor late launches when its window is nearly over. The time until the
 * launch is charged like work, so the tenant may have less than its cap. */
static void late_process(void) {
        Shares s;

        model_init(&m, 53);
        m.late = 12 * MSEC;
        (void) model_process(&m, tenant(fixed(30)), MSEC);
        model_run(&m, 5 * SEC);
        s = shares(10 * SEC);
        printf("# late by up to 12 ms: %.2f of 30\n", s.of[0]);
        ASSERT_TRUE(s.of[0] > 26 && s.of[0] < 31);
}

/* A row that stops changing is left out of the aggregate after 100 ms and four times its amount in
 * flight, while another row has work. */
static void silent_row_is_left_out(void) {
        ReportAggregate t = REPORT_AGGREGATE_NULL;
        RowReport stuck = {.want_since = 1, .in_flight = 10 * MSEC}, other = {.want_since = 2, .drained = 7};
        uint64_t now = SEC;

        for (unsigned i = 0; i < 2000; i++, now += MSEC) {
                report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
                report_aggregate_add(&t, 0, &stuck, 7, now, SEC);
                if (i >= 500)
                        report_aggregate_add(&t, 1, &other, 7, now, SEC);
                report_aggregate_end(&t, now);
                ASSERT_INT(t.report.drained, i >= 500);
                ASSERT_INT(t.report.n_active, 1);
                ASSERT_INT(t.report.stuck_since != 0, i >= 500);
                other.busy += i;
        }
        stuck.busy = 10 * SEC;
        report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
        report_aggregate_add(&t, 0, &stuck, 7, now, 100 * SEC);
        report_aggregate_end(&t, now);
        ASSERT_TRUE(!t.report.drained && t.report.stuck_since == 0);
        ASSERT_TRUE(t.report.silent_busy > 1400 * MSEC &&
                    t.report.silent_busy <= 1501 * MSEC); /* at most the time that passed */
}

/* A process is killed while its row is left out. The charge is half of the time since, at most four
 * times its amount in flight and a second. */
static void silent_process_is_killed(void) {
        ReportAggregate t = REPORT_AGGREGATE_NULL;
        RowReport stuck = {.want_since = 1, .in_flight = MSEC}, other = {.want_since = 2, .drained = 7};

        for (unsigned i = 0; i < 2; i++) {
                report_aggregate_begin(&t, SEC, SEC + 5 * MSEC);
                report_aggregate_add(&t, 0, &stuck, 7, SEC + i * SEC, SEC);
                report_aggregate_add(&t, 1, &other, 7, SEC + i * SEC, SEC);
                report_aggregate_end(&t, SEC + i * SEC);
        }
        ASSERT_TRUE(t.report.stuck_since != 0 && t.report.drained);
        report_aggregate_forget(&t, 0, 2 * SEC + 100 * MSEC);
        ASSERT_INT(t.report.silent_busy, 50 * MSEC);
        report_aggregate_forget(&t, 0, 200 * SEC);
        ASSERT_INT(t.report.silent_busy, 50 * MSEC);
        t.rows[1] = (RowState){.report = stuck, .silent_since = SEC, .known = true};
        report_aggregate_forget(&t, 1, 200 * SEC);
        ASSERT_INT(t.report.silent_busy, 50 * MSEC + 4 * MSEC + SEC);
}

/* drained_at is when the work of a window ended, by the reports of its rows. A row that still wants
 * the card writes the time of its drain into want_since. If that time is before the close or in the
 * future, the time at which the arbiter saw the drain counts. */
static void drain_time_of_rows(void) {
        const uint64_t closed = 4000 * SEC, now = closed + 5 * MSEC;
        ReportAggregate t = REPORT_AGGREGATE_NULL;
        RowReport said[3] = {{.want_since = closed + MSEC, .drained = 7},
                             {.want_since = 1, .drained = 6},
                             {.want_since = closed + 2 * MSEC, .drained = 7}};

        for (uint64_t i = 0; i < 5; i++) {
                report_aggregate_begin(&t, closed - SEC, closed);
                for (uint32_t row = 0; row < 2 + (i > 0); row++)
                        report_aggregate_add(&t, row, &said[row], 7, now + i * MSEC, SEC);
                report_aggregate_end(&t, now + i * MSEC);
                if (i < 2)
                        ASSERT_INT(t.report.drained_at, closed + (1 + i) * MSEC);
                else /* the time of the first sight stays */
                        ASSERT_INT(t.report.drained_at, now + 2 * MSEC);
                said[1].drained = i >= 1 ? 7 : 6;
        }
        said[0].drained = 8;
        said[0].want_since = now + SEC; /* in the future */
        report_aggregate_begin(&t, closed - SEC, closed);
        report_aggregate_add(&t, 0, &said[0], 8, now, SEC);
        ASSERT_INT(t.report.drained_at, now);
        report_aggregate_begin(&t, closed - SEC, closed);
        report_aggregate_add(&t, 1, &said[1], 8, now, SEC); /* it drained another window */
        ASSERT_INT(t.report.drained_at, 0);
}

/* Three tenants take turns: all with the present launch hooks, then two of them with those of an
 * old library. The number of the arbiter's steps is bounded, and each tenant has its share. */
static void few_wake_ups(void) {
        uint64_t steps[2];

        for (unsigned old = 0; old < 2; old++) {
                Shares s;

                model_init(&m, 60);
                for (unsigned i = 0; i < 3; i++)
                        model_process(&m, tenant(fixed(i == 0 ? 34 : 33)), 50 * USEC)->old =
                                old == 1 && i < 2;
                model_run(&m, 5 * SEC);
                steps[old] = m.steps;
                s = shares(10 * SEC);
                steps[old] = m.steps - steps[old];
                for (unsigned i = 0; i < 3; i++)
                        ASSERT_NEAR(s.of[i], i == 0 ? 34 : 33, 0.5);
        }
        printf("# %.1f wake-ups a second, beside two old gates %.1f\n", (double) steps[0] / 10,
               (double) steps[1] / 10);
        ASSERT_TRUE(steps[0] < 7000 && steps[1] < 7000);
}

static void say(Engine *e, uint64_t now, uint64_t wants, uint64_t busy) {
        TenantReport report = {.want_since = wants,
                               .busy = busy,
                               .n_active = wants != 0,
                               .drained = true,
                               .ended = wants == 0};

        engine_report(e, now, 0, &report);
        (void) engine_step(e, now);
}

/* Use that is reported after the window's end is charged too: at most the time that passed, and not
 * what was charged before. */
static void late_reports(void) {
        Engine *e = malloc(sizeof *e);
        TenantPolicy t = fixed(30);
        int64_t before;

        ASSERT_TRUE(e != NULL);
        engine_init(e, SEC);
        ASSERT_INT(engine_add(e, SEC, &t, 0, false), 0);
        say(e, SEC, SEC, 0);
        ASSERT_TRUE(e->tenants[0].window.open);
        say(e, SEC + 2 * MSEC, SEC, 2 * MSEC);
        for (unsigned i = 1; i < 20; i++) /* the window becomes idle, closes and drains */
                say(e, SEC + 2 * MSEC + i * MSEC / 5, 0, 2 * MSEC);
        ASSERT_INT(e->tenants[0].state, ENGINE_CLOSED);
        say(e, SEC + 100 * MSEC, 0, 2 * MSEC);
        before = account_tokens(&e->tenants[0].account);
        say(e, SEC + 100 * MSEC, 0, 62 * MSEC);
        ASSERT_NEAR((double) (before - account_tokens(&e->tenants[0].account)), 60 * MSEC, 2 * MSEC);
        before = account_tokens(&e->tenants[0].account);
        say(e, SEC + 100 * MSEC, 0, 62 * MSEC);
        ASSERT_INT(account_tokens(&e->tenants[0].account), before);
        say(e, SEC + 100 * MSEC, 0, 10 * SEC);
        ASSERT_NEAR((double) (before - account_tokens(&e->tenants[0].account)), 37 * MSEC, 3 * MSEC);
        free(e);
}

/* An overrun of a minute reports at first that it used 5 s. The charge is 20 s: the 10 s after
 * which it counts as hung, and 10 s more. Use that is reported later is charged then, but never
 * more than the time that passed. */
static void late_reports_of_an_overrun(void) {
        Engine *e = malloc(sizeof *e);
        TenantReport report = {
                .want_since = SEC, .in_flight = MSEC, .first_launch = SEC, .n_active = 1, .n_working = 1};
        TenantPolicy t = fixed(30);
        uint64_t now = SEC;

        ASSERT_TRUE(e != NULL);
        engine_init(e, SEC);
        ASSERT_INT(engine_add(e, SEC, &t, 0, false), 0);
        say(e, SEC, SEC, 0);
        ASSERT_TRUE(e->tenants[0].window.open);
        for (; now < 71 * SEC; now += 10 * MSEC) {
                engine_report(e, now, 0, &report);
                (void) engine_step(e, now);
        }
        ASSERT_INT(e->tenants[0].state, ENGINE_OVERRUN);
        say(e, now, 0, 5 * SEC);
        ASSERT_INT(e->tenants[0].state, ENGINE_CLOSED);
        ASSERT_NEAR((double) e->tenants[0].window.used, 20 * SEC, 100 * MSEC);
        say(e, now, 0, 55 * SEC);
        ASSERT_NEAR((double) e->tenants[0].window.used, 65 * SEC,
                    100 * MSEC); /* 5 s of it were charged before */
        say(e, now, 0, 1000 * SEC);
        ASSERT_NEAR((double) e->tenants[0].window.used, 70 * SEC, 100 * MSEC);
        ASSERT_TRUE(e->tenants[0].account.balance < -45 * (int64_t) SEC);
        free(e);
}

/* Under a work-conserving policy, a tenant that wants the card and launches nothing takes little of
 * the other tenants' time. */
static void tenant_without_launches(void) {
        model_init(&m, 30);
        (void) model_process(&m, tenant(weighted(1)), 100 * USEC);
        model_process(&m, tenant(weighted(1)), MSEC)->misreport = MISREPORT_ABSENT;
        model_run(&m, 5 * SEC);
        ASSERT_TRUE(share(0, 5 * SEC) > 98);
}

static void stop_while_it_works(void) {
        ModelProcess *p = &m.processes[0];

        p->stopped = p->left > 0;
        if (!p->stopped)
                p->look = m.now;
}

/* A process is stopped whenever its kernel of unknown length runs, beside a working process of the
 * same container. Its use is charged when it reports it. */
static void stopped_with_work_on_the_card(void) {
        Charges c;

        model_init(&m, 9);
        model_process(&m, tenant(fixed(30)), 2 * SEC)->misreport = MISREPORT_SHORT;
        (void) model_process(&m, 0, MSEC);
        (void) model_process(&m, tenant(fixed(60)), MSEC);
        model_run(&m, 3 * SEC);
        c = charges(200 * SEC, stop_while_it_works);
        printf("# stopped whenever it works: had %.1f of 30, charged %.1f, beside it %.1f of 60\n", c.had[0],
               c.charged[0], c.had[1]);
        ASSERT_TRUE(c.had[0] < 33);
}

static void stopped_and_killed_in_a_window(void) {
        ModelProcess *p;
        Shares s;

        model_init(&m, 31);
        (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        p = model_process(&m, tenant(fixed(40)), MSEC);
        model_run(&m, 3 * SEC);
        while (!m.tenants[1].window.open || p->left == 0)
                model_run(&m, m.now + 100 * USEC);
        p->stopped = true;
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 50, 1);
        p->stopped = false;
        p->look = m.now;
        model_run(&m, m.now + 60 * SEC); /* it pays for what it may have used */
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 50, 1);
        ASSERT_NEAR(s.of[1], 40, 1);
        while (!m.tenants[1].window.open || p->left == 0)
                model_run(&m, m.now + 100 * USEC);
        p->dead = true;
        p->left = 0;
        m.wake = m.now;
        s = shares(SEC);
        ASSERT_NEAR(s.of[0], 50, 1);
}

static void lost_doorbells(void) {
        Shares s;

        model_init(&m, 32);
        model_process(&m, tenant(fixed(50)), 100 * USEC)->lost_doorbell = true;
        model_process(&m, tenant(fixed(40)), MSEC)->lost_doorbell = true;
        model_run(&m, 3 * SEC);
        s = shares(10 * SEC);
        printf("# without doorbells: %.2f of 50, %.2f of 40\n", s.of[0], s.of[1]);
        ASSERT_NEAR(s.of[0], 47, 4); /* without a doorbell, a process pays until the arbiter sees it */
        ASSERT_NEAR(s.of[1], 38, 4);
}

/* An arbiter that always wakes late, on a busy machine. */
static void late_arbiter(void) {
        Shares s;

        model_init(&m, 33);
        m.arbiter_late = 3 * MSEC;
        (void) model_process(&m, tenant(fixed(40)), 100 * USEC);
        (void) model_process(&m, tenant(fixed(20)), MSEC);
        model_run(&m, 3 * SEC);
        s = shares(20 * SEC);
        printf("# late: %.2f of 40, %.2f of 20\n", s.of[0], s.of[1]);
        ASSERT_NEAR(s.of[0], 40, 2);
        ASSERT_NEAR(s.of[1], 20, 2);
}

/* The arbiter does nothing for a while: frozen, in a debugger, without memory. What the tenants use
 * meanwhile, under the launch hooks' own percentages, becomes no debt. */
static void suspended_arbiter(void) {
        uint64_t stops[] = {300 * MSEC, SEC, 5 * SEC, 60 * SEC};

        for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
                Shares s;

                model_init(&m, 70 + i);
                (void) model_process(&m, tenant(fixed(30)), MSEC);
                (void) model_process(&m, tenant(fixed(50)), MSEC);
                model_run(&m, 3 * SEC);
                model_stop(&m, stops[i]);
                s = shares(stops[i]);
                ASSERT_TRUE(stops[i] < SEC || (s.of[0] > 15 && s.of[1] > 25));
                s = shares(SEC);
                printf("# after %.1f s without an arbiter: %.1f of 30, %.1f of 50\n", (double) stops[i] / 1e9,
                       s.of[0], s.of[1]);
                ASSERT_NEAR(s.of[0], 30, 2);
                ASSERT_NEAR(s.of[1], 50, 2);
        }
}

/* A kernel that is on the card while the arbiter does nothing is charged except for that time, and
 * reported once. */
static void kernel_while_arbiter_is_suspended(void) {
        model_init(&m, 75);
        (void) model_process(&m, tenant(fixed(20)), 30 * SEC);
        (void) model_process(&m, tenant(fixed(50)), MSEC);
        model_run(&m, 15 * SEC);
        ASSERT_INT(m.events, 1);
        model_stop(&m, 5 * SEC);
        model_run(&m, 80 * SEC);
        ASSERT_INT(m.events, 1);
        ASSERT_INT(m.engine.tenants[0].state, ENGINE_CLOSED);
        ASSERT_TRUE(m.engine.tenants[0].window.used > 10 * SEC);
}

/* A kernel of half a minute is reported once and charged in full when it has ended, and the other
 * tenant runs beside it. Its first 10 s are paid back to that tenant. Later ones are not, because
 * the arbiter does not know whether the kernel still runs. */
static void kernel_of_half_a_minute(void) {
        Shares s;

        model_init(&m, 34);
        (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        (void) model_process(&m, tenant(fixed(20)), 30 * SEC);
        model_run(&m, 20 * SEC);
        ASSERT_INT(m.events, 1);
        s = shares(5 * SEC);
        ASSERT_NEAR(s.of[0], 25, 4); /* the card's turns include the kernel, which cannot be stopped */
        model_run(&m, 71 * SEC);
        printf("# over 70 s: %.2f of 50\n", (double) m.tenants[0].ran / 7e8);
        ASSERT_TRUE((double) m.tenants[0].ran / 7e8 > 30); /* part of the loss is paid back later */
        ASSERT_INT(m.events, 1);
        ASSERT_TRUE(m.engine.tenants[1].account.balance < 0 &&
                    m.engine.tenants[1].account.balance >= -2 * ACCOUNT_DEBT_NS);
        s = shares(5 * SEC);
        ASSERT_NEAR(s.of[0], 50, 1);
        ASSERT_INT(s.of[1], 0);
}

/* Many processes of a container launch a long kernel each at once, with true and false reports. In
 * an hour the container has at most one such round more than its cap, because all of it stays a
 * debt. */
static void many_long_kernels_at_once(void) {
        for (unsigned misreport = 0; misreport < 4; misreport++) {
                double had, beside;

                model_init(&m, 60 + misreport);
                m.per_process = true;
                (void) tenant(fixed(10));
                for (unsigned i = 0; i < 14; i++)
                        model_process(&m, 0, 5 * SEC)->misreport =
                                misreport % 2 ? MISREPORT_BUSY_ZERO : MISREPORT_NONE;
                if (misreport >= 2)
                        (void) model_process(&m, tenant(fixed(50)), MSEC);
                model_run(&m, 3600 * SEC);
                had = 100 * (double) m.tenants[0].ran / (3600 * (double) SEC);
                beside = misreport >= 2 ? 100 * (double) m.tenants[1].ran / (3600 * (double) SEC) : 50;
                printf("# 14 kernels of 5 s at once: %.2f of 10, beside it %.2f of 50\n", had, beside);
                ASSERT_TRUE(had < 10 + 100.0 * 70 / 3600 && had > 8);
                ASSERT_TRUE(beside > 44); /* half of the card, while those kernels are on it */
                ASSERT_TRUE(m.engine.tenants[0].window.used <= m.now - SEC);
        }
}

/* A container that is stopped with work on the card looks like one with a long kernel. Each of its
 * processes is charged for as long as a kernel may take, and that debt is paid when the container
 * continues. */
static void container_stopped_for_long(void) {
        ModelProcess *p;
        uint64_t used;
        Shares s;

        model_init(&m, 65);
        p = model_process(&m, tenant(fixed(40)), MSEC);
        (void) model_process(&m, tenant(fixed(50)), 100 * USEC);
        model_run(&m, 3 * SEC);
        while (!m.tenants[0].window.open || p->left == 0)
                model_run(&m, m.now + 100 * USEC);
        p->stopped = true;
        used = m.tenants[0].window.used;
        model_run(&m, m.now + 1000 * SEC);
        ASSERT_NEAR((double) (m.tenants[0].window.used - used) / 1e9, 10, 1);
        p->stopped = false;
        p->look = m.now;
        model_run(&m, m.now + SEC);
        s = shares(10 * SEC);
        ASSERT_NEAR(s.of[0], 40, 1);
        ASSERT_NEAR(s.of[1], 50, 1);
}

/* Beside a hung kernel, a kernel of 8 s has half of the card and takes longer. It is not reported
 * for that, because its process might be killed. When the hung kernel is gone, the usual limit
 * applies to a kernel that still runs. */
static void kernel_beside_a_hung_one_is_not_reported(void) {
        model_init(&m, 36);
        (void) model_process(&m, tenant(fixed(30)), 40 * SEC);
        model_run(&m, 2 * SEC);
        (void) model_process(&m, tenant(fixed(30)), 8 * SEC);
        (void) model_process(&m, tenant(fixed(20)), 100 * USEC);
        model_run(&m, 40 * SEC);
        ASSERT_INT(m.events, 1);
        ASSERT_INT(m.overrun_tenant, 0);
        m.processes[1].kernel = 60 * SEC;
        model_run(&m, 300 * SEC);
        ASSERT_TRUE(m.events > 1);
}

static void configured_overrun_limit(void) {
        model_init(&m, 37);
        m.engine.overrun_limit = 2 * SEC;
        (void) model_process(&m, tenant(fixed(30)), 1500 * MSEC);
        (void) model_process(&m, tenant(fixed(20)), 100 * USEC);
        model_run(&m, 20 * SEC);
        ASSERT_INT(m.events, 0);
        m.processes[0].kernel = 5 * SEC;
        model_run(&m, 60 * SEC);
        ASSERT_TRUE(m.events > 1);
        ASSERT_INT(m.overrun_tenant, 0);
        ASSERT_TRUE(m.repeats > 1); /* each kernel lasts for more than twice the limit */
}

static void clock_steps_and_jumps(void) {
        Engine *e = malloc(sizeof *e);
        TenantReport report = {.want_since = 1, .n_active = 1, .drained = true};
        TenantPolicy t = fixed(30);
        uint64_t next;

        ASSERT_TRUE(e != NULL);
        engine_init(e, 1000);
        for (int i = 0; i < 2; i++)
                ASSERT_INT(engine_add(e, 1000, &t, 0, false), i);
        for (uint32_t i = 0; i < 2; i++)
                engine_report(e, 5 * SEC, i, &report);
        next = engine_step(e, 5 * SEC);
        ASSERT_TRUE(next > 5 * SEC && e->tenants[0].window.open);
        next = engine_step(e, SEC); /* the clock steps back */
        ASSERT_TRUE(next > SEC && e->now == 5 * SEC);
        next = engine_step(e, 86400 * SEC); /* the clock jumps by a day */
        ASSERT_TRUE(next > 86400 * SEC);
        for (int i = 0; i < 2; i++)
                ASSERT_TRUE(!e->tenants[i].window.open || e->tenants[i].window.closes < 86401 * SEC);
        ASSERT_TRUE(e->tenants[0].account.balance > -(int64_t) SEC &&
                    account_tokens(&e->tenants[0].account) < (int64_t) SEC);
        free(e);
}

/* ---- random mixtures ---- */

static void check_accounts(void) {
        for (uint32_t i = 0; i < m.engine.n; i++) {
                const EngineTenant *t = &m.engine.tenants[i];

                if (t->state == ENGINE_FREE)
                        continue;
                ASSERT_TRUE(t->account.balance >= -(int64_t) (m.now - SEC)); /* at most the card's time */
                ASSERT_TRUE(account_tokens(&t->account) <=
                            ACCOUNT_DEBT_NS + ACCOUNT_CREDIT_NS + 2 * ACCOUNT_BURST_NS);
        }
}

/* Tenants with random policies, kernels, reports and lifetimes. The model asserts that no two
 * windows are open and that no number is opened twice. */
static void random_mixtures(void) {
        static const uint64_t kernels[] = {5 * USEC, 200 * USEC, 3 * MSEC, 40 * MSEC, 700 * MSEC};

        for (uint64_t round = 1; round <= 40; round++) {
                Random random = {round};

                model_init(&m, round);
                for (unsigned i = 0; i < 20; i++) {
                        TenantPolicy t = tenant_policy(
                                &(CardCompute){
                                        .policy = (ComputePolicy) random_below(&random, COMPUTE_POLICIES)},
                                &(ComputeRequest){.percent = random_below(&random, 40),
                                                  .weight = random_below(&random, 4),
                                                  .high_priority = random_below(&random, 8) == 0});
                        uint32_t at = tenant(t);

                        for (uint64_t n = random_below(&random, 3); n > 0; n--) {
                                ModelProcess *p = model_process(&m, at, kernels[random_below(&random, 5)]);

                                p->misreport = random_below(&random, 4) == 0
                                                       ? (ModelMisreport) random_below(&random, 7)
                                                       : MISREPORT_NONE;
                                p->request = random_below(&random, 2) ? random_below(&random, 20 * MSEC) : 0;
                                p->rest = random_below(&random, 50 * MSEC);
                                p->lost_doorbell = random_below(&random, 8) == 0;
                        }
                        model_run(&m, m.now + random_below(&random, 300 * MSEC));
                        if (random_below(&random, 3) == 0 &&
                            m.tenants[random_below(&random, m.n_tenants)].engine >= 0) {
                                uint32_t gone = random_below(&random, m.n_tenants);

                                if (m.tenants[gone].engine >= 0)
                                        model_leave(&m, gone);
                        }
                        check_accounts();
                }
        }
}

/* None of 20 honest tenants starves: each has its share in any ten seconds. */
static void no_tenant_starves(void) {
        model_init(&m, 50);
        for (unsigned i = 0; i < 20; i++)
                (void) model_process(&m, tenant(fixed(5)), (i + 1) * 700 * USEC);
        model_run(&m, 5 * SEC);
        for (unsigned n = 0; n < 5; n++) {
                Shares s = shares(10 * SEC);

                for (unsigned i = 0; i < 20; i++)
                        ASSERT_NEAR(s.of[i], 5, 1);
        }
}

int main(void) {
        return TEST_MAIN(TEST(requests_become_policies), TEST(fair_share_leaves_unused_shares_idle),
                         TEST(preemptive_shares_among_those_with_work), TEST(weights),
                         TEST(far_apart_weights), TEST(soft_caps_bind_under_contention_only),
                         TEST(native_gates_no_tenant), TEST(caps_beside_weights),
                         TEST(woken_tenant_is_served_soon), TEST(woken_tenant_has_its_share),
                         TEST(idle_time_gives_no_credit), TEST(policies_change_while_running),
                         TEST(tenants_come_and_go), TEST(new_arbiter_continues),
                         TEST(number_of_tenants_is_limited), TEST(false_reports), TEST(first_launch_of_rows),
                         TEST(long_kernels_alone), TEST(estimates_recover), TEST(late_reports),
                         TEST(tenant_without_launches), TEST(stopped_with_work_on_the_card),
                         TEST(stopped_and_killed_in_a_window), TEST(lost_doorbells), TEST(late_arbiter),
                         TEST(suspended_arbiter), TEST(kernel_while_arbiter_is_suspended),
                         TEST(kernel_of_half_a_minute), TEST(many_long_kernels_at_once),
                         TEST(container_stopped_for_long), TEST(late_reports_of_an_overrun),
                         TEST(kernel_beside_a_hung_one_is_not_reported), TEST(configured_overrun_limit),
                         TEST(clock_steps_and_jumps), TEST(random_mixtures), TEST(no_tenant_starves),
                         TEST(unreported_short_requests), TEST(stopped_sibling_process),
                         TEST(hung_kernel_alone), TEST(late_process), TEST(silent_row_is_left_out),
                         TEST(silent_process_is_killed), TEST(drain_time_of_rows), TEST(few_wake_ups));
}
