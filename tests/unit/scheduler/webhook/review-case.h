/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reviews as the API server sends them, and answers as it reads them. */

#include "base/base64.h"
#include "scheduler/webhook/review.h"
#include "test.h"
#include "wire/pod.h"

#define LIMITS(members)    "\"resources\":{\"limits\":{" members "}}"
#define MAIN(members)      "{\"name\":\"main\"," LIMITS(members) "}"
#define GPU                "\"aliyun.com/gpu\":\"2\""
#define MEM(n)             "\"aliyun.com/gpu-mem\":\"" n "\""
#define CORE(n)            "\"aliyun.com/gpu-core.percentage\":\"" n "\""
#define COUNT(n)           "\"aliyun.com/gpu-count\":\"" n "\""
#define SPEC(more, main)   "\"spec\":{" more "\"containers\":[" main "]}"
#define META(labels)       "\"metadata\":{\"name\":\"a\",\"labels\":{" labels "}}"
#define POD(labels, m)     "{" META(labels) "," SPEC("", m) "}"
#define POD_WITH(more, m)  "{" META("") "," SPEC(more, m) "}"
#define BOUND(labels, m)   "{" META(labels) "," SPEC("\"nodeName\":\"n1\",", m) "}"
#define DEPLOYMENT(pod)    "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"template\":" pod "}}"
#define DEPLOYMENT_2(pod)  "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,\"template\":" pod "}}"
#define CRON_JOB(template) "{\"spec\":{\"jobTemplate\":{\"spec\":{\"template\":" template "}}}}"
#define PLAIN              "{\"name\":\"main\"}"

typedef struct Case {
        const char *operation, *group, *kind, *object, *old;
        const char *why;          /* why it is refused; NULL: allowed */
        const char *sub_resource; /* NULL: none */
        const char *user;         /* members of userInfo; NULL: none */
        bool runtime_devices;
        const Ledger *ledger;
        const bool *has_gates; /* NULL: gangs are off */
        Str namespace_;        /* of aliquot's accounts; empty: the usual one */
} Case;

static inline char *ask(ReviewTask task, const Case *c, ReviewVerdict *ret) {
        ReviewRules rules = {.accounts = STR("someone, system:serviceaccount:kube-system:old-plugin"),
                             .runtime_devices = c->runtime_devices,
                             .has_gates = c->has_gates,
                             .namespace_ = c->namespace_,
                             .ledger = c->ledger};
        Buf body = BUF_NULL, out = BUF_NULL;
        Fault fault = FAULT_NULL;

        buf_appendf(
                &body,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":"
                "\"u-1\",\"kind\":{\"group\":\"%s\",\"version\":\"v1\",\"kind\":\"%s\"},\"operation\":\"%s\","
                "\"subResource\":\"%s\",\"userInfo\":{%s},\"object\":%s,\"oldObject\":%s,\"dryRun\":true,"
                "\"options\":null}}",
                c->group, c->kind, c->operation, c->sub_resource ? c->sub_resource : "",
                c->user ? c->user : "", c->object ? c->object : "null", c->old ? c->old : "null");
        if (review_answer(task, &rules, buf_str(&body), &out, ret, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        buf_done(&body);
        ASSERT_CONTAINS(out.data, "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
                                  "\"response\":{\"uid\":\"u-1\",\"allowed\":");
        return buf_take(&out);
}

static inline void assert_judged(const Case *c) {
        ReviewVerdict verdict;
        _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, c, &verdict);
        _cleanup_buf_ Buf quoted = BUF_NULL, message = BUF_NULL;
        const char *p;

        if (!c->why) {
                if (verdict != REVIEW_ALLOWED)
                        TEST_FAIL_("%s %s is refused: %s", c->operation, c->object, answer);
                ASSERT_CONTAINS(answer, "\"allowed\":true");
                return;
        }
        if (verdict != REVIEW_REFUSED)
                TEST_FAIL_("%s %s is let in", c->operation, c->object);
        ASSERT_CONTAINS(answer, "\"allowed\":false,\"status\":{\"status\":\"Failure\",\"message\":\"");
        ASSERT_CONTAINS(answer, "\"reason\":\"Forbidden\",\"code\":403}}}");
        for (p = c->why; *p; p++) { /* quotes stand escaped in it */
                if (*p == '"')
                        buf_append_char(&quoted, '\\');
                buf_append_char(&quoted, *p);
        }
        buf_appendf(&message, "\"message\":\"" STR_FMT "\",", STR_ARG(buf_str(&quoted)));
        ASSERT_CONTAINS(answer, message.data);
}
