/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/unaccounted.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

static Unaccounted stray;

static void begin(void) {
        memset(&stray, 0, sizeof stray);
}

/* One census of card 3: `known` MiB of one process in a pod, `used` of the card. */
static bool census(uint64_t known, uint64_t used) {
        unaccounted_begin(&stray);
        unaccounted_process(&stray, 3, 100, PROCESS_LIVES, known * MIB);
        unaccounted_total(&stray, 3, used * MIB);
        return unaccounted_check(&stray, 3);
}

static void it_has_to_last(void) {
        begin();
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(!census(1000, 1000 + 64 + 32));      /* as much as is tolerated */
        ASSERT_TRUE(!census(1000, 1097) && !census(1000, 1097)); /* three in a row */
        ASSERT_TRUE(census(1000, 1097));
        ASSERT_TRUE(!census(1000, 5000)); /* told once */
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(!census(1000, 1000));
        ASSERT_TRUE(!census(1000, 5000)); /* not over yet */
        for (int i = 0; i < 6; i++)
                ASSERT_TRUE(!census(1000, 1000));
        ASSERT_TRUE(!census(1000, 5000) && !census(1000, 5000));
        ASSERT_TRUE(census(1000, 5000));
}

static void one_look_in_between_does_not_evade(void) {
        bool told = false;

        begin();
        for (int i = 0; i < 3; i++) { /* two over, one under */
                told |= census(1000, 1097);
                told |= census(1000, 1097);
                told |= census(1000, 1000);
        }
        ASSERT_TRUE(told);
        begin();
        for (int i = 0; i < 20; i++) { /* one in three is noise */
                ASSERT_TRUE(!census(1000, 1097));
                ASSERT_TRUE(!census(1000, 1000) && !census(1000, 1000));
        }
}

/* The more of them there are, the more is tolerated: not of those who are looked for. */
static void processes_outside_are_not_tolerated(void) {
        bool told = false;

        begin();
        for (int i = 0; i < 3; i++) {
                unaccounted_begin(&stray);
                for (uint32_t k = 0; k < 100; k++)
                        unaccounted_process(&stray, 3, 100 + k, PROCESS_OUTSIDE, 32 * MIB);
                unaccounted_total(&stray, 3, 3200 * MIB);
                told |= unaccounted_check(&stray, 3);
        }
        ASSERT_TRUE(told);
        begin();
        told = false;
        for (int i = 0; i < 3; i++) { /* nor is one behind the tolerance that many of pods have */
                unaccounted_begin(&stray);
                for (uint32_t k = 0; k < 100; k++)
                        unaccounted_process(&stray, 3, 100 + k, PROCESS_LIVES, MIB);
                unaccounted_process(&stray, 3, 7, PROCESS_OUTSIDE, 65 * MIB);
                unaccounted_total(&stray, 3, 165 * MIB);
                told |= unaccounted_check(&stray, 3);
        }
        ASSERT_TRUE(told);
        begin();
        told = false;
        for (int i = 0; i < 3; i++) { /* who has ended counts as his pod's, and excuses nothing more */
                unaccounted_begin(&stray);
                for (uint32_t k = 0; k < 10; k++)
                        unaccounted_process(&stray, 3, 100 + k, PROCESS_ENDED, 10 * MIB);
                unaccounted_total(&stray, 3, (100 + 65) * MIB);
                told |= unaccounted_check(&stray, 3);
        }
        ASSERT_TRUE(told);
}

static void what_cannot_be_said(void) {
        uint64_t bytes = 7;

        begin();
        unaccounted_begin(&stray);
        unaccounted_process(&stray, 3, 100, PROCESS_OUTSIDE, 9000 * MIB);
        ASSERT_TRUE(!unaccounted_check(&stray, 3) && !unaccounted_bytes(&stray, 3, &bytes)); /* no total */
        for (int i = 0; i < 5; i++) {
                unaccounted_begin(&stray);
                unaccounted_process(&stray, 3, 100, PROCESS_LIVES,
                                    UINT64_MAX); /* holds nobody knows how much */
                unaccounted_total(&stray, 3, 9000 * MIB);
                ASSERT_TRUE(!unaccounted_check(&stray, 3) && !unaccounted_bytes(&stray, 3, &bytes));
        }
        ASSERT_TRUE(!unaccounted_check(&stray, CARDS_MAX) && !unaccounted_bytes(&stray, CARDS_MAX, &bytes));
        unaccounted_process(&stray, CARDS_MAX, 1, PROCESS_LIVES, 1);
        unaccounted_total(&stray, CARDS_MAX, 1);
        ASSERT_INT(bytes, 7);
}

static void the_largest_outside_is_named(void) {
        uint64_t bytes;

        begin();
        unaccounted_begin(&stray);
        unaccounted_process(&stray, 0, 10, PROCESS_OUTSIDE, 0);
        ASSERT_INT(stray.cards[0].pid, 10);
        unaccounted_process(&stray, 0, 11, PROCESS_OUTSIDE, 300);
        unaccounted_process(&stray, 0, 12, PROCESS_OUTSIDE, 200);
        unaccounted_process(&stray, 0, 13, PROCESS_LIVES, 900);
        unaccounted_total(&stray, 0, 1400);
        ASSERT_INT(stray.cards[0].pid, 11);
        ASSERT_TRUE(unaccounted_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 500);
}

static void sums_do_not_wrap(void) {
        uint64_t bytes;

        begin();
        unaccounted_begin(&stray);
        unaccounted_process(&stray, 0, 10, PROCESS_LIVES, UINT64_MAX - 1);
        unaccounted_process(&stray, 0, 11, PROCESS_LIVES, UINT64_MAX - 1);
        unaccounted_total(&stray, 0, UINT64_MAX);
        ASSERT_TRUE(unaccounted_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 0);
        unaccounted_begin(&stray);
        unaccounted_process(&stray, 0, 10, PROCESS_LIVES, 500);
        unaccounted_total(&stray, 0, 400); /* asked for at another moment */
        ASSERT_TRUE(unaccounted_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 0);
}

int main(void) {
        return TEST_MAIN(TEST(it_has_to_last), TEST(one_look_in_between_does_not_evade),
                         TEST(processes_outside_are_not_tolerated), TEST(what_cannot_be_said),
                         TEST(the_largest_outside_is_named), TEST(sums_do_not_wrap));
}
