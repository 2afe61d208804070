/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/repair_rate.h"

#include "base/cleanup.h"
#include "test.h"

static void five_in_any_minute(void) {
        usec_t now = 1000 * USEC_PER_SEC, taken[100];
        RepairRate p = {0};

        for (size_t i = 0; i < ELEMENTSOF(taken); i++) {
                now = repair_rate_next(&p, now + 1);
                repair_rate_take(&p, now);
                taken[i] = now;
        }
        for (size_t i = REPAIR_RATE_MAX; i < ELEMENTSOF(taken); i++)
                ASSERT_TRUE(taken[i] - taken[i - REPAIR_RATE_MAX] >= REPAIR_RATE_WINDOW);
        ASSERT_INT(repair_rate_next(&p, now),
                   taken[ELEMENTSOF(taken) - REPAIR_RATE_MAX] + REPAIR_RATE_WINDOW);
        ASSERT_INT(repair_rate_next(&p, now + 2 * REPAIR_RATE_WINDOW), now + 2 * REPAIR_RATE_WINDOW);
}

static void the_first_five_do_not_wait(void) {
        RepairRate p = {0};

        for (int i = 0; i < REPAIR_RATE_MAX; i++) {
                ASSERT_INT(repair_rate_next(&p, 7), 7);
                repair_rate_take(&p, 7);
        }
        ASSERT_INT(repair_rate_next(&p, 7), 7 + REPAIR_RATE_WINDOW);
}

int main(void) {
        return TEST_MAIN(TEST(five_in_any_minute), TEST(the_first_five_do_not_wait));
}
