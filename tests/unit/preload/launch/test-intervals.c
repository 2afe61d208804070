/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/intervals.h"
#include "random.h"
#include "test.h"

static void union_not_sum(void) {
        Intervals s = {0};

        ASSERT_INT(intervals_add(&s, 100, 200), 100);
        ASSERT_INT(intervals_add(&s, 150, 250), 50);
        ASSERT_INT(intervals_add(&s, 100, 250), 0);
        ASSERT_INT(intervals_add(&s, 300, 400), 100);
        ASSERT_INT(intervals_add(&s, 50, 500), 50 + 50 + 100);
        ASSERT_INT(intervals_add(&s, 500, 600), 100);
        ASSERT_INT(s.n, 1);
}

static void empty_interval(void) {
        Intervals s = {0};

        ASSERT_INT(intervals_add(&s, 100, 100), 0);
        ASSERT_INT(intervals_add(&s, 100, 50), 0);
        ASSERT_INT(s.n, 0);
}

/* A long interval arrives after the short ones within it. */
static void long_interval_arrives_late(void) {
        Intervals s = {0};

        ASSERT_INT(intervals_add(&s, 0, 10), 10);
        ASSERT_INT(intervals_add(&s, 90, 100), 10);
        ASSERT_INT(intervals_add(&s, 0, 100), 80);
}

/* Compared with one flag per moment, in any order. The result is exact while there are no more gaps
 * than the set remembers. */
static void same_as_one_flag_per_moment(void) {
        Random random = {1};

        for (unsigned round = 0; round < 2000; round++) {
                unsigned char busy[256] = {0};
                Intervals s = {0};

                for (unsigned i = 0; i < INTERVALS_MAX; i++) {
                        uint32_t from = random_below(&random, 256), to = from + random_below(&random, 32),
                                 fresh = 0;

                        to = to > 255 ? 255 : to;
                        for (uint32_t t = from; t < to; t++) {
                                fresh += !busy[t];
                                busy[t] = 1;
                        }
                        ASSERT_INT(intervals_add(&s, from, to), fresh);
                }
        }
}

static void more_gaps_than_remembered(void) {
        uint64_t sum = 0;
        Intervals s = {0};

        for (uint64_t i = 0; i < 1000; i++)
                sum += intervals_add(&s, i * 10, i * 10 + 5);
        ASSERT_INT(sum, 5000);
        for (uint64_t i = 0; i < 1000; i++)
                sum += intervals_add(&s, i * 10, i * 10 + 5);
        ASSERT_INT(sum, 5000); /* a forgotten gap counts as busy */
        ASSERT_INT(intervals_add(&s, 0, 20000),
                   15 * 5 + 20000 - 9995); /* the remembered gaps, and what is new behind them */
}

int main(void) {
        return TEST_MAIN(TEST(union_not_sum), TEST(empty_interval), TEST(long_interval_arrives_late),
                         TEST(same_as_one_flag_per_moment), TEST(more_gaps_than_remembered));
}
