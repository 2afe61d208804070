/* SPDX-License-Identifier: Apache-2.0 */

/* Containers with several cards: their windows open together. */

#include <inttypes.h>

#include "arbiter/tunables.h"
#include "model.h"
#include "random.h"
#include "test.h"
#include "thorough.h"

static Model models[MODEL_CARDS];
static Model *cards[MODEL_CARDS];
static uint32_t n_cards;
static Joined joined;
static bool alone; /* each card decides by itself */

static TenantPolicy fixed(uint32_t percent) {
        return tenant_policy(&(CardCompute){.policy = COMPUTE_FIXED}, &(ComputeRequest){.percent = percent});
}

static TenantPolicy weighted(uint32_t weight, bool high) {
        return tenant_policy(&(CardCompute){.policy = COMPUTE_WEIGHTED},
                             &(ComputeRequest){.weight = weight, .high_priority = high});
}

static void begin(uint32_t n, uint64_t seed) {
        joined = (Joined){.next = 0};
        n_cards = n;
        for (uint32_t i = 0; i < n; i++) {
                cards[i] = &models[i];
                model_init(cards[i], seed * MODEL_CARDS + i);
        }
}

static void run(uint64_t ns) {
        model_run_cards(cards, n_cards, alone ? NULL : &joined, cards[0]->now + ns);
}

static ModelProcess *rank(uint32_t card, uint32_t set, TenantPolicy policy, uint64_t kernel) {
        Model *m = cards[card];
        uint32_t t = model_tenant(m, &policy);

        m->engine.tenants[m->tenants[t].engine].set = set;
        return model_process(m, t, kernel);
}

static void connect(ModelProcess *const p[], uint32_t n, uint32_t every) {
        for (uint32_t i = 0; i < n; i++) {
                p[i]->collective = every;
                for (uint32_t k = 0; k < n; k++)
                        if (k != i)
                                p[i]->peers[p[i]->n_peers++] = p[k];
        }
}

static uint64_t ran(uint32_t card, const ModelProcess *p) {
        return cards[card]->tenants[p->tenant].ran;
}

/* ---- programs with ranks that wait for each other ---- */

typedef struct Pattern {
        const char *name;
        uint64_t kernel;
        uint32_t every; /* the last of every so many kernels is an all-reduce */
        uint64_t request, rest;
} Pattern;

static const Pattern patterns[] = {{"training step of 90 ms", 300 * USEC, 300, 0, 0},
                                   {"the same, and 1 ms of the processor", 300 * USEC, 300, 90 * MSEC, MSEC},
                                   {"all-reduce every 9 ms", 300 * USEC, 30, 0, 0},
                                   {"all-reduce every 4 ms, kernels of 2 ms", 2 * MSEC, 2, 0, 0},
                                   {"all-reduce every 40 ms, kernels of 20 ms", 20 * MSEC, 2, 0, 0},
                                   {"all-reduce every 180 us", 30 * USEC, 6, 0, 0},
                                   {"all-reduce every 60 us", 30 * USEC, 2, 0, 0}};

static uint64_t steps; /* of the engines in the last case */

/* All-reduces in 5 s, beside a tenant of one card on each card if the cap is not the whole card. */
static double rate_of(const Pattern *c, uint32_t n, uint32_t percent, uint64_t seed) {
        ModelProcess *p[MODEL_CARDS] = {NULL};
        TenantPolicy other = fixed(50);
        uint64_t before;

        begin(n, seed);
        for (uint32_t i = 0; i < n; i++) {
                p[i] = rank(i, 1, fixed(percent), c->kernel);
                p[i]->request = c->request;
                p[i]->rest = c->rest;
                if (percent < 100)
                        (void) model_process(cards[i], model_tenant(cards[i], &other), 300 * USEC);
        }
        connect(p, n, c->every);
        run(SEC);
        before = model_done(p[0]);
        for (uint32_t i = 0; i < n; i++)
                steps -= cards[i]->steps;
        run(5 * SEC);
        for (uint32_t i = 0; i < n; i++)
                steps += cards[i]->steps;
        return (double) (model_done(p[0]) - before) / c->every;
}

