/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/spared.h"

#include <stdio.h>

#include "test.h"

static Spared s;

static SparedVerdict judge(const char *container, bool again, bool paused) {
        return spared_judge(&s,
                            &(HungKernel){.uuid = STR("GPU-a"),
                                          .namespace_ = STR("d"),
                                          .pod = STR("p"),
                                          .container = str_from(container),
                                          .again = again},
                            paused);
}

static void who_runs_is_told_of_once(void) {
        ASSERT_INT(judge("c", false, false), SPARED_HANGS);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, false), SPARED_WAIT);
        ASSERT_INT(judge("c", true, true), SPARED_WAIT); /* it is too late for that */
        ASSERT_INT(judge("c", true, false), SPARED_WAIT);
        ASSERT_INT(judge("c", false, false), SPARED_HANGS);
}

static void who_is_stopped_until_he_has_run(void) {
        ASSERT_INT(judge("c", false, true), SPARED_PAUSED);
        ASSERT_INT(judge("other", false, false), SPARED_HANGS);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, true), SPARED_WAIT);
        ASSERT_INT(judge("c", true, false), SPARED_WAIT); /* since now, perhaps */
        ASSERT_INT(judge("c", true, true), SPARED_WAIT);
        ASSERT_INT(judge("c", true, false), SPARED_WAIT);
        ASSERT_INT(judge("c", true, false), SPARED_HANGS);
        ASSERT_INT(judge("c", true, false), SPARED_WAIT);
        ASSERT_INT(judge("c", false, true), SPARED_PAUSED); /* another kernel of his */
        ASSERT_INT(judge("c", false, false), SPARED_HANGS); /* that has ended, and this one he has run with */
}

static void more_than_there_is_room_for(void) {
        char name[16];

        for (int i = 0; i <= SPARED_KERNELS; i++) {
                (void) snprintf(name, sizeof name, "c%d", i);
                ASSERT_INT(judge(name, false, true), SPARED_PAUSED);
        }
        (void) judge("c1", true, false);
        ASSERT_INT(judge("c1", true, false), SPARED_HANGS);
        (void) judge("c0", true, false);
        ASSERT_INT(judge("c0", true, false), SPARED_WAIT); /* forgotten */
}

int main(void) {
        return TEST_MAIN(TEST(who_runs_is_told_of_once), TEST(who_is_stopped_until_he_has_run),
                         TEST(more_than_there_is_room_for));
}
