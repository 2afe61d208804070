/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pace.h"

#include "base/cleanup.h"
#include "test.h"

static void five_in_any_minute(void) {
        usec_t now = 1000 * USEC_PER_SEC, taken[100];
        Pace p = {0};

        for (size_t i = 0; i < ELEMENTSOF(taken); i++) {
                now = pace_next(&p, now + 1);
                pace_take(&p, now);
                taken[i] = now;
        }
        for (size_t i = PACE_REPAIRS; i < ELEMENTSOF(taken); i++)
                ASSERT_TRUE(taken[i] - taken[i - PACE_REPAIRS] >= PACE_WINDOW);
        ASSERT_INT(pace_next(&p, now), taken[ELEMENTSOF(taken) - PACE_REPAIRS] + PACE_WINDOW);
        ASSERT_INT(pace_next(&p, now + 2 * PACE_WINDOW), now + 2 * PACE_WINDOW);
}

static void the_first_five_do_not_wait(void) {
        Pace p = {0};

        for (int i = 0; i < PACE_REPAIRS; i++) {
                ASSERT_INT(pace_next(&p, 7), 7);
                pace_take(&p, 7);
        }
        ASSERT_INT(pace_next(&p, 7), 7 + PACE_WINDOW);
}

int main(void) {
        return TEST_MAIN(TEST(five_in_any_minute), TEST(the_first_five_do_not_wait));
}
