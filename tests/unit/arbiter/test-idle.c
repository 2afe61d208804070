/* SPDX-License-Identifier: Apache-2.0 */

/* Programs with pauses between their kernels, as servers have: each is charged what it used. On the
 * model. */

#include "measured.h"

typedef struct RestCase {
        uint32_t cap, other; /* percent; other: of a tenant that always wants the card */
        uint64_t request, rest, kernel;
} RestCase;

static const RestCase cases[] = {
        {10, 60, MSEC, 5 * MSEC, 200 * USEC}, {50, 40, 200 * USEC, 300 * USEC, 50 * USEC},
        {50, 40, MSEC, MSEC, 200 * USEC},     {30, 60, MSEC, MSEC, 200 * USEC},
        {50, 40, 2 * MSEC, MSEC, MSEC},       {30, 60, 300 * USEC, MSEC, 100 * USEC},
        {30, 60, 5 * MSEC, 5 * MSEC, MSEC},   {40, 50, 700 * USEC, 900 * USEC, 20 * USEC},
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

typedef struct Seen {
        double had, charged, granted, other; /* percent of the card */
        uint64_t longest;                    /* ns */
} Seen;

static Seen run(const RestCase *c, TenantPolicy policy, bool beside, ModelMisreport misreport) {
        ModelProcess *p;
        uint64_t used, granted;
        Shares s;

        model_init(&m, 12);
        p = model_process(&m, tenant(policy), c->kernel);
        p->request = c->request;
        p->rest = c->rest;
        p->misreport = misreport;
        if (beside)
                (void) model_process(&m, tenant(fixed(c->other)), 500 * USEC);
        model_run(&m, 3 * SEC);
        used = m.tenants[0].window.used;
        granted = m.tenants[0].window.granted;
        s = shares(20 * SEC);
        return (Seen){.had = s.of[0],
                      .other = s.of[1],
                      .charged = (double) (m.tenants[0].window.used - used) / (20 * (double) SEC) * 100,
                      .granted = (double) (m.tenants[0].window.granted - granted) / (20 * (double) SEC) * 100,
                      .longest = p->longest};
}

static double least(double a, double b) {
        return a < b ? a : b;
}

static void check(const RestCase *c, const Seen *s, double could, const char *where) {
        printf("# %u %%, %g ms of work and %g of rest, %s: %.2f of %.2f, charged %.2f\n", c->cap,
               (double) c->request / 1e6, (double) c->rest / 1e6, where, s->had, least(c->cap, could),
               s->charged);
        ASSERT_TRUE(s->had >= 0.97 * least(c->cap, could));
        ASSERT_TRUE(s->had <= c->cap + 0.5);
        ASSERT_NEAR(s->charged, s->had, 1);
        ASSERT_TRUE(s->granted >= s->had - 0.1); /* otherwise the audit would report it */
}

/* Alone on the card, a tenant has what it uses without a gate, or its cap if that is smaller. */
static void alone(void) {
        TenantPolicy native =
                tenant_policy(&(CardCompute){.policy = COMPUTE_NATIVE}, &(ComputeRequest){.percent = 0});

        for (size_t i = 0; i < N_CASES; i++) {
                Seen s = run(&cases[i], fixed(cases[i].cap), false, MISREPORT_NONE);

                check(&cases[i], &s, run(&cases[i], native, false, MISREPORT_NONE).had, "alone");
        }
}

/* Beside a tenant that always wants the card, it has what it uses with all of the rest as its cap,
 * or its own cap if that is smaller. The other tenant has its share. */
static void beside_another(void) {
        for (size_t i = 0; i < N_CASES; i++) {
                const RestCase *c = &cases[i];
                Seen s = run(c, fixed(c->cap), true, MISREPORT_NONE);

                check(c, &s, run(c, fixed(100 - c->other), true, MISREPORT_NONE).had, "beside another");
                ASSERT_NEAR(s.other, c->other, 0.5);
                ASSERT_TRUE(s.longest <= c->request * 100 / c->cap + 25 * MSEC);
        }
}

/* A window for which no other tenant waits stays open during a pause. A tenant that begins to want
 * the card in that pause does not wait for the window's end. */
static void window_open_in_a_pause(void) {
        ModelProcess *p;

        model_init(&m, 3);
        p = model_process(&m, tenant(fixed(50)), 200 * USEC);
        p->request = MSEC;
        p->rest = 3 * MSEC;
        (void) tenant(fixed(50));
        p = model_process(&m, 1, 100 * USEC);
        p->request = MSEC;
        p->rest = 37 * MSEC;
        model_run(&m, 20 * SEC);
        printf("# beside one with rests: %u requests, the longest took %.2f ms\n", p->n_latencies,
               (double) p->longest / 1e6);
        ASSERT_TRUE(p->n_latencies > 400);
        ASSERT_TRUE(p->longest <= 10 * MSEC);
}

static void start(TenantPolicy policy, uint64_t kernel, uint64_t request, uint64_t rest) {
        ModelProcess *p = model_process(&m, tenant(policy), kernel);

        p->request = request;
        p->rest = rest;
}

/* A tenant that pauses for longer than a handover takes gives the card away at once. Otherwise the
 * time of each pause would be lost for all tenants. */
static void tenants_use_each_others_pauses(void) {
        static const uint64_t pairs[][2] = {
                {200 * USEC, 360 * USEC}, {MSEC, 1060 * USEC}, {100 * USEC, 260 * USEC}};
        Charges b;

        model_init(&m, 5);
        for (unsigned i = 0; i < 3; i++)
                start(fixed(30), MSEC, MSEC, MSEC);
        model_run(&m, 3 * SEC);
        b = charges(20 * SEC, NULL);
        for (unsigned i = 0; i < 3; i++) {
                ASSERT_TRUE(b.had[i] >= 28.5 && b.had[i] <= 30.5);
                ASSERT_NEAR(b.charged[i], b.had[i], 0.5);
        }
        model_init(&m, 5);
        for (unsigned i = 0; i < 3; i++)
                start(fixed(30), pairs[i][0], pairs[i][0], pairs[i][1]);
        model_run(&m, 3 * SEC);
        b = charges(20 * SEC, NULL);
        printf("# three with pauses: had %.1f, %.1f, %.1f\n", b.had[0], b.had[1], b.had[2]);
        ASSERT_TRUE(b.had[1] >= 29);
        ASSERT_TRUE(b.had_all >= 60); /* less if the card waited for the end of each pause */
        ASSERT_NEAR(b.charged_all, b.had_all, 1);
}

/* Pauses shorter than a handover keep the card, and the tenant is charged for them. Several short
 * pauses in a row are not taken for one long pause. */
static void short_pauses_in_a_row(void) {
        const CardCompute card = {.policy = COMPUTE_WEIGHTED, .prio_ratio = 80};
        const ComputeRequest first = {.weight = 1, .high_priority = true};
        Shares s;

        model_init(&m, 5);
        start(tenant_policy(&card, &first), 20 * USEC, 20 * USEC, 75 * USEC);
        start(weighted(1), MSEC, 0, 0);
        model_run(&m, 3 * SEC);
        s = shares(20 * SEC);
        printf("# 20 us of work and 75 of pause, high priority: had %.1f of 21 at most, the other "
               "%.1f\n",
               s.of[0], s.of[1]);
        ASSERT_TRUE(s.of[0] >= 12);
        ASSERT_TRUE(s.of[1] >= 10);
}

/* Beside other tenants, a program with short pauses keeps the card only until the arbiter sees a
 * pause. Otherwise it would have all of the card for hardly any work. */
static void short_pauses_of_another_tenant(void) {
        Shares s;

        model_init(&m, 5);
        start(weighted(1), 500 * USEC, MSEC, 500 * USEC);
        start(weighted(2), 20 * USEC, 20 * USEC, 200 * USEC);
        model_run(&m, 3 * SEC);
        s = shares(20 * SEC);
        printf("# beside 20 us of work and 200 of pause: had %.1f\n", s.of[0]);
        ASSERT_TRUE(s.of[0] >= 45);
}

/* A program has a long pause now and then, and short pauses between its kernels. It keeps the card
 * during the short ones, so beside a tenant with a small share it is hardly slower than alone. */
static void pauses_of_both_kinds(void) {
        ModelProcess *p;
        double alone = 1;

        for (unsigned beside = 0; beside < 2; beside++) {
                model_init(&m, 5);
                start(fixed(60), 100 * USEC, 100 * USEC, 60 * USEC);
                p = &m.processes[0];
                if (beside)
                        start(fixed(20), MSEC, MSEC, 3 * MSEC);
                for (uint64_t end = m.now + 5 * SEC; m.now < end;) {
                        p->rest = 60 * USEC;
                        model_run(&m, m.now + 4 * MSEC);
                        p->rest = 2 * MSEC;
                        model_run(&m, m.now + MSEC);
                }
                if (!beside)
                        alone = (double) m.tenants[0].ran;
        }
        printf("# pauses of both kinds: %.2f of alone\n", (double) m.tenants[0].ran / alone);
        ASSERT_TRUE((double) m.tenants[0].ran >= 0.9 * alone); /* less if each pause gave the card away */
}

/* Short pauses in a row are not reported, and beside another tenant they keep the card. They are
 * charged, so the other tenant keeps its share. */
static void short_pauses(void) {
        const RestCase c[] = {{50, 40, 50 * USEC, 100 * USEC, 50 * USEC},
                              {30, 60, 20 * USEC, 20 * USEC, 20 * USEC}};

        for (size_t i = 0; i < 2; i++) {
                Seen s = run(&c[i], fixed(c[i].cap), true, MISREPORT_NONE);

                printf("# short pauses: %.2f of %u, charged %.2f\n", s.had, c[i].cap, s.charged);
                ASSERT_TRUE(s.had <= c[i].cap);
                ASSERT_NEAR(s.other, c[i].other, 0.5);
        }
}

/* A tenant with pauses that reports a false use gains at most the tolerance of a window: a
 * twentieth and 0.1 ms. */
static void false_reports_with_pauses(void) {
        static const ModelMisreport misreports[] = {MISREPORT_BUSY_ZERO, MISREPORT_BUSY_LITTLE,
                                                    MISREPORT_BUSY_BACK, MISREPORT_SHORT, MISREPORT_LATE};

        for (size_t i = 0; i < N_CASES; i++)
                for (size_t k = 0; k < 2 * sizeof misreports / sizeof misreports[0]; k++) {
                        Seen s = run(&cases[i], fixed(cases[i].cap), k % 2, misreports[k / 2]);

                        if (s.had > cases[i].cap * 1.1)
                                TEST_FAIL_("case %zu, misreport %u: %.2f of %u", i, misreports[k / 2], s.had,
                                           cases[i].cap);
                        if (k % 2)
                                ASSERT_NEAR(s.other, cases[i].other, 2.5);
                }
}

int main(void) {
        return TEST_MAIN(TEST(alone), TEST(beside_another), TEST(window_open_in_a_pause),
                         TEST(tenants_use_each_others_pauses), TEST(short_pauses_in_a_row),
                         TEST(short_pauses_of_another_tenant), TEST(pauses_of_both_kinds), TEST(short_pauses),
                         TEST(false_reports_with_pauses));
}
