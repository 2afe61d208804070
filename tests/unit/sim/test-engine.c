/* SPDX-License-Identifier: Apache-2.0 */

/* Examples of what the engines of a card do. */

#include "engine-lab.h"

static void one_after_the_other(void) {
        EngineShared *m = lab_memory();
        EngineUser u = lab_user(m, 0, 0);
        uint64_t a = lab_give(&u, 0, ENGINE_RUN, 10 * US, 100);
        uint64_t mark = lab_give(&u, 0, ENGINE_EVENT, 0, 100);
        uint64_t b = lab_give(&u, 0, ENGINE_RUN, 5 * US, 100);
        uint64_t late = lab_give(&u, 0, ENGINE_RUN, 5 * US, 100 * US);

        engine_look(&u, 100);
        ASSERT_INT(lab_time(&u, 0, a), UINT64_MAX);
        ASSERT_INT(engine_expect(&u, 0, b, 100), 100 + 15 * US);
        engine_look(&u, 100 + 10 * US - 1);
        ASSERT_INT(lab_time(&u, 0, a), UINT64_MAX);
        engine_look(&u, 100 + 10 * US);
        ASSERT_INT(lab_time(&u, 0, a), 100 + 10 * US);
        ASSERT_INT(lab_time(&u, 0, mark), 100 + 10 * US);
        engine_look(&u, 1000 * US);
        ASSERT_INT(lab_time(&u, 0, b), 100 + 15 * US);
        ASSERT_INT(lab_time(&u, 0, late), 105 * US); /* submitted after the card became free */
        lab_done(m, &u, 1);
}

static void groups_take_turns(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t a, b;

        a = lab_give(&u[0], 0, ENGINE_RUN, 5 * MS, 0);
        b = lab_give(&u[1], 0, ENGINE_RUN, 2 * MS + 500 * US, 0);
        engine_look(&u[0], 100 * MS);
        ASSERT_INT(lab_time(&u[1], 0, b),
                   5 * MS + 500 * US); /* two time slices of the other group, then half of its third */
        ASSERT_INT(lab_time(&u[0], 0, a), 7 * MS + 500 * US);
        lab_done(m, u, 2);
}

/* A group that comes to a busy card waits for the end of a time slice, not for the end of a
 * kernel. */
static void a_kernel_is_interrupted(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t a = lab_give(&u[0], 0, ENGINE_RUN, 500 * MS, 0),
                 b = lab_give(&u[1], 0, ENGINE_RUN, 100 * US, 10 * MS + 1);

        engine_look(&u[1], 600 * MS);
        ASSERT_INT(lab_time(&u[1], 0, b), 11 * MS + 100 * US);
        ASSERT_INT(lab_time(&u[0], 0, a), 500 * MS + 100 * US);
        lab_done(m, u, 2);
}

static void a_change_costs(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        EngineUsage usage;
        uint64_t a, b;

        m->settings.change = 50 * US;
        a = lab_give(&u[0], 0, ENGINE_RUN, 2 * MS, 0);
        b = lab_give(&u[1], 0, ENGINE_RUN, 2 * MS, 0);
        engine_look(&u[0], 100 * MS);
        ASSERT_INT(lab_time(&u[0], 0, a),
                   3 * MS + 150 * US); /* the first time slice is a switch from no group */
        ASSERT_INT(lab_time(&u[1], 0, b), 4 * MS + 200 * US);
        engine_usage(u[0].engine, 100 * MS, &usage);
        ASSERT_INT(usage.busy.all, 4 * MS);
        lab_done(m, u, 2);
}

/* An event is processed in a time slice of its group, before the switch that a kernel needs. One
 * that follows a copy is processed by the copy engine. */
static void events_wait_for_a_time_slice(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t a, before, b, after, copy, copied;

        m->settings.change = 50 * US;
        a = lab_give(&u[0], 0, ENGINE_RUN, 3 * MS, 0);
        before = lab_give(&u[1], 0, ENGINE_EVENT, 0, 100 * US);
        b = lab_give(&u[1], 0, ENGINE_RUN, 200 * US, 100 * US);
        after = lab_give(&u[1], 0, ENGINE_EVENT, 0, 100 * US);
        copy = lab_give(&u[1], 1, ENGINE_UP, 60 * US, 100 * US);
        copied = lab_give(&u[1], 1, ENGINE_EVENT, 0, 100 * US);
        engine_look(&u[1], 100 * MS);
        ASSERT_INT(lab_time(&u[1], 1, copy), 160 * US);
        ASSERT_INT(lab_time(&u[1], 1, copied), 160 * US);
        ASSERT_INT(lab_time(&u[1], 0, before), MS + 50 * US);
        ASSERT_INT(lab_time(&u[1], 0, b), MS + 300 * US);
        ASSERT_INT(lab_time(&u[1], 0, after), MS + 300 * US);
        ASSERT_INT(lab_time(&u[0], 0, a), 3 * MS + 350 * US);
        lab_done(m, u, 2);
}

