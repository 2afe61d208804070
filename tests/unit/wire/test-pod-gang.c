/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_gang.h"

#include "test.h"

#define POD(labels) "{\"metadata\":{\"labels\":{" labels "}}}"
#define JOB         "\"gpu-topology\":\"train\""

/* The labels of a gang go before those of a job, whose name no label can have. */
static void a_job_is_a_gang(void) {
        static const struct {
                const char *pod, *name, *min, *min_key;
        } cases[] = {
                {POD(JOB ",\"gpu-topology-replica\":\"4\""), "gpu-topology/train", "4",
                 "gpu-topology-replica"},
                {POD(JOB), "gpu-topology/train", "", "gpu-topology-replica"},
                {POD(JOB ",\"pod-group.scheduling.sigs.k8s.io/name\":\"g\""), "g", "",
                 "pod-group.scheduling.sigs.k8s.io/min-available"},
                {POD("\"gpu-topology-replica\":\"4\""), "", "",
                 "pod-group.scheduling.sigs.k8s.io/min-available"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                PodGang gang;

                ASSERT_OK(pod_gang_decode(str_from(cases[i].pod), &arena, &gang, NULL));
                ASSERT_STR(gang.name, str_from(cases[i].name));
                ASSERT_STR(gang.min, str_from(cases[i].min));
                ASSERT_STR(str_from(gang.min_key), str_from(cases[i].min_key));
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_job_is_a_gang));
}
