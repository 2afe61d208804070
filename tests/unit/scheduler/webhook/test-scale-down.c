/* SPDX-License-Identifier: Apache-2.0 */

/* The annotation that keeps the cluster autoscaler from evicting a pod: who gets it, and how. */

#include "base/base64.h"
#include "scheduler/webhook/review.h"
#include "test.h"

#define KEY   "cluster-autoscaler.kubernetes.io"
#define SHARE "{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"8\"}}}"
#define WHOLE "{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu\":\"2\"}}}"
#define POD(members, spec, container)                                                                        \
        "{\"metadata\":{\"name\":\"a\"" members "},\"spec\":{\"schedulerName\":\"x\"," spec                  \
        "\"tolerations\":[{\"operator\":\"Exists\"}],\"containers\":[" container "]}}"
#define NOTED(notes) POD(",\"annotations\":" notes, "", SHARE)
#define NEW_NOTES                                                                                            \
        "[{\"op\":\"add\",\"path\":\"/metadata/annotations\",\"value\":{\"" KEY                              \
        "/safe-to-evict\":\"false\"}}]"
#define NOTE                                                                                                 \
        "[{\"op\":\"add\",\"path\":\"/metadata/annotations/" KEY "~1safe-to-evict\",\"value\":\"false\"}]"

/* The patch of a new pod; "" when there is none. */
static void ask(const char *object, bool keeps_nodes, Buf *ret) {
        ReviewRules rules = {.keeps_nodes = keeps_nodes};
        _cleanup_buf_ Buf body = BUF_NULL, out = BUF_NULL;
        Fault fault = FAULT_NULL;
        ReviewVerdict verdict;
        const char *at;

        buf_appendf(&body,
                    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                    "\"uid\":\"u\",\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
                    "\"operation\":\"CREATE\",\"object\":%s}}",
                    object);
        if (review_answer(REVIEW_MUTATE, &rules, buf_str(&body), &out, &verdict, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        at = strstr(out.data, "\"patch\":\"");
        ASSERT_INT(verdict, at ? REVIEW_PATCHED : REVIEW_ALLOWED);
        if (at)
                ASSERT_TRUE(base64_decode((Str){at + 9, strcspn(at + 9, "\"")}, ret));
}

static void a_pod_with_cards_keeps_its_node(void) {
        static const struct {
                const char *object, *patch;
        } cases[] = {
                {POD("", "", SHARE), NEW_NOTES},
                {POD("", "", WHOLE), NEW_NOTES},
                {NOTED("null"), NEW_NOTES},
                {NOTED("{}"), NOTE},
                {NOTED("{\"a\":\"b\"}"), NOTE},
                {NOTED("{\"" KEY "/safe-to-evict\":\"true\"}"), ""},
                {NOTED("{\"a\":\"b\",\"" KEY "/safe-to-evict\":\"false\"}"), ""},
                {POD("", "", "{\"name\":\"c\"}"), ""},
                {POD("", "\"nodeName\":\"n\",", SHARE), ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (int on = 0; on < 2; on++) {
                        _cleanup_buf_ Buf patch = BUF_NULL;

                        ask(cases[i].object, on, &patch);
                        ASSERT_STR(buf_str(&patch), str_from(on ? cases[i].patch : ""));
                }
}

int main(void) {
        return TEST_MAIN(TEST(a_pod_with_cards_keeps_its_node));
}
