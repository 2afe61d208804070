/* SPDX-License-Identifier: Apache-2.0 */

/* Whose the time is, for stays that are written down here. Times are us from the beginning. */

#include "arbiter/attribute.h"
#include "arbiter/engine.h"

#include <string.h>

#include "arbiter/window.h"
#include "test.h"

#define US UINT64_C(1000)
#define T0 UINT64_C(1000000000)
#define NOTICED                                                                                              \
        (2 * NOTIFY_LATENCY_NS - NOTIFY_LATENCY_NS * 3 / 4) /* ns that its own word is later than it went */

static Engine e;

static void begin(uint32_t tenants) {
        const TenantPolicy policy = {.gated = true, .rate = POLICY_PPM / 2, .weight = 1};

        engine_init(&e, T0);
        for (uint32_t i = 0; i < tenants; i++)
                ASSERT_INT(engine_add(&e, T0, &policy, 0, false), i);
}

/* It has a window, and something on the card from then on. */
static void comes(uint32_t i, uint64_t at) {
        EngineTenant *t = &e.tenants[i];

        t->state = ENGINE_OPEN;
        t->usage = (WindowUsage){0};
        t->opened = t->expected_start = t->first_launch = T0 + at * US;
        t->window.closes = T0 + 1000000 * US;
        t->report = (TenantReport){.want_since = 1, .in_flight = 100 * US, .n_active = 1, .n_working = 1};
}

static void goes(uint32_t i, uint64_t at) {
        EngineTenant *t = &e.tenants[i];

        t->state = ENGINE_CLOSING;
        t->window.closes = T0;
        t->reported_at = T0 + 10000000 * US;
        t->report.drained = true;
        t->report.in_flight = 0;
        t->report.drained_at = T0 + at * US + NOTICED;
}

static void pass(uint64_t until) {
        attribute_time(&e, T0 + until * US);
        e.now = T0 + until * US;
}

static uint64_t had(uint32_t i) {
        return e.tenants[i].usage.own / US;
}

static uint64_t turns(uint32_t i) {
        return e.tenants[i].usage.others / US;
}

/* It wrote that it rested meanwhile. */
static void what_is_returned(void) {
        const EngineTenant *t = &e.tenants[0];

        begin(1);
        comes(0, 0);
        pass(1000);
        attribute_return(&e, &e.tenants[0], 300 * US);
        ASSERT_INT(had(0), 700);
        ASSERT_INT(t->window.used, 700 * US);
        ASSERT_INT(t->charged, 700 * US);
}

/* Of no more than it had since it was last asked, and only where nobody else could have had it. */
static void what_it_wrote(void) {
        EngineTenant *t = &e.tenants[0];

        begin(1);
        comes(0, 0);
        pass(1000);
        t->window.sole = true;
        t->report.idle_time = 300 * US;
        window_apply_idle(&e, t, e.now);
        ASSERT_INT(had(0), 700);
        pass(2000);
        t->report.idle_time = UINT64_MAX / 2;
        window_apply_idle(&e, t, e.now);
        ASSERT_INT(had(0), 700);
        ASSERT_INT(t->idle_time, 1300 * US);
        pass(3000);
        t->window.sole = false;
        t->report.idle_time = UINT64_MAX;
        window_apply_idle(&e, t, e.now);
        ASSERT_INT(had(0), 1700);
}

static void alone(void) {
        begin(1);
        comes(0, 0);
        pass(3000);
        pass(7000);
        ASSERT_INT(had(0), 7000);
        ASSERT_INT(turns(0), 0);
        ASSERT_INT(e.tenants[0].window.used, 7000 * US);
}

static void for_long(void) {
        begin(2);
        comes(0, 0);
        comes(1, 2000);
        pass(2000);
        pass(12000);
        ASSERT_INT(had(0), 7000);
        ASSERT_INT(had(1), 5000);
        ASSERT_INT(turns(0), 5000);
        goes(0, 14000);
        pass(20000);
        ASSERT_INT(had(0), 8000 + 100); /* to notice it */
        ASSERT_INT(had(1), 6000 + 6000);
}

/* The contexts of a container have turns of their own. */
static void several_contexts(void) {
        begin(2);
        comes(0, 0);
        comes(1, 0);
        e.tenants[1].report.n_working = 3;
        pass(8000);
        ASSERT_INT(had(0), 2000);
        ASSERT_INT(had(1), 6000);
}

typedef struct Meeting {
        uint64_t left,
                together; /* us: what the first had left by its own word when the second came; until it went */
        bool trusted;
        uint64_t second; /* what the second had of that */
} Meeting;

/* The first came a long time before, the second 5 ms after it. */
static void less_than_a_turn(void) {
        static const Meeting meetings[] = {
                {50, 50, false, 0},     {0, 400, true, 0},      {2000, 800, true, 0}, /* no turn was over */
                {50, 1050, true, 1000}, {50, 1050, false, 525},                       /* one was */
                {900, 1050, true, 525},                         /* which one nobody knows */
                {1050, 1050, true, 0},                          /* its own word, and it was true */
                {50, 1500, true, 750},  {50, 4000, true, 2000}, /* more than one */
        };

        for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++) {
                const Meeting *o = &meetings[i];

                begin(2);
                comes(0, 0);
                e.tenants[0].report.in_flight = (5000 + o->left) * US;
                e.tenants[0].slice_credit = o->trusted ? 1000 * US : 0;
                comes(1, 5000);
                pass(5000);
                goes(0, 5000 + o->together);
                pass(5000 + o->together + 200);
                ASSERT_INT(had(0), 5000 + o->together - o->second + 100);
                ASSERT_INT(had(1), o->second + 200);
                ASSERT_INT(turns(1), o->together - o->second);
        }
}