/* A time slice that is used for an event only takes no time, and needs no switch. */
static void an_event_alone(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t a, event;

        m->settings.change = 50 * US;
        a = lab_give(&u[0], 0, ENGINE_RUN, 3 * MS, 0);
        event = lab_give(&u[1], 0, ENGINE_EVENT, 0, 100 * US);
        engine_look(&u[1], 100 * MS);
        ASSERT_INT(lab_time(&u[1], 0, event), MS + 50 * US);
        ASSERT_INT(lab_time(&u[0], 0, a), 3 * MS + 50 * US);
        lab_done(m, u, 2);
}

static void channels_of_a_group(void) {
        EngineShared *m = lab_memory();
        EngineUser u = lab_user(m, 3, 0);
        uint64_t a = lab_give(&u, 0, ENGINE_RUN, 10 * US, 0), b = lab_give(&u, 5, ENGINE_RUN, 20 * US, 0);
        uint64_t a2 = lab_give(&u, 0, ENGINE_RUN, 10 * US, 0), b2;

        b2 = lab_give(&u, 7, ENGINE_RUN, 1 * US, 5 * US);
        engine_look(&u, MS);
        ASSERT_INT(lab_time(&u, 0, a), 10 * US);
        ASSERT_INT(lab_time(&u, 5, b), 30 * US);
        ASSERT_INT(lab_time(&u, 7, b2), 31 * US); /* its turn comes, and it interrupts no kernel */
        ASSERT_INT(lab_time(&u, 0, a2), 41 * US); /* behind 7 comes 0 */
        lab_done(m, &u, 1);
}

static void waits_for_another_channel(void) {
        EngineShared *m = lab_memory();
        EngineUser u = lab_user(m, 0, 0);
        uint64_t a = lab_give(&u, 1, ENGINE_RUN, 30 * US, 0), w, b;

        w = lab_give(&u, 0, ENGINE_AFTER, engine_after(1, a), 0);
        b = lab_give(&u, 0, ENGINE_RUN, 5 * US, 0);
        engine_look(&u, MS);
        ASSERT_INT(lab_time(&u, 0, w), 30 * US);
        ASSERT_INT(lab_time(&u, 0, b), 35 * US);
        lab_done(m, &u, 1);
}

static void copies_beside_kernels(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t k = lab_give(&u[0], 0, ENGINE_RUN, 100 * US, 0),
                 up = lab_give(&u[0], 1, ENGINE_UP, 60 * US, 0);
        uint64_t down = lab_give(&u[0], 2, ENGINE_DOWN, 10 * US, 0),
                 up2 = lab_give(&u[1], 0, ENGINE_UP, 60 * US, 0);

        engine_look(&u[0], MS);
        ASSERT_INT(lab_time(&u[0], 0, k), 100 * US);
        ASSERT_INT(lab_time(&u[0], 1, up), 60 * US);
        ASSERT_INT(lab_time(&u[0], 2, down), 10 * US);
        ASSERT_INT(lab_time(&u[1], 0, up2), 120 * US); /* there is one copy engine for each direction */
        lab_done(m, u, 2);
}

static void a_ring_gets_full(void) {
        EngineShared *m = lab_memory();
        EngineUser u = lab_user(m, 0, 0);
        uint64_t position;

        for (unsigned i = 0; i < ENGINE_RING_SIZE; i++)
                (void) lab_give(&u, 0, ENGINE_RUN, 10 * US, 0);
        ASSERT_FALSE(engine_give(&u, 0, ENGINE_RUN, 1, 0, &position));
        engine_look(&u, 10 * US - 1);
        ASSERT_FALSE(engine_has_room(&u, 0, 1));
        engine_look(&u, 20 * US);
        ASSERT_TRUE(engine_has_room(&u, 0, 2));
        ASSERT_FALSE(engine_has_room(&u, 0, 3));
        ASSERT_INT(lab_give(&u, 0, ENGINE_RUN, 10 * US, 20 * US), ENGINE_RING_SIZE);
        engine_look(&u, 1000 * MS);
        ASSERT_INT(lab_time(&u, 0, ENGINE_RING_SIZE), 10 * US * (ENGINE_RING_SIZE + 1));
        lab_done(m, &u, 1);
}

/* Its work ends at that time, whenever a process looks; the next group of the same slot begins with
 * nothing. */
static void a_group_goes(void) {
        EngineShared *m = lab_memory();
        EngineUser u[3] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t b, c;

        (void) lab_give(&u[0], 0, ENGINE_RUN, 1000 * MS, 0);
        (void) lab_give(&u[0], 0, ENGINE_RUN, 1000 * MS, 0);
        b = lab_give(&u[1], 0, ENGINE_RUN, 10 * MS, 0);
        lab_leave(m, 0, 4 * MS + 500 * US);
        u[2] = lab_user(m, 0, 10 * MS);
        ASSERT_TRUE(u[2].generation != u[0].generation);
        c = lab_give(&u[2], 0, ENGINE_RUN, 1 * MS, 100 * MS);
        engine_look(&u[1], 200 * MS);
        ASSERT_INT(lab_time(&u[1], 0, b), 12 * MS + 500 * US);
        ASSERT_INT(lab_time(&u[2], 0, c), 101 * MS);
        lab_done(m, u, 3);
}

