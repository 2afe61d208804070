/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/heartbeat.h"

#include "slice/schedule.h"
#include "test.h"

#define MSEC UINT64_C(1000000)
#define DAY  (86400 * 1000 * MSEC)

static Heartbeat beat;
static uint64_t now, seen, apart; /* now, seen: on the arbiter's clock */

static bool look(void) {
        return heartbeat_is_alive(&beat, seen, now + apart);
}

static void begin(uint64_t lies_between) {
        beat = (Heartbeat){0};
        now = 1000 * DAY;
        seen = now - 50 * MSEC;
        apart = lies_between;
}

/* The process looks every `turn` for a time of `span`, and the arbiter writes every 100 ms. Returns
 * how often the arbiter was taken for absent. */
static unsigned live(uint64_t span, uint64_t turn) {
        unsigned away = 0;

        for (uint64_t end = now + span; now < end; now += turn) {
                seen = now - now % (100 * MSEC);
                away += !look();
        }
        return away;
}

static void same_clock(void) {
        begin(0);
        ASSERT_TRUE(look());
        ASSERT_INT(live(10000 * MSEC, MSEC), 0);
        ASSERT_INT(live(100000 * MSEC, 777 * MSEC), 0);
        ASSERT_TRUE(heartbeat_time(&beat, now) == now);
        now = seen + SCHED_STALE_NSEC;
        ASSERT_TRUE(look());
        for (unsigned i = 0; i < 25; i++) { /* older than that: the process waits as long once more */
                now += 10 * MSEC;
                ASSERT_TRUE(look());
        }
        now += 11 * MSEC;
        ASSERT_FALSE(look());
        now += DAY;
        ASSERT_FALSE(look());
        seen = now - MSEC;
        ASSERT_TRUE(look());
        ASSERT_TRUE(heartbeat_time(&beat, now) == now);
        seen = 0;
        ASSERT_FALSE(look());
}

/* The clock of the process is ahead or behind by a day, ahead by a second or 0.3 s, or behind by 20
 * s. */
static void clock_with_offset(void) {
        const uint64_t between[] = {DAY, (uint64_t) -DAY, 1000 * MSEC, (uint64_t) - (20000 * MSEC),
                                    300 * MSEC};

        for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
                begin(between[i]);
                ASSERT_INT(live(10000 * MSEC, MSEC), 0);
                ASSERT_TRUE(heartbeat_time(&beat, now + apart) <= now);
                ASSERT_TRUE(heartbeat_time(&beat, now + apart) >= now - 3 * MSEC);
                ASSERT_INT(live(10000 * MSEC, 90 * MSEC), 0);
                now += 300 * MSEC; /* since the last heartbeat */
                (void) look();
                now += 251 * MSEC;
                ASSERT_FALSE(look());
                now += DAY;
                ASSERT_FALSE(look());
                ASSERT_INT(live(10000 * MSEC, MSEC), 0); /* the arbiter is back */
                ASSERT_TRUE(heartbeat_time(&beat, now + apart) <= now);
                ASSERT_TRUE(heartbeat_time(&beat, now + apart) >= now - 3 * MSEC);
        }
}

/* A process that looks seldom, or has just begun, does not take the arbiter for absent. */
static void seldom_and_new_readers(void) {
        begin(DAY);
        ASSERT_INT(live(10000 * MSEC, MSEC), 0);
        ASSERT_INT(live(100000 * MSEC, 5000 * MSEC), 0);
        for (unsigned i = 0; i < 100; i++) {
                beat = (Heartbeat){0};
                ASSERT_INT(live(300 * MSEC, 10 * MSEC), 0);
        }
}

/* Two threads look at the same time. One of them is preempted between its reads of the heartbeat
 * and of the clock. */
static void preempted_reader(void) {
        begin(DAY);
        for (unsigned i = 0; i < 1000; i++) {
                uint64_t before = seen;

                seen = now - now % (100 * MSEC);
                ASSERT_TRUE(look());
                ASSERT_TRUE(heartbeat_is_alive(&beat, before, now + apart));
                ASSERT_TRUE(i < 20 || heartbeat_time(&beat, now + apart) <= now);
                ASSERT_TRUE(i < 20 || heartbeat_time(&beat, now + apart) >= now - 10 * MSEC);
                now += 7 * MSEC;
        }
}

int main(void) {
        return TEST_MAIN(TEST(same_clock), TEST(clock_with_offset), TEST(seldom_and_new_readers),
                         TEST(preempted_reader));
}
