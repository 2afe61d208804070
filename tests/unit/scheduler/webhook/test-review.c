/* SPDX-License-Identifier: Apache-2.0 */
#include "review-case.h"

static const ReviewRules no_rules;

static void refuses_what_can_never_run(void) {
        static const Case cases[] = {
                {"CREATE", "", "Pod", POD("", MAIN(MEM("8"))), NULL, NULL},
                {"CREATE", "", "Pod", POD("", MAIN(MEM("8") "," CORE("30"))), NULL, NULL},
                {"CREATE", "", "Pod", POD("", PLAIN), NULL, NULL},
                {"CREATE", "", "Pod", POD("", MAIN(MEM("8") "," CORE("33"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-core.percentage\"]: container "
                 "\"main\": "
                 "aliyun.com/gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100"},
                {"CREATE", "", "Pod", POD("", MAIN(MEM("8") "," CORE("105"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-core.percentage\"]: container "
                 "\"main\": "
                 "aliyun.com/gpu-core.percentage is 105, must be a multiple of 5 from 5 to 100"},
                {"CREATE", "", "Pod", POD("", MAIN(CORE("30"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-core.percentage\"]: container "
                 "\"main\": "
                 "aliyun.com/gpu-core.percentage is 30, must come together with aliyun.com/gpu-mem"},
                {"CREATE", "", "Pod", POD("", PLAIN "," MAIN(MEM("99999999999999999999"))), NULL,
                 "spec.containers[1].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is 99999999999999999999, must be from 0 to 16843009"},
                {"CREATE", "", "Pod", POD("", MAIN(MEM("1.5"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is 1.5, must be a whole number"},
                {"CREATE", "", "Pod", POD(COUNT("3"), MAIN(MEM("8"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is 8, must be a multiple of 3, the number of cards by "
                 "aliyun.com/gpu-count"},
                {"CREATE", "", "Pod", POD(COUNT("two"), MAIN(MEM("8"))), NULL,
                 "metadata.labels[\"aliyun.com/gpu-count\"]: label aliyun.com/gpu-count is \"two\", must be "
                 "a "
                 "whole number from 1 to 256"},
                {"CREATE", "", "Pod", POD(COUNT("2"), MAIN(MEM("8") "," CORE("50"))), NULL,
                 "metadata.labels[\"aliyun.com/gpu-count\"]: aliyun.com/gpu-count is 2, must be 1 or absent "
                 "together with aliyun.com/gpu-core.percentage"},
                {"CREATE", "", "Pod", POD(COUNT("2"), PLAIN), NULL,
                 "metadata.labels[\"aliyun.com/gpu-count\"]: label aliyun.com/gpu-count is \"2\", must come "
                 "together with aliyun.com/gpu-mem"},
                {"CREATE", "", "Pod", POD("", MAIN(COUNT("2"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-count\"]: container \"main\": "
                 "aliyun.com/gpu-count is 2, must come together with aliyun.com/gpu-mem"},
                {"CREATE", "", "Pod",
                 POD("", "{\"name\":\"one\"," LIMITS(MEM("1")) "}," MAIN(MEM("8") "," CORE("50"))), NULL,
                 "spec.containers[1].resources.limits: containers \"one\" and \"main\" ask for different "
                 "kinds "
                 "of GPU resources, must all ask for aliyun.com/gpu-mem alone or all for aliyun.com/gpu-mem "
                 "and "
                 "aliyun.com/gpu-core.percentage"},
                {"CREATE", "", "Pod",
                 POD("",
                     MAIN(MEM("8") "," CORE("60")) ",{\"name\":\"b\"," LIMITS(MEM("1") "," CORE("60")) "}"),
                 NULL,
                 "spec.containers: the pod's containers ask for 120 of aliyun.com/gpu-core.percentage "
                 "together, "
                 "must be at most 100, the whole of one card"},
                {"CREATE", "", "Pod",
                 "{\"spec\":{\"initContainers\":[" PLAIN "," MAIN(MEM("x")) "],\"containers\":[" PLAIN "]}}",
                 NULL,
                 "spec.initContainers[1].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is x, must be a whole number"},
                /* With another scheduler, or a node that is named already, the pod still cannot
                 * run. */
                {"CREATE", "", "Pod", POD_WITH("\"schedulerName\":\"other\",", MAIN(MEM("x"))), NULL,
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is x, must be a whole number"},
                {"CREATE", "", "Pod", BOUND("", MAIN(MEM("4"))), NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

/* The kubelet runs a static pod in any case. If its mirror were refused, the pod would only be
 * invisible. */
static void lets_mirror_pods_of_kubelets_in(void) {
        Case mirror = {"CREATE",
                       "",
                       "Pod",
                       "{\"metadata\":{\"annotations\":{\"kubernetes.io/config.mirror\":\"x\"}}," SPEC(
                               "\"nodeName\":\"n1\",", MAIN(MEM("x"))) "}",
                       NULL,
                       NULL};

        mirror.user = "\"username\":\"system:node:n1\",\"groups\":[\"system:nodes\"]";
        assert_judged(&mirror);
        mirror.user = "\"username\":\"tenant\",\"groups\":[\"system:authenticated\"]";
        mirror.why = "metadata.annotations[\"kubernetes.io/config.mirror\"]: marks the mirror pod of a "
                     "static pod; only kubelets create such pods";
        assert_judged(&mirror);
}

#define BAD_TEMPLATE POD("", MAIN(MEM("8") "," CORE("33")))
#define BAD_TEXT                                                                                             \
        "spec.containers[0].resources.limits[\"aliyun.com/gpu-core.percentage\"]: container \"main\": "      \
        "aliyun.com/gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100"

static void judges_templates(void) {
        static const struct {
                const char *group, *kind;
        } workloads[] = {{"apps", "Deployment"}, {"apps", "StatefulSet"},       {"apps", "DaemonSet"},
                         {"apps", "ReplicaSet"}, {"", "ReplicationController"}, {"batch", "Job"}};

        for (size_t i = 0; i < ELEMENTSOF(workloads); i++) {
                const char *group = workloads[i].group, *kind = workloads[i].kind;

                assert_judged(&(Case){"CREATE", group, kind, DEPLOYMENT(BAD_TEMPLATE), NULL,
                                      "spec.template." BAD_TEXT});
                assert_judged(
                        &(Case){"CREATE", group, kind, DEPLOYMENT(POD("", MAIN(MEM("8")))), NULL, NULL});
                assert_judged(&(Case){"CREATE", group, kind, DEPLOYMENT("null"), NULL, NULL});
                assert_judged(&(Case){"CREATE", group, kind, "{\"spec\":null}", NULL, NULL});
        }
        assert_judged(&(Case){"CREATE", "batch", "CronJob", CRON_JOB(BAD_TEMPLATE), NULL,
                              "spec.jobTemplate.spec.template." BAD_TEXT});
        assert_judged(&(Case){"CREATE", "batch", "CronJob", CRON_JOB(POD("", MAIN(MEM("8")))), NULL, NULL});
        assert_judged(
                &(Case){"CREATE", "apps", "Deployment", DEPLOYMENT(POD(COUNT("3"), MAIN(MEM("8")))), NULL,
                        "spec.template.spec.containers[0].resources.limits[\"aliyun.com/gpu-mem\"]: "
                        "container \"main\": aliyun.com/gpu-mem is 8, must be a multiple of 3, the number "
                        "of cards by aliyun.com/gpu-count"});
        assert_judged(&(Case){"CREATE", "apps", "Deployment", DEPLOYMENT(POD(COUNT("3"), PLAIN)), NULL,
                              "spec.template.metadata.labels[\"aliyun.com/gpu-count\"]: label "
                              "aliyun.com/gpu-count is \"3\", must come together with aliyun.com/gpu-mem"});
}

static void other_kinds_pass(void) {
        static const struct {
                const char *group, *kind;
        } others[] = {{"example.com", "Deployment"}, {"apps", "Pod"}, {"", "Binding"}, {"", ""}};

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_judged(&(Case){"CREATE", others[i].group, others[i].kind, DEPLOYMENT(BAD_TEMPLATE),
                                      NULL, NULL});
}

static void an_update_is_judged_by_what_it_changes(void) {
        static const Case cases[] = {
                /* An object from before the webhook can be scaled. A change of its limits is
                 * judged, worse or not. */
                {"UPDATE", "apps", "Deployment", DEPLOYMENT_2(BAD_TEMPLATE), DEPLOYMENT(BAD_TEMPLATE), NULL},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(BAD_TEMPLATE),
                 DEPLOYMENT(POD("", MAIN(MEM("8")))), "spec.template." BAD_TEXT},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(BAD_TEMPLATE), NULL, "spec.template." BAD_TEXT},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(POD("", MAIN("\"aliyun.com/gpu\":\"257\""))),
                 DEPLOYMENT(POD("", MAIN(GPU))),
                 "spec.template.spec.containers[0].resources.limits[\"aliyun.com/gpu\"]: container "
                 "\"main\": aliyun.com/gpu is 257, must be a whole number from 1 to 256"},
                {"UPDATE", "apps", "Deployment",
                 "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T00:00:00Z\"},\"spec\":{"
                 "\"template\":" BAD_TEMPLATE "}}",
                 DEPLOYMENT("null"), NULL},
                {"DELETE", "apps", "Deployment", NULL, DEPLOYMENT(BAD_TEMPLATE), NULL},
                {"CONNECT", "", "Pod", BAD_TEMPLATE, NULL, NULL},
                /* Of a pod, labels can change. */
                {"UPDATE", "", "Pod", BOUND(COUNT("2"), MAIN(MEM("8"))), BOUND(COUNT("2"), MAIN(MEM("8"))),
                 NULL},
                {"UPDATE", "", "Pod", BOUND("\"x\":\"y\"", MAIN(MEM("8"))), BOUND("", MAIN(MEM("8"))), NULL},
                {"UPDATE", "", "Pod", BOUND(COUNT("4"), MAIN(MEM("8"))), BOUND(COUNT("2"), MAIN(MEM("8"))),
                 "metadata.labels[\"aliyun.com/gpu-count\"]: label aliyun.com/gpu-count is \"4\", must stay "
                 "\"2\" since the pod is bound to node n1"},
                {"UPDATE", "", "Pod", BOUND("", MAIN(MEM("8"))), BOUND(COUNT("2"), MAIN(MEM("8"))),
                 "metadata.labels[\"aliyun.com/gpu-count\"]: label aliyun.com/gpu-count is \"\", must stay "
                 "\"2\" since the pod is bound to node n1"},
                {"UPDATE", "", "Pod", POD(COUNT("4"), MAIN(MEM("8"))), POD(COUNT("2"), MAIN(MEM("8"))), NULL},
                {"UPDATE", "", "Pod", POD(COUNT("3"), MAIN(MEM("8"))), POD(COUNT("2"), MAIN(MEM("8"))),
                 "spec.containers[0].resources.limits[\"aliyun.com/gpu-mem\"]: container \"main\": "
                 "aliyun.com/gpu-mem is 8, must be a multiple of 3, the number of cards by "
                 "aliyun.com/gpu-count"},
                {"UPDATE", "", "Pod", BOUND(COUNT("2"), PLAIN), BOUND("", PLAIN),
                 "metadata.labels[\"aliyun.com/gpu-count\"]: label aliyun.com/gpu-count is \"2\", must come "
                 "together with aliyun.com/gpu-mem"},
                {"UPDATE", "", "Pod", BAD_TEMPLATE, BAD_TEMPLATE, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

static void subresources_pass(void) {
        static const char body[] =
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
                "v1\",\"request\":{\"uid\":\"u\","
                "\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},\"subResource\":\"resize\","
                "\"operation\":\"UPDATE\",\"object\":" BAD_TEMPLATE "}}";
        _cleanup_buf_ Buf out = BUF_NULL;
        ReviewVerdict verdict;

        ASSERT_OK(review_answer(REVIEW_VALIDATE, &no_rules, str_from(body), &out, &verdict, NULL));
        ASSERT_INT(verdict, REVIEW_ALLOWED);
}

/* An object that cannot be read is refused when it may have our resources. */
static void refuses_what_it_cannot_read_if_it_is_ours(void) {
        assert_judged(&(Case){"CREATE", "", "Pod", "{\"spec\":{\"containers\":\"none\"}}", NULL, NULL});
        assert_judged(&(Case){"CREATE", "", "Pod", "\"x\"", NULL, NULL});
        assert_judged(&(Case){"CREATE", "", "Pod", NULL, NULL, NULL});
        assert_judged(&(Case){"CREATE", "", "Pod",
                              "{\"spec\":{\"containers\":\"none\"},\"x\":{" MEM("1") "}}", NULL,
                              "pod: spec.containers: not an array at byte 22"});
        assert_judged(&(Case){"CREATE", "apps", "Deployment", "{\"spec\":[{" MEM("1") "}]}", NULL,
                              "the Deployment cannot be read: spec: not an object at byte 8"});
        assert_judged(&(Case){"UPDATE", "", "Pod", POD("", MAIN(MEM("1"))), "{\"spec\":7}", NULL});
}

#define TOLERATES "\"tolerations\":[{\"operator\":\"Exists\"}],"

static void gives_the_scheduler(void) {
        static const struct {
                Case review;
                bool patched;
        } cases[] = {
                {{"CREATE", "", "Pod", POD_WITH(TOLERATES, MAIN(MEM("8")))}, true},
                {{"CREATE", "", "Pod",
                  POD_WITH(TOLERATES "\"schedulerName\":\"default-scheduler\",", MAIN(MEM("8")))},
                 true},
                {{"CREATE", "", "Pod", POD_WITH("\"schedulerName\":\"\",", MAIN(CORE("30")))}, true},
                {{"CREATE", "", "Pod",
                  POD_WITH("\"affinity\":{\"nodeAffinity\":{}},\"schedulerName\":\"default-"
                           "scheduler\"," TOLERATES,
                           MAIN(MEM("8")))},
                 true},
                {{"CREATE", "", "Pod", POD_WITH("\"schedulerName\":\"volcano\"," TOLERATES, MAIN(MEM("8")))},
                 false},
                {{"CREATE", "", "Pod",
                  POD_WITH("\"schedulerName\":\"ack-co-scheduler\"," TOLERATES, MAIN(MEM("8")))},
                 false},
                {{"CREATE", "", "Pod", POD("", PLAIN)}, false},
                {{"CREATE", "", "Pod", POD_WITH(TOLERATES, MAIN(MEM("0")))}, false},
                {{"CREATE", "", "Pod", BOUND("", MAIN(MEM("8")))}, false},
                {{"UPDATE", "", "Pod", POD("", MAIN(MEM("8"))), POD("", MAIN(MEM("8")))}, false},
                {{"CREATE", "apps", "Deployment", DEPLOYMENT(POD("", MAIN(MEM("8"))))}, false},
                {{"CREATE", "", "Pod", "{\"spec\":{\"containers\":\"none\"},\"x\":{" MEM("1") "}}"}, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_MUTATE, &cases[i].review, &verdict);
                _cleanup_buf_ Buf patch = BUF_NULL;
                const char *at = strstr(answer, "\"patch\":\"");

                if ((verdict == REVIEW_PATCHED) != cases[i].patched)
                        TEST_FAIL_("%s: %s", cases[i].review.object, answer);
                ASSERT_CONTAINS(answer, "\"allowed\":true");
                ASSERT_TRUE((at != NULL) == cases[i].patched);
                if (!at)
                        continue;
                ASSERT_CONTAINS(answer, "\"patchType\":\"JSONPatch\",");
                ASSERT_TRUE(base64_decode((Str){at + 9, strcspn(at + 9, "\"")}, &patch));
                ASSERT_STR(buf_str(&patch), STR("[{\"op\":\"add\",\"path\":\"/spec/"
                                                "schedulerName\",\"value\":\"ack-co-scheduler\"}]"));
        }
}

/* ---- system keys ---- */

#define ANNOTATED(annotations, m)                                                                            \
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\",\"annotations\":{" annotations              \
        "}}," SPEC("", m) "}"
#define ASSIGNED(v) "\"scheduler.framework.gpushare.assigned\":\"" v "\""
#define CORE_KEY(v) "\"gpushare.alibabacloud.com/core-percentage\":\"" v "\""
#define USER_KEYS                                                                                            \
        "\"aliquot.dev/gpu-type\":\"a\",\"aliquot.dev/gpu-uuid\":\"b\",\"aliquot.dev/gpu-mems\":\"3\","      \
        "\"aliquot.dev/gang\":\"g\",\"x\":\"y\""
#define REMOVE(path) "{\"op\":\"remove\",\"path\":\"/metadata/annotations/" path "\"}"
#define SCHEDULER    "{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"ack-co-scheduler\"}"
#define WARNING(key) "annotation " key " is set by the scheduler; it was removed"

static void assert_patch(const char *answer, const char *wanted) {
        _cleanup_buf_ Buf patch = BUF_NULL;
        const char *at = strstr(answer, "\"patch\":\"");

        if (!wanted) {
                ASSERT_TRUE(at == NULL);
                return;
        }
        if (!at)
                TEST_FAIL_("no patch: %s", answer);
        ASSERT_TRUE(base64_decode((Str){at + 9, strcspn(at + 9, "\"")}, &patch));
        ASSERT_STR(buf_str(&patch), str_from(wanted));
}

#define TOLERATION    "{\"key\":\"aliyun.com/gpu-mem\",\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}"
#define NEW_LIST      "{\"op\":\"add\",\"path\":\"/spec/tolerations\",\"value\":[" TOLERATION "]}"
#define APPENDED      "{\"op\":\"add\",\"path\":\"/spec/tolerations/-\",\"value\":" TOLERATION "}"
#define LIST(members) "\"schedulerName\":\"x\",\"tolerations\":" members ","

static void a_pod_tolerates_the_taint_of_what_it_asks_for(void) {
        static const struct {
                const char *object, *patch;
        } cases[] = {
                {POD("", MAIN(MEM("8"))), "[" SCHEDULER "," NEW_LIST "]"},
                {POD_WITH(LIST("null"), MAIN(GPU)), "[" NEW_LIST "]"},
                {POD_WITH(LIST("[]"), MAIN(MEM("8"))), "[" APPENDED "]"},
                {POD_WITH(LIST("[{\"key\":\"a\",\"operator\":\"Exists\"}]"), MAIN(MEM("8"))),
                 "[" APPENDED "]"},
                {POD_WITH(LIST("[{\"key\":\"aliyun.com/gpu-mem\",\"operator\":\"Exists\","
                               "\"effect\":\"NoExecute\"}]"),
                          MAIN(MEM("8"))),
                 "[" APPENDED "]"},
                {POD_WITH(LIST("[{\"key\":\"aliyun.com/gpu-mem\",\"value\":\"x\"}]"), MAIN(MEM("8"))),
                 "[" APPENDED "]"},
                {POD_WITH(LIST("[{\"key\":\"a\"}," TOLERATION "]"), MAIN(MEM("8"))), NULL},
                {POD_WITH(LIST("[{\"key\":\"aliyun.com/gpu-mem\",\"operator\":\"Exists\"}]"), MAIN(MEM("8"))),
                 NULL},
                {POD_WITH(LIST("[{\"operator\":\"Exists\"}]"), MAIN(MEM("8"))), NULL},
                {POD_WITH(LIST("7"), MAIN(MEM("8"))), NULL},
                {POD_WITH(LIST("[]"), PLAIN), NULL},
                {BOUND("", MAIN(MEM("8"))), NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ReviewVerdict verdict;
                _cleanup_free_ char *answer =
                        ask(REVIEW_MUTATE, &(Case){"CREATE", "", "Pod", cases[i].object}, &verdict);

                ASSERT_INT(verdict, cases[i].patch ? REVIEW_PATCHED : REVIEW_ALLOWED);
                assert_patch(answer, cases[i].patch);
        }
}

#define GANG_NAME                 "\"pod-group.scheduling.sigs.k8s.io/name\":\"g\""
#define GANG_MIN(min)             ",\"pod-group.scheduling.sigs.k8s.io/min-available\":\"" min "\""
#define GANG                      GANG_NAME GANG_MIN("3")
#define JOB(n)                    "\"gpu-topology\":\"j\",\"gpu-topology-replica\":\"" n "\""
#define GATE                      "{\"name\":\"aliquot.dev/gang\"}"
#define NEW_GATE                  "{\"op\":\"add\",\"path\":\"/spec/schedulingGates\",\"value\":[" GATE "]}"
#define GATE_APPENDED             "{\"op\":\"add\",\"path\":\"/spec/schedulingGates/-\",\"value\":" GATE "}"
#define GATES(gate)               "\"schedulingGates\":[" gate "],"
#define OURS                      "\"schedulerName\":\"ack-co-scheduler\","
#define GANG_POD(labels, more, m) "{" META(labels) "," SPEC(more TOLERATES, m) "}"

static void members_of_gangs_get_the_gate(void) {
        static const struct {
                const char *object, *patch;
                bool no_gates, off;
        } cases[] = {
                {GANG_POD(GANG, "", MAIN(MEM("8"))), "[" SCHEDULER "," NEW_GATE "]"},
                {GANG_POD(GANG, "", PLAIN), "[" SCHEDULER "," NEW_GATE "]"},
                {GANG_POD(GANG, OURS, PLAIN), "[" NEW_GATE "]"},
                {GANG_POD(GANG, OURS GATES("{\"name\":\"x/y\"}"), PLAIN), "[" GATE_APPENDED "]"},
                {GANG_POD(GANG, OURS GATES(GATE), PLAIN), NULL},
                {GANG_POD(GANG, "\"schedulerName\":\"volcano\",", PLAIN), NULL},
                {GANG_POD(GANG, OURS "\"nodeName\":\"n1\",", PLAIN), NULL},
                {GANG_POD(GANG_NAME, OURS, PLAIN), NULL},
                {GANG_POD(GANG_NAME GANG_MIN("0"), OURS, PLAIN), NULL},
                {GANG_POD(GANG_NAME GANG_MIN("many"), OURS, PLAIN), NULL},
                {GANG_POD("", OURS, PLAIN), NULL},
                {"{\"metadata\":{\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
                 "\"gang.scheduling.koordinator.sh/min-available\":\"2\"}}," SPEC(OURS, PLAIN) "}",
                 "[" NEW_GATE "]"},
                {GANG_POD(JOB("3"), OURS, MAIN(GPU)), "[" NEW_GATE "]"},
                {GANG_POD(GANG, OURS, PLAIN), NULL, .no_gates = true},
                {GANG_POD(GANG, OURS, PLAIN), NULL, .off = true},
                {GANG_POD(GANG, "", PLAIN), NULL, .off = true},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                bool has_gates = !cases[i].no_gates;
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_MUTATE,
                                                  &(Case){"CREATE", "", "Pod", cases[i].object,
                                                          .has_gates = cases[i].off ? NULL : &has_gates},
                                                  &verdict);

                ASSERT_INT(verdict, cases[i].patch ? REVIEW_PATCHED : REVIEW_ALLOWED);
                assert_patch(answer, cases[i].patch);
        }
}

static void judges_what_a_pod_says_of_its_gang(void) {
        static const char *const gated[] = {GANG_POD("", OURS GATES(GATE), PLAIN),
                                            GANG_POD(JOB("many"), OURS GATES(GATE), PLAIN)};
        static const bool yes = true;
        ReviewVerdict verdict;
        char *answer;

        assert_judged(&(Case){"CREATE", "", "Pod", GANG_POD(GANG, OURS, MAIN(MEM("8"))), .has_gates = &yes});
        assert_judged(&(Case){"CREATE", "", "Pod", GANG_POD(GANG_NAME GANG_MIN("many"), OURS, PLAIN),
                              .why = "metadata.labels[\"pod-group.scheduling.sigs.k8s.io/min-available\"]: "
                                     "is \"many\", must be a number from 1 to 1024",
                              .has_gates = &yes});
        assert_judged(&(Case){"CREATE", "batch", "Job",
                              DEPLOYMENT(GANG_POD(GANG_NAME GANG_MIN("1025"), OURS, MAIN(MEM("8")))),
                              .why = "spec.template.metadata.labels[\"pod-group.scheduling.sigs.k8s.io/"
                                     "min-available\"]: is \"1025\", must be a number from 1 to 1024",
                              .has_gates = &yes});
        for (size_t i = 0; i < ELEMENTSOF(gated); i++)
                assert_judged(&(Case){"CREATE", "", "Pod", gated[i],
                                      .why = "spec.schedulingGates: the gate aliquot.dev/gang is for members "
                                             "of gangs; the pod has no label pod-group.scheduling.sigs.k8s."
                                             "io/name: set the label, or remove the gate",
                                      .has_gates = &yes});
        answer = ask(REVIEW_VALIDATE,
                     &(Case){"CREATE", "", "Pod", GANG_POD(GANG_NAME, OURS, PLAIN), .has_gates = &yes},
                     &verdict);
        ASSERT_INT(verdict, REVIEW_ALLOWED);
        ASSERT_CONTAINS(answer, "the pod names a gang and has no label "
                                "pod-group.scheduling.sigs.k8s.io/min-available: PodGroup objects are not "
                                "read, and a gang without the number on any member is placed pod by pod");
        free(answer);
}

static void removes_system_keys_from_new_pods(void) {
        static const struct {
                const char *object, *patch, *warnings;
        } cases[] = {
                {ANNOTATED(ASSIGNED("true"), PLAIN), "[" REMOVE("scheduler.framework.gpushare.assigned") "]",
                 "[\"" WARNING("scheduler.framework.gpushare.assigned") "\"]"},
                {ANNOTATED(USER_KEYS "," CORE_KEY("{}") "," ASSIGNED("x"), MAIN(MEM("2"))),
                 "[" REMOVE("scheduler.framework.gpushare.assigned") "," REMOVE(
                         "gpushare.alibabacloud.com~1core-percentage") "," SCHEDULER "," NEW_LIST "]",
                 "[\"" WARNING("scheduler.framework.gpushare.assigned") "\",\"" WARNING(
                         "gpushare.alibabacloud.com/core-percentage") "\"]"},
                {ANNOTATED("\"kubernetes.io/config.mirror\":\"x\"," ASSIGNED("true"), PLAIN),
                 "[" REMOVE("scheduler.framework.gpushare.assigned") "]",
                 "[\"" WARNING("scheduler.framework.gpushare.assigned") "\"]"},
                /* A pod that the decoder of pods refuses. */
                {"{\"metadata\":{\"annotations\":{" ASSIGNED("true") "}},\"spec\":{\"containers\":7}}",
                 "[" REMOVE("scheduler.framework.gpushare.assigned") "]",
                 "[\"" WARNING("scheduler.framework.gpushare.assigned") "\"]"},
                {ANNOTATED(USER_KEYS, MAIN(MEM("2"))), "[" SCHEDULER "," NEW_LIST "]", NULL},
                {ANNOTATED(USER_KEYS, PLAIN), NULL, NULL},
                {ANNOTATED(ASSIGNED(""), PLAIN), NULL, NULL},
                {"{\"metadata\":{\"annotations\":null}}", NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ReviewVerdict verdict;
                _cleanup_free_ char *answer =
                        ask(REVIEW_MUTATE, &(Case){"CREATE", "", "Pod", cases[i].object}, &verdict);

                ASSERT_CONTAINS(answer, "\"allowed\":true");
                ASSERT_INT(verdict, cases[i].patch ? REVIEW_PATCHED : REVIEW_ALLOWED);
                assert_patch(answer, cases[i].patch);
                if (cases[i].warnings)
                        ASSERT_CONTAINS(answer, cases[i].warnings);
                else
                        ASSERT_TRUE(!strstr(answer, "\"warnings\""));
        }
}

static void removes_each_system_key(void) {
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++) {
                Str key = pod_system_key_names[i];
                _cleanup_buf_ Buf object = BUF_NULL, warning = BUF_NULL;
                ReviewVerdict verdict;
                char *answer;

                buf_appendf(&object, "{\"metadata\":{\"annotations\":{\"" STR_FMT "\":\"-1\"}}}",
                            STR_ARG(key));
                buf_appendf(&warning, "[\"annotation " STR_FMT " is set by the scheduler; it was removed\"]",
                            STR_ARG(key));
                answer = ask(REVIEW_MUTATE, &(Case){"CREATE", "", "Pod", object.data}, &verdict);
                ASSERT_INT(verdict, REVIEW_PATCHED);
                ASSERT_CONTAINS(answer, warning.data);
                free(answer);
        }
}

#define RESIZE(key, v) "\"aliquot.dev/gpu-" key "\":\"" v "\""
#define RESIZE_WARNING(pod, key)                                                                             \
        "pod " pod ": annotation aliquot.dev/gpu-" key                                                       \
        " resizes a running pod, and a new pod has the size of its limits; it was removed"

/* Any value, also one that no resize could have. */
static void removes_the_keys_of_a_resize_from_new_pods(void) {
        static const struct {
                const char *object, *patch, *warnings;
        } cases[] = {
                {ANNOTATED(RESIZE("mem", "6"), PLAIN), "[" REMOVE("aliquot.dev~1gpu-mem") "]",
                 "\"warnings\":[\"" RESIZE_WARNING("default/p", "mem") "\"]"},
                {ANNOTATED(RESIZE("core", "x") "," RESIZE("mem", "-1") "," ASSIGNED("true"), MAIN(MEM("2"))),
                 "[" REMOVE("scheduler.framework.gpushare.assigned") "," REMOVE(
                         "aliquot.dev~1gpu-mem") "," REMOVE("aliquot.dev~1gpu-core") "," SCHEDULER
                                                                                     "," NEW_LIST "]",
                 "\"warnings\":[\"" WARNING("scheduler.framework.gpushare.assigned") "\",\"" RESIZE_WARNING(
                         "default/p", "mem") "\",\"" RESIZE_WARNING("default/p", "core") "\"]"},
                {ANNOTATED(RESIZE("mem", ""), PLAIN), NULL, "\"allowed\":true}}"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ReviewVerdict verdict;
                _cleanup_free_ char *answer =
                        ask(REVIEW_MUTATE, &(Case){"CREATE", "", "Pod", cases[i].object}, &verdict);

                assert_patch(answer, cases[i].patch);
                ASSERT_CONTAINS(answer, cases[i].warnings);
        }
}

/* The policy user-resize.yaml judges which users may. */
static void the_keys_of_a_resize_may_be_changed(void) {
        assert_judged(&(Case){"UPDATE", "", "Pod", ANNOTATED(RESIZE("mem", "6"), MAIN(MEM("8"))),
                              ANNOTATED(RESIZE("core", "5"), MAIN(MEM("8"))), NULL, NULL,
                              "\"username\":\"eve\",\"groups\":[]"});
}

static void a_subresource_is_not_patched(void) {
        ReviewVerdict verdict;
        _cleanup_free_ char *answer = ask(
                REVIEW_MUTATE,
                &(Case){"CREATE", "", "Pod", ANNOTATED(ASSIGNED("true"), PLAIN), .sub_resource = "binding"},
                &verdict);

        ASSERT_INT(verdict, REVIEW_ALLOWED);
        ASSERT_TRUE(!strstr(answer, "warnings"));
}

#define USER(name, groups)    "\"username\":\"" name "\",\"groups\":[" groups "]"
#define SERVICE_ACCOUNT(name) USER("system:serviceaccount:kube-system:" name, "\"system:serviceaccounts\"")
#define MUST_NOT(was, is, user)                                                                              \
        "pod default/p: annotation scheduler.framework.gpushare.assigned is \"" was                          \
        "\", must not become \"" is "\": aliquot's scheduler and node agent write it, and user \"" user      \
        "\" is none of the system accounts (--system-accounts)"

static void only_system_accounts_change_system_keys(void) {
        static const char bare[] = ANNOTATED("", PLAIN), no[] = ANNOTATED(ASSIGNED("false"), PLAIN),
                          empty[] = ANNOTATED(ASSIGNED(""), PLAIN),
                          yes[] = ANNOTATED(ASSIGNED("true") "," USER_KEYS, PLAIN);
        static const char undecodable[] =
                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\",\"annotations\":{" ASSIGNED(
                        "true") "}},\"spec\":7}";
        static const Case cases[] = {
                {"UPDATE", "", "Pod", yes, no, MUST_NOT("false", "true", "eve"), NULL, USER("eve", "")},
                {"UPDATE", "", "Pod", yes, no, MUST_NOT("false", "true", "eve"), "status", USER("eve", "")},
                {"UPDATE", "", "Pod", bare, no, MUST_NOT("false", "", "eve"), NULL, USER("eve", "\"devs\"")},
                {"UPDATE", "", "Pod", undecodable, no, MUST_NOT("false", "true", "eve"), NULL,
                 USER("eve", "")},
                {"UPDATE", "", "Pod", yes, no, MUST_NOT("false", "true", ""), NULL, NULL},
                {"UPDATE", "", "Pod", yes, no, MUST_NOT("false", "true", "system:masters"), NULL,
                 USER("system:masters", "")},
                {"UPDATE", "", "Pod", yes, no,
                 MUST_NOT("false", "true", "system:serviceaccount:default:aliquot-node"), NULL,
                 USER("system:serviceaccount:default:aliquot-node", "")},
                {"UPDATE", "", "Pod", yes, yes, NULL, NULL, USER("eve", "")},
                {"UPDATE", "", "Pod", empty, bare, NULL, NULL, USER("eve", "")},
                {"UPDATE", "", "Pod", ANNOTATED(ASSIGNED("true"), PLAIN), yes, NULL, NULL, USER("eve", "")},
                {"UPDATE", "", "Pod", yes, no, NULL, "resize", USER("eve", "")},
                {"UPDATE", "", "Pod", yes, no, NULL, NULL, SERVICE_ACCOUNT("aliquot-node")},
                {"UPDATE", "", "Pod", yes, no, NULL, "status", SERVICE_ACCOUNT("aliquot-scheduler")},
                {"UPDATE", "", "Pod", yes, no, NULL, NULL, SERVICE_ACCOUNT("old-plugin")},
                {"UPDATE", "", "Pod", yes, no,
                 MUST_NOT("false", "true", "system:serviceaccount:kube-system:aliquot-nodes"), NULL,
                 SERVICE_ACCOUNT("aliquot-nodes")},
                {"UPDATE", "", "Pod", yes, no, NULL, NULL,
                 USER("system:serviceaccount:gpus:aliquot-node", ""), .namespace_ = STR("gpus")},
                {"UPDATE", "", "Pod", yes, no,
                 MUST_NOT("false", "true", "system:serviceaccount:kube-system:aliquot-node"), NULL,
                 SERVICE_ACCOUNT("aliquot-node"), .namespace_ = STR("gpus")},
                {"UPDATE", "", "Pod", yes, no, NULL, NULL, USER("someone", "")},
                {"UPDATE", "", "Pod", yes, no, NULL, NULL, USER("root", "\"a\",\"system:masters\"")},
                /* The mutating task has removed the keys of a new pod. */
                {"CREATE", "", "Pod", yes, NULL, NULL, NULL, USER("eve", "")},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(ANNOTATED(ASSIGNED("true"), PLAIN)),
                 DEPLOYMENT(ANNOTATED("", PLAIN)), NULL, NULL, USER("eve", "")},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

static void long_keys_are_cut(void) {
        char value[400], object[1024], why[512];

        memset(value, 'x', sizeof value - 1);
        value[sizeof value - 1] = '\0';
        (void) snprintf(object, sizeof object,
                        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"p\",\"annotations\":{" ASSIGNED(
                                "%s") "}}}",
                        value);
        (void) snprintf(why, sizeof why, MUST_NOT("", "%.64s", "eve"), value);
        assert_judged(&(Case){"UPDATE", "", "Pod", object, ANNOTATED("", PLAIN), why, NULL, USER("eve", "")});
}

/* ---- NVIDIA_VISIBLE_DEVICES ---- */

#define VISIBLE(value)  "\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"" value "\"}]"
#define ENV_MAIN(value) "{\"name\":\"main\"," VISIBLE(value) "," LIMITS(MEM("2")) "}"
#define NOT_VISIBLE(path, list, name, value)                                                                 \
        path "spec." list ".env: container \"" name "\": NVIDIA_VISIBLE_DEVICES is \"" value                 \
             "\", must not be set in a pod with a share of a GPU: the node agent sets it"

static void visible_devices_are_the_agents(void) {
        static const Case cases[] = {
                {"CREATE", "", "Pod", POD("", ENV_MAIN("all")), NULL,
                 NOT_VISIBLE("", "containers[0]", "main", "all"), .runtime_devices = true},
                {"CREATE", "", "Pod", POD("", ENV_MAIN("all")), NULL, NULL, .runtime_devices = false},
                {"CREATE", "", "Pod", POD("", ENV_MAIN("")), NULL,
                 NOT_VISIBLE("", "containers[0]", "main", ""), .runtime_devices = true},
                {"CREATE", "", "Pod",
                 POD_WITH("\"initContainers\":[{\"name\":\"i\"," VISIBLE("0") "}],", MAIN(MEM("2"))), NULL,
                 NOT_VISIBLE("", "initContainers[0]", "i", "0"), .runtime_devices = true},
                {"CREATE", "apps", "Deployment", DEPLOYMENT(POD("", ENV_MAIN("all"))), NULL,
                 NOT_VISIBLE("spec.template.", "containers[0]", "main", "all"), .runtime_devices = true},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(POD("", ENV_MAIN("all"))),
                 DEPLOYMENT(POD("", MAIN(MEM("2")))),
                 NOT_VISIBLE("spec.template.", "containers[0]", "main", "all"), .runtime_devices = true},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT_2(POD("", ENV_MAIN("all"))),
                 DEPLOYMENT(POD("", ENV_MAIN("all"))), NULL, .runtime_devices = true},
                {"CREATE", "", "Pod", POD("", "{\"name\":\"main\"," VISIBLE("all") "}"), NULL, NULL,
                 .runtime_devices = true},
                {"CREATE", "", "Pod", POD("", MAIN(MEM("2"))), NULL, NULL, .runtime_devices = true},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

/* ---- variables of NVIDIA's hook ---- */

#define HOOK_ENV(name) "\"env\":[{\"name\":\"" name "\",\"value\":\"1\"}]"
#define HOOKED(name)   "{\"name\":\"main\"," HOOK_ENV(name) "," LIMITS(MEM("2")) "}"
#define NOT_HOOKED(path, name)                                                                               \
        path "spec.containers[0].env: container \"main\": " name                                             \
             " must not be set in a pod with a share of a GPU: its slice is its limit"

static void variables_of_the_hook_are_refused(void) {
        static const Case cases[] = {
                {"CREATE", "", "Pod", POD("", HOOKED("NVIDIA_GPU_MEMORY_LIMIT")), NULL,
                 NOT_HOOKED("", "NVIDIA_GPU_MEMORY_LIMIT")},
                {"CREATE", "apps", "Deployment", DEPLOYMENT(POD("", HOOKED("NVIDIA_GPU_MEMORY_REQUEST"))),
                 NULL, NOT_HOOKED("spec.template.", "NVIDIA_GPU_MEMORY_REQUEST")},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT_2(POD("", HOOKED("NVIDIA_GPU_MEMORY_LIMIT"))),
                 DEPLOYMENT(POD("", HOOKED("NVIDIA_GPU_MEMORY_LIMIT"))), NULL},
                {"CREATE", "", "Pod", POD("", HOOKED("NVIDIA_GPU_MEMORY_LIMITS")), NULL, NULL},
                {"CREATE", "", "Pod", POD("", "{\"name\":\"main\"," HOOK_ENV("NVIDIA_GPU_MEMORY_LIMIT") "}"),
                 NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

/* ---- mounts over the gate ---- */

#define VOLUMES(path)                                                                                        \
        "\"volumeMounts\":[{\"name\":\"v\",\"mountPath\":\"/data\"},{\"name\":\"v\",\"mountPath\":\"" path   \
        "\"}]"
#define BLOCK(path)                "\"volumeDevices\":[{\"name\":\"v\",\"devicePath\":\"" path "\"}]"
#define LAST_WORDS(path)           "\"terminationMessagePath\":\"" path "\""
#define WITH(more)                 "{\"name\":\"main\"," more "," LIMITS(MEM("2")) "}"
#define COVERED(field, name, path) field ": container \"" name "\": \"" path "\" " GATE_COVER_RULE
#define SECOND                     "spec.containers[0].volumeMounts[1].mountPath"

static void nothing_is_mounted_over_the_gate(void) {
        static const Case cases[] = {
                {"CREATE", "", "Pod", POD("", WITH(VOLUMES("/etc/ld.so.preload"))), NULL,
                 COVERED(SECOND, "main", "/etc/ld.so.preload")},
                {"CREATE", "", "Pod", POD("", WITH(VOLUMES("/x/..//.aliquot/slice/0/limits"))), NULL,
                 COVERED(SECOND, "main", "/x/..//.aliquot/slice/0/limits")},
                {"CREATE", "", "Pod", POD("", WITH(VOLUMES("/etc/"))), NULL,
                 COVERED(SECOND, "main", "/etc/")},
                {"CREATE", "", "Pod", POD("", WITH(VOLUMES("/"))), NULL, COVERED(SECOND, "main", "/")},
                {"CREATE", "", "Pod", POD("", WITH(VOLUMES("/etc/config"))), NULL, NULL},
                {"CREATE", "", "Pod", POD("", WITH(BLOCK("/.aliquot"))), NULL,
                 COVERED("spec.containers[0].volumeDevices[0].devicePath", "main", "/.aliquot")},
                {"CREATE", "", "Pod", POD("", WITH(LAST_WORDS("/etc/ld.so.preload"))), NULL,
                 COVERED("spec.containers[0].terminationMessagePath", "main", "/etc/ld.so.preload")},
                {"CREATE", "", "Pod",
                 POD_WITH("\"initContainers\":[{\"name\":\"i\"," VOLUMES("/etc") "," LIMITS(MEM("2")) "}],",
                          MAIN(MEM("2"))),
                 NULL, COVERED("spec.initContainers[0].volumeMounts[1].mountPath", "i", "/etc")},
                {"CREATE", "", "Pod",
                 POD_WITH("\"initContainers\":[{\"name\":\"i\",\"restartPolicy\":\"Always\"," VOLUMES(
                                  "/etc") "," LIMITS(MEM("2")) "}],",
                          MAIN(MEM("2"))),
                 NULL, COVERED("spec.initContainers[0].volumeMounts[1].mountPath", "i", "/etc")},
                /* a container without a slice has no gate */
                {"CREATE", "", "Pod",
                 POD_WITH("\"initContainers\":[{\"name\":\"i\"," VOLUMES("/etc") "}],", MAIN(MEM("2"))), NULL,
                 NULL},
                {"CREATE", "apps", "Deployment", DEPLOYMENT(POD("", WITH(VOLUMES("/etc")))), NULL,
                 "spec.template." COVERED(SECOND, "main", "/etc")},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT(POD("", WITH(VOLUMES("/etc")))),
                 DEPLOYMENT(POD("", WITH(VOLUMES("/data")))),
                 "spec.template." COVERED(SECOND, "main", "/etc")},
                {"UPDATE", "apps", "Deployment", DEPLOYMENT_2(POD("", WITH(VOLUMES("/etc")))),
                 DEPLOYMENT(POD("", WITH(VOLUMES("/etc")))), NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_judged(&cases[i]);
}

static void refuses_what_is_no_review(void) {
#define HEAD "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\""
        static const struct {
                const char *body, *why;
        } cases[] = {
                {"", "the review cannot be read"},
                {"{", "the review cannot be read"},
                {"null", "must be an AdmissionReview of admission.k8s.io/v1"},
                {"[]", "not an object"},
                {"{}", "must be an AdmissionReview of admission.k8s.io/v1"},
                {"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\"}",
                 "the body is a \"AdmissionReview\" of \"admission.k8s.io/v1beta1\""},
                {HEAD "}", "the review has no request"},
                {HEAD ",\"request\":null}", "the review has no request"},
                {HEAD ",\"request\":{}}", "request.uid has 0 characters"},
                {HEAD ",\"request\":{\"uid\":7}}", "request.uid: not a string"},
                {HEAD ",\"request\":{\"uid\":\"u\"}} x", "the review cannot be read"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf out = BUF_NULL;
                ReviewVerdict verdict = REVIEW_VERDICTS_;
                Fault fault = FAULT_NULL;

                ASSERT_INT(review_answer(REVIEW_VALIDATE, &no_rules, str_from(cases[i].body), &out, &verdict,
                                         &fault),
                           REVIEW_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, cases[i].why);
                ASSERT_INT(out.len, 0);
                ASSERT_INT(verdict, REVIEW_VERDICTS_);
        }
}

static void uid_at_the_limit(void) {
        for (unsigned n = 256; n <= 257; n++) {
                _cleanup_buf_ Buf body = BUF_NULL, out = BUF_NULL;
                ReviewVerdict verdict;

                buf_appendf(&body, HEAD ",\"request\":{\"uid\":\"%0*d\"}}", (int) n, 0);
                ASSERT_INT(review_answer(REVIEW_MUTATE, &no_rules, buf_str(&body), &out, &verdict, NULL),
                           n == 256 ? 0 : REVIEW_E_MALFORMED);
        }
}

/* Messages are for people: a value of a megabyte is cut. */
static void long_values_are_cut(void) {
        _cleanup_buf_ Buf object = BUF_NULL;
        ReviewVerdict verdict;

        buf_append_str(&object, STR("{\"spec\":{\"containers\":[{\"name\":\"m\",\"resources\":{\"limits\":{"
                                    "\"aliyun.com/gpu-mem\":\""));
        for (unsigned i = 0; i < 1 << 20; i++)
                buf_append_char(&object, 'x');
        buf_append_str(&object, STR("\"}}}]}}"));
        {
                _cleanup_free_ char *answer =
                        ask(REVIEW_VALIDATE, &(Case){"CREATE", "", "Pod", object.data}, &verdict);

                ASSERT_INT(verdict, REVIEW_REFUSED);
                ASSERT_TRUE(strlen(answer) < 4096);
        }
}

int main(void) {
        return TEST_MAIN(
                TEST(refuses_what_can_never_run), TEST(lets_mirror_pods_of_kubelets_in),
                TEST(judges_templates), TEST(other_kinds_pass), TEST(an_update_is_judged_by_what_it_changes),
                TEST(subresources_pass), TEST(refuses_what_it_cannot_read_if_it_is_ours),
                TEST(gives_the_scheduler), TEST(a_pod_tolerates_the_taint_of_what_it_asks_for),
                TEST(members_of_gangs_get_the_gate), TEST(judges_what_a_pod_says_of_its_gang),
                TEST(removes_system_keys_from_new_pods), TEST(removes_each_system_key),
                TEST(removes_the_keys_of_a_resize_from_new_pods), TEST(the_keys_of_a_resize_may_be_changed),
                TEST(a_subresource_is_not_patched), TEST(only_system_accounts_change_system_keys),
                TEST(long_keys_are_cut), TEST(visible_devices_are_the_agents),
                TEST(variables_of_the_hook_are_refused), TEST(nothing_is_mounted_over_the_gate),
                TEST(refuses_what_is_no_review), TEST(uid_at_the_limit), TEST(long_values_are_cut));
}