/* The mean of several runs: with short all-reduces one run is off by a tenth. The one run without
 * THOROUGH has the seed that finds tests/mutants/arbiter-11.patch. */
static double rate(const Pattern *c, uint32_t n, uint32_t percent) {
        double sum = 0;

        steps = 0;
        for (uint64_t seed = few_or_all(9, 7); seed <= few_or_all(9, 10); seed++)
                sum += rate_of(c, n, percent, seed);
        return sum / few_or_all(1, 4);
}

static void all_reduce(void) {
        for (uint32_t n = 2; n <= 8; n *= 2)
                for (uint32_t k = 0; k < sizeof patterns / sizeof patterns[0]; k++) {
                        double whole = rate(&patterns[k], n, 100), together;

                        if (thorough()) {
                                alone = true;
                                printf("# %u cards, %s, apart: %.2f times as long\n", n, patterns[k].name,
                                       whole / rate(&patterns[k], n, 50));
                                alone = false;
                        }
                        together = rate(&patterns[k], n, 50);
                        printf("# %u cards, %s: %.2f times as long; %.0f steps/s a card\n", n,
                               patterns[k].name, whole / together, (double) steps / 5 / n / few_or_all(1, 4));
                        if (whole > 2.5 * together)
                                TEST_FAIL_("%u cards, %s: %.2f times as long", n, patterns[k].name,
                                           whole / together);
                }
}

/* ---- rings of sets ---- */

enum { RING = 3, STEPS = 10000 };

typedef struct Watch {
        uint64_t idle_since, longest_idle;         /* of a card, while its tenant of one card wants it */
        uint64_t served_at, longest_wait, at_last; /* of a process: ns without progress */
} Watch;

static void watch_idle(Watch *w, const Model *m, const ModelProcess *single) {
        bool idle = m->running < 0 && m->engine.owner < 0 && single->report.want_since != 0;

        if (!idle)
                w->idle_since = 0;
        else if (w->idle_since == 0)
                w->idle_since = m->now;
        if (idle && m->now - w->idle_since > w->longest_idle)
                w->longest_idle = m->now - w->idle_since;
}

static void watch_progress(Watch *w, const Model *m, const ModelProcess *p) {
        if (p->ran != w->at_last || p->report.want_since == 0 || w->served_at == 0)
                w->served_at = m->now;
        w->at_last = p->ran;
        if (m->now - w->served_at > w->longest_wait)
                w->longest_wait = m->now - w->served_at;
}

static Random random_state;

static uint32_t draw(uint32_t below) {
        return random_below(&random_state, below);
}

/* Changes one thing at random: the pause of a rank, the pause of a tenant of one card, or the delay
 * of a card's processes or of its arbiter. */
static void change(ModelProcess *ranks[RING][2], ModelProcess *singles[]) {
        static const uint64_t rests[] = {0, 0, 300 * USEC, 3 * MSEC, 20 * MSEC};

        switch (draw(4)) {
        case 0:
                singles[draw(RING)]->rest = rests[draw(5)];
                break;
        case 1:
                cards[draw(RING)]->late = draw(4) * 100 * USEC;
                break;
        case 2:
                cards[draw(RING)]->arbiter_late = draw(3) * 40 * USEC;
                break;
        default:
                ranks[draw(RING)][draw(2)]->rest = rests[draw(5)];
        }
}

