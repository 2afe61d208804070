/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/hung_filter.h"

#include <stdio.h>

#include "test.h"

static HungFilter filter;

static HungVerdict judge(const char *container, bool again, bool paused) {
        return hung_filter_judge(&filter,
                                 &(HungKernel){.uuid = STR("GPU-a"),
                                               .namespace_ = STR("d"),
                                               .pod = STR("p"),
                                               .container = str_from(container),
                                               .again = again},
                                 paused);
}

static void running_kernel_is_reported_once(void) {
        ASSERT_INT(judge("c", false, false), HUNG_VERDICT_HUNG);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT); /* it was reported as hung before */
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", false, false), HUNG_VERDICT_HUNG);
}

static void paused_kernel_waits_until_its_process_ran(void) {
        ASSERT_INT(judge("c", false, true), HUNG_VERDICT_PAUSED);
        ASSERT_INT(judge("other", false, false), HUNG_VERDICT_HUNG);
        for (int i = 0; i < 5; i++)
                ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT); /* seen to run once */
        ASSERT_INT(judge("c", true, true), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_HUNG);
        ASSERT_INT(judge("c", true, false), HUNG_VERDICT_WAIT);
        ASSERT_INT(judge("c", false, true), HUNG_VERDICT_PAUSED); /* another kernel of the container */
        ASSERT_INT(judge("c", false, false), HUNG_VERDICT_HUNG);  /* a third one, and its process runs */
}

static void oldest_is_forgotten_without_room(void) {
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
        return TEST_MAIN(TEST(running_kernel_is_reported_once),
                         TEST(paused_kernel_waits_until_its_process_ran),
                         TEST(oldest_is_forgotten_without_room));
}
