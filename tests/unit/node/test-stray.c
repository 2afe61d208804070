/* SPDX-License-Identifier: Apache-2.0 */
#include "node/stray.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

static Stray stray;

static void begin(void) {
        memset(&stray, 0, sizeof stray);
}

/* One census of card 3: `known` MiB of one process in a pod, `used` of the card. */
static bool census(uint64_t known, uint64_t used) {
        stray_begin(&stray);
        stray_process(&stray, 3, 100, true, known * MIB);
        stray_total(&stray, 3, used * MIB);
        return stray_judge(&stray, 3);
}

static void three_in_a_row(void) {
        begin();
        for (int i = 0; i < 5; i++)
                ASSERT_TRUE(!census(1000, 1000 + 64 + 32)); /* as much as is tolerated */
        ASSERT_TRUE(!census(1000, 1097));
        ASSERT_TRUE(!census(1000, 1097));
        ASSERT_TRUE(!census(1000, 1096)); /* over in between: counted anew */
        ASSERT_TRUE(!census(1000, 1097));
        ASSERT_TRUE(!census(1000, 1097));
        ASSERT_TRUE(census(1000, 1097));
        ASSERT_TRUE(!census(1000, 5000)); /* told once */
        ASSERT_TRUE(!census(1000, 1000));
        ASSERT_TRUE(!census(1000, 5000) && !census(1000, 5000));
        ASSERT_TRUE(census(1000, 5000));
}

static void what_cannot_be_said(void) {
        uint64_t bytes = 7;

        begin();
        stray_begin(&stray);
        stray_process(&stray, 3, 100, false, 9000 * MIB);
        ASSERT_TRUE(!stray_judge(&stray, 3) && !stray_bytes(&stray, 3, &bytes)); /* no total */
        for (int i = 0; i < 5; i++) {
                stray_begin(&stray);
                stray_process(&stray, 3, 100, true, UINT64_MAX); /* holds nobody knows how much */
                stray_total(&stray, 3, 9000 * MIB);
                ASSERT_TRUE(!stray_judge(&stray, 3) && !stray_bytes(&stray, 3, &bytes));
        }
        ASSERT_TRUE(!stray_judge(&stray, CARDS_MAX) && !stray_bytes(&stray, CARDS_MAX, &bytes));
        stray_process(&stray, CARDS_MAX, 1, true, 1);
        stray_total(&stray, CARDS_MAX, 1);
        ASSERT_INT(bytes, 7);
}

static void the_largest_outside_is_named(void) {
        uint64_t bytes;

        begin();
        stray_begin(&stray);
        stray_process(&stray, 0, 10, false, 0);
        ASSERT_INT(stray.cards[0].pid, 10);
        stray_process(&stray, 0, 11, false, 300);
        stray_process(&stray, 0, 12, false, 200);
        stray_process(&stray, 0, 13, true, 900);
        stray_total(&stray, 0, 1400);
        ASSERT_INT(stray.cards[0].pid, 11);
        ASSERT_TRUE(stray_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 500);
}

static void sums_do_not_wrap(void) {
        uint64_t bytes;

        begin();
        stray_begin(&stray);
        stray_process(&stray, 0, 10, true, UINT64_MAX - 1);
        stray_process(&stray, 0, 11, true, UINT64_MAX - 1);
        stray_total(&stray, 0, UINT64_MAX);
        ASSERT_TRUE(stray_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 0);
        stray_begin(&stray);
        stray_process(&stray, 0, 10, true, 500);
        stray_total(&stray, 0, 400); /* asked for at another moment */
        ASSERT_TRUE(stray_bytes(&stray, 0, &bytes));
        ASSERT_INT(bytes, 0);
}

int main(void) {
        return TEST_MAIN(TEST(three_in_a_row), TEST(what_cannot_be_said), TEST(the_largest_outside_is_named),
                         TEST(sums_do_not_wrap));
}