/* {0,1}, {1,2} and {2,0}, each of two ranks, and a tenant of one card on each card. */
static void rings(void) {
        ModelProcess *ranks[RING][2], *singles[RING];
        Watch watches[RING * 3] = {{0}}, idle[RING] = {{0}};
        uint64_t meanwhile = 0;

        begin(RING, 3);
        random_state = (Random){5};
        for (uint32_t k = 0; k < RING; k++) {
                for (uint32_t i = 0; i < 2; i++)
                        ranks[k][i] = rank((k + i) % RING, k + 1, weighted(1, false), (1 + k) * 100 * USEC);
                connect(ranks[k], 2, 4);
                ranks[k][0]->request = ranks[k][1]->request = 20 * (1 + k) * 100 * USEC;
                singles[k] = rank(k, 0, weighted(1, false), 200 * USEC);
                singles[k]->request = 5 * MSEC;
        }
        for (uint32_t step = 0; step < STEPS; step++) {
                if (step % 10 == 0)
                        change(ranks, singles);
                run(USEC * (100 + draw(900)));
                for (uint32_t k = 0; k < RING; k++) {
                        watch_idle(&idle[k], cards[k], singles[k]);
                        watch_progress(&watches[k], cards[k], singles[k]);
                        for (uint32_t i = 0; i < 2; i++)
                                watch_progress(&watches[RING + 2 * k + i], cards[k], ranks[k][i]);
                        meanwhile += joined.sets[k].n > 1 && cards[k]->engine.tenants[2].window.open;
                }
        }
        for (uint32_t k = 0; k < RING; k++) {
                printf("# card %u: kept idle for %.2f ms at most; tenant of one card: waited for %.1f ms\n",
                       k, (double) idle[k].longest_idle / 1e6, (double) watches[k].longest_wait / 1e6);
                ASSERT_TRUE(idle[k].longest_idle <= JOINED_DRAIN_NS);
                ASSERT_TRUE(watches[k].longest_wait < 100 * MSEC);
        }
        for (uint32_t k = RING; k < 3 * RING; k++)
                ASSERT_TRUE(watches[k].longest_wait < 400 * MSEC);
        ASSERT_TRUE(meanwhile > STEPS / 10);
}

/* ---- a set that is alone on its cards ---- */

/* Under a cap a request waits until the tokens suffice, and no longer than that. */
static void capped_alone(void) {
        ModelProcess *p[2];

        begin(2, 9);
        for (uint32_t i = 0; i < 2; i++) {
                p[i] = rank(i, 1, fixed(50), 100 * USEC);
                p[i]->request = MSEC;
                p[i]->rest = 500 * USEC;
        }
        run(2 * SEC);
        for (uint32_t i = 0; i < 2; i++)
                p[i]->longest = 0;
        run(3 * SEC);
        for (uint32_t i = 0; i < 2; i++) {
                printf("# card %u: requests of 1 ms took %.1f ms at most\n", i, (double) p[i]->longest / 1e6);
                ASSERT_TRUE(p[i]->longest < 20 * MSEC);
        }
}

/* An all-reduce begins on one card while the other rank still computes on the processor. */
static void late_rank(void) {
        ModelProcess *p[2];
        uint64_t before;

        begin(2, 11);
        for (uint32_t i = 0; i < 2; i++) {
                p[i] = rank(i, 1, fixed(50), MSEC);
                p[i]->request = 10 * MSEC;
        }
        p[1]->rest = 30 * MSEC;
        connect(p, 2, 10);
        run(2 * SEC);
        before = model_done(p[0]);
        run(8 * SEC);
        printf("# 10 ms of work and 30 ms of the processor: %.1f ms\n",
               8e4 / (double) (model_done(p[0]) - before + 1));
        ASSERT_TRUE(model_done(p[0]) - before > UINT64_C(8) * 1000 / 6);
        ASSERT_TRUE(cards[0]->events == 0);
}

/* A process that has reported the window's end does not count its later launches in a window of the
 * same number. So an extension after that report gets a new number. */
