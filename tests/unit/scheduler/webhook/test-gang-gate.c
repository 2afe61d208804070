/* SPDX-License-Identifier: Apache-2.0 */

/* Our gate on pods by the scheduler that they name; test-review.c has the other rules. */

#include "scheduler/webhook/gang_gate.h"
#include "test.h"

static void a_gate_of_ours_needs_our_scheduler(void) {
        static const struct {
                const char *scheduler;
                bool gated;
                const char *why;
        } cases[] = {
                {"ack-co-scheduler", true, ""},
                /* The webhook gives the pods of such a template our scheduler. */
                {"", true, ""},
                {"default-scheduler", true, ""},
                {"volcano", false, ""},
                {"volcano", true,
                 "spec.template.spec.schedulerName: is \"volcano\", must be ack-co-scheduler in a pod "
                 "with the gate aliquot.dev/gang: name that scheduler, or remove the gate"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                PodGang gang = {.name = STR("g"), .min = STR("3"), .gated = cases[i].gated};
                Pod pod = {.scheduler_name = str_from(cases[i].scheduler)};
                _cleanup_buf_ Buf why = BUF_NULL;

                ASSERT_INT(gang_gate_check(&gang, &pod, "spec.template.", &why),
                           cases[i].why[0] ? GANG_GATE_E_REFUSED : 0);
                ASSERT_STR(buf_str(&why), str_from(cases[i].why));
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_gate_of_ours_needs_our_scheduler));
}
