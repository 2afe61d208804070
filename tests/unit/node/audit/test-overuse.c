/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/overuse.h"

#include "test.h"

#define MSEC   UINT64_C(1000000)
#define WINDOW (10000 * MSEC)

static Overuse o;

/* One window at a share of 30 %, in permille of the card's time. */
static bool had(unsigned permille) {
        return overuse_window(&o, WINDOW, WINDOW, permille * WINDOW / 1000, 300000);
}

/* After how many such windows it is reported; 0: not within a thousand. */
static int reported_after(unsigned permille) {
        o = (Overuse){0};
        for (int i = 1; i <= 1000; i++)
                if (had(permille))
                        return i;
        return 0;
}

static void larger_excess_is_reported_sooner(void) {
        ASSERT_INT(reported_after(1000), 3);
        ASSERT_INT(reported_after(700), 3);
        ASSERT_INT(reported_after(450), 11);
        ASSERT_INT(reported_after(360), 101);
        ASSERT_INT(reported_after(350), 0);
        ASSERT_INT(reported_after(300), 0);
        ASSERT_INT(reported_after(0), 0);
}

/* The arbiter admits one kernel of up to 10 s, and the container then waits that off. This holds
 * for every length, and wherever windows begin. */
static void long_kernels_are_not_reported(void) {
        for (unsigned share = 100; share <= 900; share += 100)
                for (uint64_t kernel = 500; kernel <= 10000; kernel += 250)
                        for (uint64_t phase = 0; phase < 10000; phase += 500) {
                                uint64_t period = kernel * 1000 / share;

                                o = (Overuse){0};
                                for (uint64_t w = 0; w < 60; w++) {
                                        uint64_t used = 0;

                                        for (uint64_t at = 0; at < 10000; at += 50)
                                                used += (phase + w * 10000 + at) % period < kernel ? 50 : 0;
                                        ASSERT_FALSE(overuse_window(&o, WINDOW, WINDOW, used * MSEC,
                                                                    share * 1000));
                                }
                        }
}

static void reported_once_until_waited_off(void) {
        o = (Overuse){0};
        ASSERT_FALSE(had(1000) || had(1000));
        ASSERT_FALSE(overuse_lasts(&o));
        ASSERT_TRUE(had(1000));
        ASSERT_TRUE(overuse_lasts(&o));
        ASSERT_INT(overuse_ppm(&o), OVERUSE_PPM);
        ASSERT_FALSE(had(500));
        ASSERT_INT(overuse_ppm(&o), 875000);
        ASSERT_FALSE(had(0)); /* 17 s are owed */
        ASSERT_FALSE(overuse_lasts(&o));
        ASSERT_FALSE(had(1000) || had(1000) || had(1000)); /* the same excess */
        ASSERT_TRUE(overuse_lasts(&o));
        for (int i = 0; i < 20; i++)
                ASSERT_FALSE(had(0));
        ASSERT_FALSE(had(1000) || had(1000));
        ASSERT_TRUE(had(1000));
}

static void window_below_the_share_ends_the_row(void) {
        o = (Overuse){0};
        for (int i = 0; i < 20; i++)
                ASSERT_FALSE(had(500) || had(500) || had(0));
}

/* Two thirds of the card, at a share of 30 %, and never three in a row. */
static void pauses_do_not_evade(void) {
        int windows = 0;

        o = (Overuse){0};
        while (!o.reported && windows < 1000)
                (void) had(windows++ % 3 == 2 ? 0 : 1000);
        ASSERT_INT(windows, 5);
}

/* However long the excess lasted, it is over some windows after its end. */
static void debts_are_bounded(void) {
        o = (Overuse){0};
        for (int i = 0; i < 10000; i++)
                (void) had(1000);
        for (int i = 0; i < 20; i++)
                (void) had(0);
        ASSERT_FALSE(o.reported);
}

static void shares_of_nothing_and_of_all(void) {
        o = (Overuse){0};
        for (int i = 0; i < 3; i++)
                ASSERT_FALSE(overuse_window(&o, WINDOW, WINDOW, WINDOW / 20, 0));
        for (int i = 0; i < 100; i++)
                ASSERT_FALSE(overuse_window(&o, WINDOW, WINDOW, WINDOW, 990000));
}

int main(void) {
        return TEST_MAIN(TEST(larger_excess_is_reported_sooner), TEST(long_kernels_are_not_reported),
                         TEST(reported_once_until_waited_off), TEST(window_below_the_share_ends_the_row),
                         TEST(pauses_do_not_evade), TEST(debts_are_bounded),
                         TEST(shares_of_nothing_and_of_all));
}