static void extended_after_its_end(void) {
        static Engine e;
        TenantPolicy policy = weighted(1, false);
        TenantReport report = {.want_since = SEC, .n_rows = 1, .n_active = 1};
        uint32_t number;

        engine_init(&e, SEC);
        ASSERT_TRUE(engine_add(&e, SEC, &policy, 0, false) == 0);
        engine_report(&e, SEC, 0, &report);
        e.tenants[0].planned_end = SEC + 4 * MSEC;
        (void) engine_step(&e, SEC);
        ASSERT_TRUE(e.tenants[0].window.open);
        number = e.tenants[0].window.number;
        report.ended = true;
        engine_report(&e, SEC + 3 * MSEC, 0, &report);
        e.tenants[0].planned_end = SEC + 8 * MSEC;
        (void) engine_step(&e, SEC + 3 * MSEC);
        ASSERT_TRUE(e.tenants[0].window.open && e.tenants[0].window.closes == SEC + 8 * MSEC);
        ASSERT_TRUE(e.tenants[0].window.number != number);
}

/* ---- containers that use one card at a time ---- */

/* A container that uses one of its two cards is scheduled like a container with one card. */
static void idle_card(void) {
        ModelProcess *p, *beside[2];

        begin(2, 4);
        p = rank(0, 1, weighted(1, false), 300 * USEC);
        (void) rank(1, 1, weighted(1, false), 300 * USEC);
        cards[1]->processes[0].dead = true;
        for (uint32_t i = 0; i < 2; i++)
                beside[i] = rank(i, 0, weighted(1, false), 300 * USEC);
        run(5 * SEC);
        ASSERT_TRUE(ran(0, p) > 47 * 5 * SEC / 100 && ran(0, beside[0]) > 47 * 5 * SEC / 100);
        ASSERT_TRUE(ran(1, beside[1]) > 98 * 5 * SEC / 100);
}

/* The stages of a pipeline: when a stage on one card has ended, that card delays the stage on the
 * next one by at most 5 ms. */
static void change_of_cards(void) {
        ModelProcess *p[2];

        begin(2, 10);
        for (uint32_t i = 0; i < 2; i++) {
                p[i] = rank(i, 1, weighted(1, false), 200 * USEC);
                p[i]->request = 5 * MSEC;
                p[i]->rest = 1000 * SEC;
        }
        for (uint32_t i = 0; i < 2; i++)
                (void) rank(0, 0, weighted(4, false), 300 * USEC);
        run(SEC);
        for (uint32_t k = 0; k < 40; k++) {
                p[0]->request = (5 + k) * MSEC;
                p[0]->look = cards[0]->now;
                for (uint32_t n = p[0]->n_latencies; p[0]->n_latencies == n;)
                        run(100 * USEC);
                p[1]->look = cards[1]->now + (1 + k % 4) * MSEC;
                run(150 * MSEC + k * 731 * USEC);
        }
        printf("# a stage of 5 ms took %.1f ms at most\n", (double) p[1]->longest / 1e6);
        ASSERT_TRUE(p[1]->n_latencies >= 40 && p[1]->longest < 20 * MSEC);
}

/* A kernel that does not end delays neither the container's other card nor other tenants. */
static void endless_kernel(void) {
        ModelProcess *p[2], *beside[2];
        uint64_t before[3];

        begin(2, 5);
        p[0] = rank(0, 1, weighted(1, false), 100 * SEC);
        p[1] = rank(1, 1, weighted(1, false), 300 * USEC);
        for (uint32_t i = 0; i < 2; i++)
                beside[i] = rank(i, 0, weighted(1, false), 300 * USEC);
        run(4 * SEC);
        before[0] = ran(1, p[1]);
        before[1] = ran(0, beside[0]);
        before[2] = ran(1, beside[1]);
        run(5 * SEC);
        ASSERT_TRUE(ran(1, p[1]) - before[0] > 45 * 5 * SEC / 100);
        ASSERT_TRUE(ran(0, beside[0]) - before[1] > 45 * 5 * SEC / 100);
        ASSERT_TRUE(ran(1, beside[1]) - before[2] > 45 * 5 * SEC / 100);
}

