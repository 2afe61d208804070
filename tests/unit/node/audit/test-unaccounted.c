/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/unaccounted.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

static Unaccounted u;

static void begin(void) {
        memset(&u, 0, sizeof u);
}

/* One census of card 3: `known` MiB of one process in a pod, `used` of the card. */
static UnaccountedReport census(uint64_t known, uint64_t used) {
        unaccounted_begin(&u);
        unaccounted_process(&u, 3, 100, PROCESS_LIVES, known * MIB);
        unaccounted_total(&u, 3, used * MIB);
        return unaccounted_check(&u, 3, false);
}

static void reported_once_it_lasts(void) {
        begin();
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(!census(1000, 1000 + 64 + 32));      /* within the tolerance */
        ASSERT_TRUE(!census(1000, 1097) && !census(1000, 1097)); /* three in a row */
        ASSERT_TRUE(census(1000, 1097));
        ASSERT_TRUE(!census(1000, 5000)); /* reported once */
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(!census(1000, 1000));
        ASSERT_TRUE(!census(1000, 5000)); /* it still lasts */
        for (int i = 0; i < 6; i++)
                ASSERT_TRUE(!census(1000, 1000));
        ASSERT_TRUE(!census(1000, 5000) && !census(1000, 5000));
        ASSERT_TRUE(census(1000, 5000));
}

static UnaccountedReport census_with_holders(bool some) {
        unaccounted_begin(&u);
        unaccounted_total(&u, 3, 5000 * MIB);
        return unaccounted_check(&u, 3, some);
}

static void holders_that_come_later_are_told_once(void) {
        begin();
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_NOTHING);
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_NOTHING);
        ASSERT_INT(census_with_holders(false), UNACCOUNTED_FOUND);
        ASSERT_INT(census_with_holders(false), UNACCOUNTED_NOTHING);
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_HOLDERS_FOUND);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(census_with_holders(i % 2 == 0), UNACCOUNTED_NOTHING);
        for (int i = 0; i < 6; i++)
                ASSERT_TRUE(!census(1000, 1000));
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_NOTHING);
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_NOTHING);
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_FOUND);
        ASSERT_INT(census_with_holders(true), UNACCOUNTED_NOTHING);
}

static void one_census_below_does_not_evade(void) {
        bool reported = false;

        begin();
        for (int i = 0; i < 3; i++) { /* two over, one under */
                reported |= census(1000, 1097);
                reported |= census(1000, 1097);
                reported |= census(1000, 1000);
        }
        ASSERT_TRUE(reported);
        begin();
        for (int i = 0; i < 20; i++) { /* one census in three is noise */
                ASSERT_TRUE(!census(1000, 1097));
                ASSERT_TRUE(!census(1000, 1000) && !census(1000, 1000));
        }
}

/* Each process of a pod adds to the tolerance, but not the processes outside, which are looked
 * for. */
static void processes_outside_add_no_tolerance(void) {
        bool reported = false;

        begin();
        for (int i = 0; i < 3; i++) {
                unaccounted_begin(&u);
                for (uint32_t k = 0; k < 100; k++)
                        unaccounted_process(&u, 3, 100 + k, PROCESS_OUTSIDE, 32 * MIB);
                unaccounted_total(&u, 3, 3200 * MIB);
                reported |= unaccounted_check(&u, 3, false);
        }
        ASSERT_TRUE(reported);
        begin();
        reported = false;
        for (int i = 0; i < 3; i++) { /* one process outside, beside the tolerance of many in pods */
                unaccounted_begin(&u);
                for (uint32_t k = 0; k < 100; k++)
                        unaccounted_process(&u, 3, 100 + k, PROCESS_LIVES, MIB);
                unaccounted_process(&u, 3, 7, PROCESS_OUTSIDE, 65 * MIB);
                unaccounted_total(&u, 3, 165 * MIB);
                reported |= unaccounted_check(&u, 3, false);
        }
        ASSERT_TRUE(reported);
        begin();
        reported = false;
        for (int i = 0; i < 3; i++) { /* an ended process counts for its pod, and adds no tolerance */
                unaccounted_begin(&u);
                for (uint32_t k = 0; k < 10; k++)
                        unaccounted_process(&u, 3, 100 + k, PROCESS_ENDED, 10 * MIB);
                unaccounted_total(&u, 3, (100 + 65) * MIB);
                reported |= unaccounted_check(&u, 3, false);
        }
        ASSERT_TRUE(reported);
}

static void unknown_figures_are_not_reported(void) {
        uint64_t bytes = 7;

        begin();
        unaccounted_begin(&u);
        unaccounted_process(&u, 3, 100, PROCESS_OUTSIDE, 9000 * MIB);
        ASSERT_TRUE(!unaccounted_check(&u, 3, false) && !unaccounted_bytes(&u, 3, &bytes)); /* no total */
        for (int i = 0; i < 5; i++) {
                unaccounted_begin(&u);
                unaccounted_process(&u, 3, 100, PROCESS_LIVES,
                                    UINT64_MAX); /* it is not known how much it holds */
                unaccounted_total(&u, 3, 9000 * MIB);
                ASSERT_TRUE(!unaccounted_check(&u, 3, false) && !unaccounted_bytes(&u, 3, &bytes));
        }
        ASSERT_TRUE(!unaccounted_check(&u, CARDS_MAX, false) && !unaccounted_bytes(&u, CARDS_MAX, &bytes));
        unaccounted_process(&u, CARDS_MAX, 1, PROCESS_LIVES, 1);
        unaccounted_total(&u, CARDS_MAX, 1);
        ASSERT_INT(bytes, 7);
}

static void largest_process_outside_is_named(void) {
        uint64_t bytes;

        begin();
        unaccounted_begin(&u);
        unaccounted_process(&u, 0, 10, PROCESS_OUTSIDE, 0);
        ASSERT_INT(u.cards[0].pid, 10);
        unaccounted_process(&u, 0, 11, PROCESS_OUTSIDE, 300);
        unaccounted_process(&u, 0, 12, PROCESS_OUTSIDE, 200);
        unaccounted_process(&u, 0, 13, PROCESS_LIVES, 900);
        unaccounted_total(&u, 0, 1400);
        ASSERT_INT(u.cards[0].pid, 11);
        ASSERT_TRUE(unaccounted_bytes(&u, 0, &bytes));
        ASSERT_INT(bytes, 500);
}

static void sums_do_not_wrap(void) {
        uint64_t bytes;

        begin();
        unaccounted_begin(&u);
        unaccounted_process(&u, 0, 10, PROCESS_LIVES, UINT64_MAX - 1);
        unaccounted_process(&u, 0, 11, PROCESS_LIVES, UINT64_MAX - 1);
        unaccounted_total(&u, 0, UINT64_MAX);
        ASSERT_TRUE(unaccounted_bytes(&u, 0, &bytes));
        ASSERT_INT(bytes, 0);
        unaccounted_begin(&u);
        unaccounted_process(&u, 0, 10, PROCESS_LIVES, 500);
        unaccounted_total(&u, 0, 400); /* read at another time */
        ASSERT_TRUE(unaccounted_bytes(&u, 0, &bytes));
        ASSERT_INT(bytes, 0);
}

int main(void) {
        return TEST_MAIN(TEST(reported_once_it_lasts), TEST(holders_that_come_later_are_told_once),
                         TEST(one_census_below_does_not_evade), TEST(processes_outside_add_no_tolerance),
                         TEST(unknown_figures_are_not_reported), TEST(largest_process_outside_is_named),
                         TEST(sums_do_not_wrap));
}
