/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/estimate.h"
#include "preload/launch/tunables.h"
#include "test.h"

static Estimates table;

static Estimate *entry(uintptr_t function, uint64_t blocks, uint64_t nsec) {
        Estimate *e = estimate_find(&table, function, blocks);

        e->nsec = nsec;
        return e;
}

static void entries_by_function_and_blocks(void) {
        Estimate *e = entry(0x1000, 7, 500);

        ASSERT_TRUE(estimate_find(&table, 0x1000, 7) == e);
        ASSERT_TRUE(estimate_find(&table, 0x1000, 8) != e);
        ASSERT_TRUE(estimate_find(&table, 0x1010, 7) != e);
        ASSERT_INT(estimate_nsec(e), 500);
        ASSERT_FALSE(estimate_is_cold(e));
        ASSERT_TRUE(estimate_is_cold(estimate_find(&table, 0x2000, 1)));
        ASSERT_INT(estimate_nsec(estimate_find(&table, 0x2000, 1)), ESTIMATE_COLD_NS);
}

static void first_measurement_counts_fully(void) {
        EstimateShare one = {entry(0x3000, 1, 0), 10};

        estimate_learn(&one, 1, 12340, false);
        ASSERT_INT(estimate_nsec(one.of), 1234);
}

static void later_measurements_count_a_quarter(void) {
        EstimateShare one = {entry(0x3000, 1, 1000), 1};

        estimate_learn(&one, 1, 2000, false);
        ASSERT_INT(estimate_nsec(one.of), 1250);
        estimate_learn(&one, 1, 250, false);
        ASSERT_INT(estimate_nsec(one.of), 1000);
        for (unsigned i = 0; i < 100; i++)
                estimate_learn(&one, 1, 7000, false); /* doubles at first */
        ASSERT_TRUE(estimate_nsec(one.of) >= 7000 - 1 && estimate_nsec(one.of) <= 7000);
        for (unsigned i = 0; i < 100; i++)
                estimate_learn(&one, 1, 0, false);
        ASSERT_TRUE(estimate_nsec(one.of) >= 1 && estimate_nsec(one.of) < 10);
}

/* A time that may be the time slices of other processes at most doubles the length. */
static void time_of_others_counts_less(void) {
        EstimateShare one = {entry(0x3000, 1, 1000), 1};

        estimate_learn(&one, 1, 900000, false);
        ASSERT_INT(estimate_nsec(one.of), 2000);
        estimate_learn(&one, 1, 4000, false);
        ASSERT_INT(estimate_nsec(one.of), 2500);
        estimate_learn(&one, 1, 900000, true);
        ASSERT_TRUE(estimate_nsec(one.of) >= 900000 - 1 && estimate_nsec(one.of) <= 900000);
}

static void unmeasured_entry_gets_the_rest(void) {
        EstimateShare two[] = {{entry(0x3000, 1, 1000), 2}, {entry(0x4000, 1, 0), 3}};

        estimate_learn(two, 2, 5000, false);
        ASSERT_INT(estimate_nsec(two[0].of), 1000);
        ASSERT_INT(estimate_nsec(two[1].of), 1000);
        two[1].of->nsec = 0;
        estimate_learn(two, 2, 100, false); /* less than the measured one alone: the same for all */
        ASSERT_INT(estimate_nsec(two[1].of), 20);
}

static void shares_move_together(void) {
        EstimateShare two[] = {{entry(0x3000, 1, 1000), 2}, {entry(0x4000, 1, 2000), 1}};

        estimate_learn(two, 2, 8000, false);
        ASSERT_INT(estimate_nsec(two[0].of), 1250);
        ASSERT_INT(estimate_nsec(two[1].of), 2500);
        estimate_learn(two, 0, 8000, false);
        two[0].launches = two[1].launches = 0;
        estimate_learn(two, 2, 8000, false);
        ASSERT_INT(estimate_nsec(two[0].of), 1250);
}

/* More functions than entries: each one gets an entry, and the functions that were used last are
 * known. */
static void more_functions_than_entries(void) {
        for (uintptr_t i = 1; i < 100000; i++) {
                EstimateShare one = {estimate_find(&table, i * 16, i), 1};

                ASSERT_TRUE(one.of != NULL);
                if (estimate_is_cold(one.of))
                        estimate_learn(&one, 1, i, false);
                ASSERT_INT(estimate_nsec(estimate_find(&table, i * 16, i)), i);
        }
}

/* The table is full of functions that are not used any more. Those that are used, fewer than there
 * are places for them, are soon known for good. */
static void functions_in_use_stay_known(void) {
        unsigned cold = 0;

        for (uintptr_t i = 1; i < 100000; i++)
                (void) entry(i * 16, i, 1000);
        for (unsigned round = 0; round < 40; round++) {
                cold = 0;
                for (uintptr_t i = 1; i <= ESTIMATES / 16; i++) {
                        Estimate *e = estimate_find(&table, i * 32, 7);

                        cold += estimate_is_cold(e);
                        e->nsec = 1000;
                }
        }
        ASSERT_INT(cold, 0);
}

int main(void) {
        return TEST_MAIN(TEST(entries_by_function_and_blocks), TEST(first_measurement_counts_fully),
                         TEST(later_measurements_count_a_quarter), TEST(time_of_others_counts_less),
                         TEST(unmeasured_entry_gets_the_rest), TEST(shares_move_together),
                         TEST(more_functions_than_entries), TEST(functions_in_use_stay_known));
}