/* A false report about one card costs other tenants nothing of their share of the container's other
 * card. */
static void false_reports(void) {
        static const ModelMisreport misreports[] = {MISREPORT_NEVER_DRAINS, MISREPORT_ABSENT, MISREPORT_SHORT,
                                                    MISREPORT_IDLE};

        for (uint32_t k = 0; k < sizeof misreports / sizeof misreports[0]; k++) {
                ModelProcess *beside[2];

                begin(2, 8);
                rank(0, 1, fixed(50), 300 * USEC)->misreport = misreports[k];
                (void) rank(1, 1, fixed(50), 300 * USEC);
                for (uint32_t i = 0; i < 2; i++)
                        beside[i] = rank(i, 0, fixed(50), 300 * USEC);
                run(5 * SEC);
                for (uint32_t i = 0; i < 2; i++) {
                        printf("# misreport %u, card %u: %.1f %%\n", misreports[k], i,
                               (double) ran(i, beside[i]) / 5e7);
                        ASSERT_TRUE(ran(i, beside[i]) > 45 * 5 * SEC / 100);
                }
        }
}

/* A joined window stays open during a pause. A tenant that waits for the card keeps its share. */
static void paused_windows(void) {
        static const uint64_t works[] = {100 * USEC, 10 * USEC}, rests[] = {300 * USEC, 450 * USEC};

        for (uint32_t k = 0; k < 2; k++) {
                ModelProcess *p, *beside;

                begin(2, 14);
                (void) rank(0, 1, weighted(1, false), 100 * USEC);
                p = rank(1, 1, weighted(1, false), works[k]);
                p->request = works[k];
                p->rest = rests[k];
                beside = rank(1, 0, weighted(1, false), 300 * USEC);
                run(5 * SEC);
                printf("# beside a set that pauses for %" PRIu64 " us: %.1f %%\n", rests[k] / USEC,
                       (double) ran(1, beside) / 5e7);
                ASSERT_TRUE(ran(1, beside) > 40 * 5 * SEC / 100);
        }
}

/* A container that is late on one card after each window is charged for its other card, which idles
 * meanwhile. */
static void other_card_is_late(void) {
        ModelProcess *p, *beside;

        begin(2, 14);
        (void) rank(0, 1, weighted(1, false), 9 * MSEC);
        p = rank(1, 1, weighted(1, false), 500 * USEC);
        p->request = 500 * USEC;
        p->rest = 2 * MSEC;
        beside = rank(1, 0, weighted(1, false), 300 * USEC);
        run(5 * SEC);
        printf("# beside a set of which another card is late: %.1f %%\n", (double) ran(1, beside) / 5e7);
        ASSERT_TRUE(ran(1, beside) > 40 * 5 * SEC / 100);
}

/* When a card leaves the set, and when another arbiter takes over, the tenants keep their
 * shares. */
static void card_leaves_and_arbiter_is_replaced(void) {
        ModelProcess *p[3], *beside;
        uint64_t before[2];

        begin(3, 6);
        for (uint32_t i = 0; i < 3; i++)
                p[i] = rank(i, 1, weighted(1, false), 300 * USEC);
        beside = rank(0, 0, weighted(1, false), 300 * USEC);
        run(SEC);
        model_leave(cards[2], p[2]->tenant);
        for (uint32_t i = 0; i < 2; i++) {
                model_take_over(cards[i]);
                cards[i]->engine.tenants[cards[i]->tenants[p[i]->tenant].engine].set = 1;
        }
        joined = (Joined){.next = 0};
        before[0] = ran(0, p[0]);
        before[1] = ran(0, beside);
        run(5 * SEC);
        ASSERT_TRUE(ran(0, p[0]) - before[0] > 45 * 5 * SEC / 100);
        ASSERT_TRUE(ran(0, beside) - before[1] > 45 * 5 * SEC / 100);
}

