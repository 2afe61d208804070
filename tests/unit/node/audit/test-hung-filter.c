/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/hung_filter.h"

#include <stdio.h>

#include "test.h"

static HungFilter s;

static HungVerdict judge(const char *container, bool again, bool paused) {
        return hung_filter_judge(&s,
                                 &(HungKernel){.uuid = STR("GPU-a"),
                                               .namespace_ = STR("d"),
                                               .pod = STR("p"),
                                               .container = str_from(container),
                                               .again = again},
                                 paused);
}

static void who_runs_is_told_of_once(void) {
        ASSERT_INT(judge("c", false, false), HUNG_VERDICT_HUNG);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT); /* it is too late for that */
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", false, false), HUNG_VERDICT_HUNG);
}

static void who_is_stopped_until_he_has_run(void) {
        ASSERT_INT(judge("c", false, true), HUNG_VERDICT_PAUSED);
        ASSERT_INT(judge("other", false, false), HUNG_VERDICT_HUNG);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT); /* since now, perhaps */
        ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_HUNG);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", false, true), HUNG_VERDICT_PAUSED); /* another kernel of his */
        ASSERT_INT(judge("c", false, false),
                   HUNG_VERDICT_HUNG); /* that has ended, and this one he has run with */
}

static void more_than_there_is_room_for(void) {
        char name[16];

        for (int i = 0; i <= HUNG_FILTER_KERNELS; i++) {
                (void) snprintf(name, sizeof name, "c%d", i);
                ASSERT_INT(judge(name, false, true), HUNG_VERDICT_PAUSED);
        }
        (void) judge("c1", true, false);
        ASSERT_INT(judge("c1", true, false), HUNG_VERDICT_HUNG);
        (void) judge("c0", true, false);
        ASSERT_INT(judge("c0", true, false), HUNG_VERDICT_WAIT); /* forgotten */
}

int main(void) {
        return TEST_MAIN(TEST(who_runs_is_told_of_once), TEST(who_is_stopped_until_he_has_run),
                         TEST(more_than_there_is_room_for));
}