/* Thousands of seconds: idle time between two kernels costs no steps. */
static void far_ahead(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        uint64_t p = 0, now = 0;
        EngineUsage usage;

        for (unsigned i = 0; i < 1000; i++, now += 10000 * MS) {
                p = lab_give(&u[0], 0, ENGINE_RUN, 1000 * MS, now);
                (void) lab_give(&u[1], 0, ENGINE_RUN, 10 * MS, now);
                engine_look(&u[i % 2], now);
        }
        engine_look(&u[0], now);
        ASSERT_INT(lab_time(&u[0], 0, p), now - 10000 * MS + 1010 * MS);
        engine_usage(u[1].engine, now, &usage);
        ASSERT_INT(usage.busy.all, 1010 * 1000 * MS);
        lab_done(m, u, 2);
}

/* The busy part of each window, of the card and of each group. */
static void is_metered(void) {
        EngineShared *m = lab_memory();
        EngineUser u[2] = {lab_user(m, 0, 0), lab_user(m, 1, 0)};
        EngineUsage usage;
        uint64_t w = ENGINE_WINDOW_NSEC;

        (void) lab_give(&u[0], 0, ENGINE_RUN, w / 2, w);
        (void) lab_give(&u[1], 0, ENGINE_RUN, w / 4, w);
        engine_look(&u[0], w + w / 2);
        engine_usage(u[1].engine, 2 * w, &usage);
        ASSERT_INT(usage.n, 2);
        ASSERT_INT(usage.busy.before, w / 2 + w / 4);
        ASSERT_INT(usage.groups[0].ran.before, w / 2);
        ASSERT_INT(usage.groups[1].ran.before, w / 4);
        ASSERT_INT(usage.groups[1].pid, 101);
        engine_usage(u[1].engine, 3 * w, &usage);
        ASSERT_INT(usage.busy.before, 0);
        ASSERT_INT(usage.busy.all, w / 2 + w / 4);
        lab_done(m, u, 2);
}

/* A reader whose clock was read before another process published gets the meters of the later time,
 * and is told so. */
static void meters_say_their_time(void) {
        EngineShared *m = lab_memory();
        EngineUser u = lab_user(m, 0, 0);
        EngineUsage usage;

        (void) lab_give(&u, 0, ENGINE_RUN, 1000 * MS, 0);
        engine_look(&u, 500 * MS);
        engine_usage(u.engine, 499 * MS, &usage);
        ASSERT_INT(usage.now, 500 * MS);
        ASSERT_INT(usage.busy.all, 500 * MS);
        engine_usage(u.engine, 600 * MS, &usage);
        ASSERT_INT(usage.now, 600 * MS);
        ASSERT_INT(usage.busy.all, 600 * MS);
        lab_done(m, &u, 1);
}

/* Eight groups with work of different lengths: each gets an eighth, within one time slice. */
static void eight_equal_shares(void) {
        static const uint64_t kernels[] = {5 * US,    50 * US, 300 * US, 1 * MS,
                                           1100 * US, 5 * MS,  50 * MS,  500 * MS};
        EngineShared *m = lab_memory();
        EngineUser u[8];
        EngineUsage usage;

        for (unsigned g = 0; g < 8; g++)
                u[g] = lab_user(m, g, 0);
        for (uint64_t now = 0; now < 10000 * MS; now += MS)
                for (unsigned g = 0; g < 8; g++) {
                        engine_look(&u[g], now);
                        while (engine_has_room(&u[g], 0, 1))
                                (void) lab_give(&u[g], 0, ENGINE_RUN, kernels[g], now);
                }
        engine_usage(u[0].engine, 10000 * MS, &usage);
        ASSERT_INT(usage.busy.all, 10000 * MS);
        for (unsigned g = 0; g < 8; g++)
                ASSERT_TRUE(usage.groups[g].ran.all >= 1249 * MS && usage.groups[g].ran.all <= 1251 * MS);
        lab_done(m, u, 8);
}

int main(void) {
        return TEST_MAIN(TEST(one_after_the_other), TEST(groups_take_turns), TEST(a_kernel_is_interrupted),
                         TEST(a_change_costs), TEST(events_wait_for_a_time_slice), TEST(an_event_alone),
                         TEST(channels_of_a_group), TEST(waits_for_another_channel),
                         TEST(copies_beside_kernels), TEST(a_ring_gets_full), TEST(a_group_goes),
                         TEST(far_ahead), TEST(is_metered), TEST(meters_say_their_time),
                         TEST(eight_equal_shares));
}