/* A tenant with high priority on one of the cards goes first, and the set has what it leaves. */
static void high_priority(void) {
        ModelProcess *p[2], *high;
        uint64_t longest = 0;

        begin(2, 7);
        for (uint32_t i = 0; i < 2; i++)
                p[i] = rank(i, 1, weighted(1, false), 300 * USEC);
        connect(p, 2, 10);
        high = rank(0, 0, weighted(1, true), 500 * USEC);
        high->request = 5 * MSEC;
        high->rest = 15 * MSEC;
        run(5 * SEC);
        for (uint32_t i = 0; i < high->n_latencies; i++)
                longest = high->latencies[i] > longest ? high->latencies[i] : longest;
        printf("# requests of 5 ms: %u, %.2f ms at most; the set beside them: %.1f %%\n", high->n_latencies,
               (double) longest / 1e6, (double) ran(0, p[0]) / 5e7);
        ASSERT_TRUE(longest < 10 * MSEC);
        ASSERT_TRUE(ran(0, p[0]) > 60 * 5 * SEC / 100);
        ASSERT_TRUE(ran(1, p[1]) > 60 * 5 * SEC / 100);
}

/* A set that pauses keeps its cards from others for a moment only, even with high priority. */
static void pauses_of_a_set(void) {
        for (uint32_t high = 0; high < 2; high++) {
                ModelProcess *p[2], *beside;

                begin(2, 10);
                for (uint32_t i = 0; i < 2; i++) {
                        p[i] = rank(i, 1, weighted(1, high > 0), 300 * USEC);
                        p[i]->request = 2 * MSEC;
                        p[i]->rest = 20 * MSEC;
                }
                connect(p, 2, 4);
                beside = rank(0, 0, weighted(1, false), 300 * USEC);
                run(5 * SEC);
                printf("# beside a set that pauses for 20 ms, %s priority: %.1f %%\n",
                       high ? "high" : "normal", (double) ran(0, beside) / 5e7);
                ASSERT_TRUE(ran(0, beside) > 70 * 5 * SEC / 100);
        }
}

/* Two containers that share by weight, each on both cards. */
static void weights_of_sets(void) {
        ModelProcess *p[2][2];

        begin(2, 8);
        for (uint32_t set = 0; set < 2; set++) {
                for (uint32_t i = 0; i < 2; i++)
                        p[set][i] = rank(i, 1 + set, weighted(1 + 2 * set, false), 300 * USEC);
                connect(p[set], 2, 10);
        }
        run(10 * SEC);
        for (uint32_t i = 0; i < 2; i++) {
                double light = (double) ran(i, p[0][i]) / (double) (ran(i, p[0][i]) + ran(i, p[1][i]));

                printf("# weights of 1 and 3, card %u: %.1f %% for the first\n", i, 100 * light);
                ASSERT_TRUE(light > 0.23 && light < 0.27);
        }
}

/* {0,1}, {1,2} and {2,0}: one at a time can have its cards. */
static void equal_sets_in_a_ring(void) {
        ModelProcess *p[RING][2];

        begin(RING, 9);
        for (uint32_t k = 0; k < RING; k++) {
                for (uint32_t i = 0; i < 2; i++)
                        p[k][i] = rank((k + i) % RING, k + 1, weighted(1, false), 300 * USEC);
                connect(p[k], 2, 10);
        }
        run(10 * SEC);
        for (uint32_t k = 0; k < RING; k++) {
                double had = (double) ran(k, p[k][0]) / (double) (10 * SEC);

                printf("# set %u of the ring: %.1f %%\n", k, 100 * had);
                ASSERT_TRUE(had > 0.29 && had < 0.35);
        }
}

enum { MIXED_CARDS = 4, MIXED_SETS = 3 };