static void trust_is_used_up(void) {
        EngineTenant *t;

        begin(1);
        t = &e.tenants[0];
        attribute_credit(t);
        ASSERT_TRUE(t->slice_credit < 1000 * US);
        attribute_credit(t);
        ASSERT_INT(t->slice_credit, 1000 * US);
        for (unsigned i = 0; i < 9; i++)
                attribute_credit(t);
        ASSERT_INT(t->slice_credit, 2000 * US);
}

/* Who has the window and is not there yet has what nobody else has. */
static void who_is_late(void) {
        begin(2);
        comes(0, 0);
        comes(1, 1000);
        e.tenants[1].first_launch = T0 + 1600 * US;
        goes(0, 1200);
        pass(2000);
        ASSERT_INT(had(0), 1200 + 100);
        ASSERT_INT(had(1), 800);
        ASSERT_INT(e.tenants[1].usage.unused / US, 400);
}

/* And from MAX_START_DELAY_NS on it counts as there, whatever it says. */
static void who_says_that_he_is_late(void) {
        begin(2);
        comes(0, 0);
        comes(1, 1000);
        e.tenants[1].first_launch = T0 + 9000 * US;
        pass(9000);
        ASSERT_INT(had(0), 3000 + 3000);
        ASSERT_INT(had(1), 3000);
}

/* Nobody pays for a rest, and who is there alone meanwhile has all of it. */
static void who_rests(void) {
        begin(2);
        comes(0, 0);
        comes(1, 0);
        pass(4000);
        e.tenants[1].idle_since = e.now;
        attribute_leave(&e.tenants[1]);
        pass(7000);
        ASSERT_INT(had(0), 2000 + 3000);
        ASSERT_INT(had(1), 2000);
        e.tenants[1].idle_since = 0;
        pass(11000);
        ASSERT_INT(had(0), 2000 + 3000 + 2000);
        ASSERT_INT(had(1), 2000 + 2000);
}

static uint64_t seed;

static uint64_t draw(uint64_t below) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (seed >> 33) % below;
}

/* However they come and go: what all of them had is all of the time in which somebody was there or
 * had a window, and what noticing takes. */
static void the_parts_are_all_of_it(void) {
        for (seed = 1; seed < 2000; seed++) {
                uint64_t used = 0, gone = 0, now = 0;

                begin(4);
                comes(0, 0); /* is always there */
                for (unsigned step = 0; step < 40; step++) {
                        uint32_t i = 1 + (uint32_t) draw(3);

                        if (e.tenants[i].state == ENGINE_CLOSED)
                                comes(i, now + draw(300));
                        else if (e.tenants[i].state == ENGINE_OPEN && e.tenants[i].usage.arrived != 0) {
                                goes(i, now + draw(200));
                                gone++;
                        }
                        attribute_credit(&e.tenants[i]);
                        now += 300 + draw(3000);
                        pass(now);
                        for (uint32_t k = 1; k < 4; k++)
                                if (e.tenants[k].state == ENGINE_CLOSING)
                                        e.tenants[k].state = ENGINE_CLOSED;
                }
                for (uint32_t i = 0; i < 4; i++)
                        used += e.tenants[i].window.used;
                if (used / US + 200 < now || used / US > now + 100 * gone)
                        TEST_FAIL_("seed %llu: %llu of %llu us, %llu gone", (unsigned long long) seed,
                                   (unsigned long long) (used / US), (unsigned long long) now,
                                   (unsigned long long) gone);
        }
}

/* Its gate measures from when a kernel could have run, others' turns included, and may say so only
 * when the window is over and paid for. */
static void what_is_measured_late(void) {
        const EngineTenant *t = &e.tenants[0];
        TenantReport report;

        begin(2);
        comes(0, 0);
        comes(1, 0);
        pass(4000);
        goes(0, 4000);
        pass(4200);
        window_step(&e, 0, e.now);
        ASSERT_INT(t->state, ENGINE_CLOSED);
        report = t->report;
        report.busy = 4000 * US;
        engine_report(&e, e.now + 10000 * US, 0, &report);
        ASSERT_INT(t->window.used, 2000 * US);
        report.busy = 9000 * US; /* and this is more than that */
        engine_report(&e, e.now + 10000 * US, 0, &report);
        ASSERT_INT(t->window.used, 7000 * US);
}

int main(void) {
        return TEST_MAIN(TEST(alone), TEST(what_is_returned), TEST(what_it_wrote), TEST(for_long),
                         TEST(several_contexts), TEST(less_than_a_turn), TEST(trust_is_used_up),
                         TEST(who_is_late), TEST(who_says_that_he_is_late), TEST(who_rests),
                         TEST(the_parts_are_all_of_it), TEST(what_is_measured_late));
}