/* A container with work on at least two of the cards; the ranks wait for each other. */
static uint32_t add_set(uint32_t set, TenantPolicy policy, ModelProcess **ret) {
        uint32_t n = 0, chosen = draw(1 << MIXED_CARDS), any = draw(MIXED_CARDS);

        chosen |= 1U << any | 1U << (any + 1 + draw(MIXED_CARDS - 1)) % MIXED_CARDS;
        for (uint32_t i = 0; i < MIXED_CARDS; i++)
                if (chosen >> i & 1)
                        ret[n++] = rank(i, set, policy, (1 + draw(20)) * 50 * USEC);
        connect(ret, n, 1 + draw(20));
        return n;
}

/* Pauses for which all ranks of a container have the same number of kernels. */
static void add_pauses(ModelProcess *const p[], uint32_t n) {
        static const uint64_t rests[] = {0, 300 * USEC, 3 * MSEC, 20 * MSEC, 100 * MSEC};
        uint32_t kernels = 1 + draw(40), rest = draw(5);

        for (uint32_t i = 0; rest > 0 && i < n; i++) {
                p[i]->request = kernels * p[i]->kernel;
                p[i]->rest = rests[rest];
        }
}

/* Whether a process of a random mixture of containers on two to four cards, and of tenants of one
 * card, does nothing for so many ns. By weight, or by caps that fit. */
static bool one_stands_still(uint32_t k, bool caps, bool pauses, uint64_t ns) {
        ModelProcess *p[(MIXED_SETS + 1) * MIXED_CARDS];
        uint64_t before[sizeof p / sizeof *p];
        uint32_t n = 0, first;
        bool still = false;

        begin(MIXED_CARDS, 100 + k);
        for (uint32_t set = 1; set <= MIXED_SETS + MIXED_CARDS; set++) {
                TenantPolicy policy = caps ? fixed(10 + draw(16)) : weighted(1 + draw(4), false);

                first = n;
                if (set <= MIXED_SETS)
                        n += add_set(set, policy, &p[n]);
                else
                        p[n++] = rank(set - MIXED_SETS - 1, 0, policy, (1 + draw(20)) * 50 * USEC);
                if (pauses)
                        add_pauses(&p[first], n - first);
        }
        run(SEC);
        for (uint32_t i = 0; i < n; i++)
                before[i] = model_done(p[i]);
        run(ns);
        for (uint32_t i = 0; i < n; i++)
                still = still || model_done(p[i]) == before[i];
        return still;
}

static uint32_t n_still(uint32_t n, bool caps, bool pauses, uint64_t ns) {
        uint32_t still = 0;

        for (uint32_t k = 0; k < n; k++)
                still += one_stands_still(k, caps, pauses, ns);
        printf("# of %u mixtures by %s%s, %u have a process that does nothing for %u s\n", n,
               caps ? "caps" : "weight", pauses ? ", with pauses" : "", still, (unsigned) (ns / SEC));
        return still;
}

/* By weight each process goes on. Under caps a rank may wait on the card for another one, for more
 * than the cap allows, so that the container pays for it later. */
static void mixtures(void) {
        uint32_t n = few_or_all(10, 40);

        random_state = (Random){6};
        ASSERT_INT(n_still(n, false, false, 5 * SEC), 0);
        ASSERT_INT(n_still(n, false, true, 5 * SEC), 0);
        ASSERT_TRUE(n_still(n, true, false, 2 * SEC) <= n / 5);
        ASSERT_TRUE(n_still(n, true, true, 2 * SEC) <= n / 5);
}

int main(void) {
        return TEST_MAIN(TEST(all_reduce), TEST(rings), TEST(capped_alone), TEST(late_rank),
                         TEST(extended_after_its_end), TEST(idle_card), TEST(change_of_cards),
                         TEST(endless_kernel), TEST(false_reports), TEST(paused_windows),
                         TEST(other_card_is_late), TEST(card_leaves_and_arbiter_is_replaced),
                         TEST(high_priority), TEST(pauses_of_a_set), TEST(weights_of_sets),
                         TEST(equal_sets_in_a_ring), TEST(mixtures));
}
