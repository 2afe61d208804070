/* SPDX-License-Identifier: Apache-2.0 */

/* What a review says of a pod that is let in, and what the cluster can hold. */

#include "review-case.h"

/* ---- what the cluster can hold ---- */

static void add_node(Ledger *l, const char *name, const char *mode, const char *mem, const char *unit) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        Fault fault = FAULT_NULL;
        Node node;

        buf_appendf(&json,
                    "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"ack.node.gpu.schedule\":\"%s\"},"
                    "\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"%s\"}},\"status\":{\"allocatable\":{"
                    "\"aliyun.com/gpu-mem\":\"%s\",\"aliyun.com/gpu-count\":\"2\"}}}",
                    name, mode, unit, mem);
        ASSERT_OK(node_decode(buf_str(&json), &arena, &node, &fault));
        ASSERT_OK(ledger_node_set(l, &node, &fault));
}

static void warns_of_what_no_card_can_hold(void) {
        static const struct {
                const char *operation, *kind, *object, *old;
                const char *warning; /* NULL: none */
        } cases[] = {
                {"CREATE", "Pod", POD("", MAIN(MEM("15"))), NULL, NULL},
                {"CREATE", "Pod", POD("", MAIN(MEM("20"))), NULL,
                 "no card in this cluster has 20 units today, the largest has 15: the pod waits for a larger "
                 "card"},
                {"CREATE", "Deployment", DEPLOYMENT(POD("", MAIN(MEM("20")))), NULL, "has 20 units today"},
                {"CREATE", "Pod", POD(COUNT("2"), MAIN(MEM("30"))), NULL, NULL},
                {"CREATE", "Pod", POD(COUNT("3"), MAIN(MEM("30"))), NULL,
                 "no node of this cluster has 3 cards of 10 units today: the pod waits for such a node"},
                {"CREATE", "Pod", POD("", MAIN(MEM("2") "," CORE("30"))), NULL,
                 "no node of this cluster is in mode core_mem today, which aliyun.com/gpu-core.percentage "
                 "needs"},
                {"UPDATE", "Deployment", DEPLOYMENT_2(POD("", MAIN(MEM("20")))),
                 DEPLOYMENT(POD("", MAIN(MEM("20")))), NULL},
                {"UPDATE", "Deployment", DEPLOYMENT(POD("", MAIN(MEM("20")))),
                 DEPLOYMENT(POD("", MAIN(MEM("2")))), "has 20 units today"},
                {"CREATE", "Pod", BOUND("", MAIN(MEM("20"))), NULL, NULL},
                {"CREATE", "Pod", POD("", PLAIN), NULL, NULL},
        };
        _cleanup_(ledger_freep) Ledger *none = NULL, *l = NULL;

        ASSERT_OK(ledger_new(&none));
        ASSERT_OK(ledger_new(&l));
        add_node(l, "n1", "cgpu", "30", "GiB");
        add_node(l, "n2", "share", "22", "GiB");
        add_node(l, "whole", "default", "160", "GiB"); /* another plugin's */
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *group = strcmp(cases[i].kind, "Pod") == 0 ? "" : "apps";
                Case c = {cases[i].operation, group,        cases[i].kind,
                          cases[i].object,    cases[i].old, .ledger = l};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict), *before = NULL;

                ASSERT_INT(verdict, REVIEW_ALLOWED);
                ASSERT_CONTAINS(answer, "\"allowed\":true");
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                ASSERT_INT(strstr(answer, "\"warnings\"") != NULL, cases[i].warning != NULL);
                c.ledger = none; /* before the first node comes */
                before = ask(REVIEW_VALIDATE, &c, &verdict);
                ASSERT_FALSE(strstr(before, "\"warnings\""));
        }
}

/* A node may come that has such a card: a warning, never a refusal. Malformed lists are refused. */
static void judges_which_cards_are_chosen(void) {
        static const struct {
                const char *annotation, *old, *warning, *why;
        } cases[] = {
                {"\"nvidia.com/use-gputype\":\"a100\"", NULL, NULL, NULL},
                {"\"nvidia.com/use-gputype\":\"A100,H100\"", NULL,
                 "annotation nvidia.com/use-gputype: no card in this cluster has \\\"H100\\\" in its model "
                 "today",
                 NULL},
                {"\"aliquot.dev/gpu-uuid\":\"!GPU-9\"", NULL,
                 "annotation aliquot.dev/gpu-uuid: no card in this cluster has \\\"GPU-9\\\" in its UUID "
                 "today",
                 NULL},
                {"\"aliquot.dev/gpu-type\":\"!\"", NULL, NULL,
                 "metadata.annotations[\\\"aliquot.dev/gpu-type\\\"]: annotation aliquot.dev/gpu-type: "
                 "\\\"!\\\" must have a name after one"},
                {"\"nvidia.com/use-gputype\":\"A100,\"", NULL,
                 "annotation nvidia.com/use-gputype has an empty entry, which is passed over", NULL},
                {"\"aliquot.dev/gpu-type\":\"!\"", "\"x\":\"y\"", NULL, "must have a name after one"},
                {"\"aliquot.dev/gpu-type\":\"!\"", "\"aliquot.dev/gpu-type\":\"!\"", NULL, NULL},
        };
        static const Node node = {.meta.name = STR("n1"),
                                  .mode = STR("cgpu"),
                                  .annotations.cards = STR("[{\"index\":0,\"units\":15,\"model\":\"NVIDIA "
                                                           "A100-SXM4-80GB\",\"uuid\":\"GPU-0\"}]")};
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(ledger_node_set(l, &node, NULL));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char object[512], old[512];
                Case c = {cases[i].old ? "UPDATE" : "CREATE", "", "Pod", object, .ledger = l};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = NULL;

                (void) snprintf(object, sizeof object,
                                "{\"metadata\":{\"annotations\":{%s}}," SPEC("", MAIN(MEM("2"))) "}",
                                cases[i].annotation);
                (void) snprintf(old, sizeof old,
                                "{\"metadata\":{\"annotations\":{%s}}," SPEC("", MAIN(MEM("2"))) "}",
                                cases[i].old ? cases[i].old : "");
                c.old = cases[i].old ? old : NULL;
                answer = ask(REVIEW_VALIDATE, &c, &verdict);
                ASSERT_INT(verdict, cases[i].why ? REVIEW_REFUSED : REVIEW_ALLOWED);
                if (cases[i].why)
                        ASSERT_CONTAINS(answer, cases[i].why);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                ASSERT_INT(strstr(answer, "\"warnings\"") != NULL, cases[i].warning != NULL);
        }
}

static void warns_of_a_misspelt_limit(void) {
#define OTHER(name)   "\"" name "\":\"3\""
#define SAYS(is, was) "container \\\"main\\\": limit " is " is no resource of aliquot: did you mean " was "?"
        static const struct {
                const char *kind, *object, *old;
                const char *warning; /* NULL: none */
        } cases[] = {
                {"Pod", POD("", MAIN(OTHER("aliyun.com/gpu-memory"))), NULL,
                 SAYS("aliyun.com/gpu-memory", "aliyun.com/gpu-mem")},
                {"Pod", POD("", MAIN(MEM("3") "," OTHER("aliyun.com/gpu-core"))), NULL,
                 SAYS("aliyun.com/gpu-core", "aliyun.com/gpu-core.percentage")},
                {"Pod", POD("", PLAIN "," MAIN(OTHER("aliyun.com/gpucount"))), NULL,
                 SAYS("aliyun.com/gpucount", "aliyun.com/gpu-count")},
                {"Deployment", DEPLOYMENT(POD("", MAIN(OTHER("aliyun.com/gpu_mem")))), NULL,
                 SAYS("aliyun.com/gpu_mem", "aliyun.com/gpu-mem")},
                {"Deployment", DEPLOYMENT(POD("", MAIN(OTHER("aliyun.com/gpu_mem")))),
                 DEPLOYMENT(POD("", MAIN(MEM("3")))), SAYS("aliyun.com/gpu_mem", "aliyun.com/gpu-mem")},
                {"Deployment", DEPLOYMENT_2(POD("", MAIN(OTHER("aliyun.com/gpu_mem")))),
                 DEPLOYMENT(POD("", MAIN(OTHER("aliyun.com/gpu_mem")))), NULL},
                {"Pod", POD("", MAIN(OTHER("aliyun.com/gpu"))), NULL, NULL},
                {"Pod", POD("", MAIN(OTHER("aliyun.com/gpu-health"))), NULL, NULL},
                {"Pod", POD("", MAIN(OTHER("example.com/gpu-memory"))), NULL, NULL},
        };
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c = {cases[i].old ? "UPDATE" : "CREATE",
                          strcmp(cases[i].kind, "Pod") == 0 ? "" : "apps",
                          cases[i].kind,
                          cases[i].object,
                          cases[i].old,
                          .ledger = l};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                ASSERT_INT(verdict, REVIEW_ALLOWED);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                ASSERT_INT(strstr(answer, "\"warnings\"") != NULL, cases[i].warning != NULL);
        }
}

/* The kind of a key, its name, and what the warning says behind "is not known and changes nothing";
 * NULL: there is none. */
static void warns_of_a_misspelt_key(void) {
        enum { LABEL, ANNOTATION, SELECTOR, ENVIRONMENT, LIMIT };
        static const char *const forms[][2] = {
                [LABEL] = {"{\"metadata\":{\"labels\":{\"", "\":\"1\"}}," SPEC("", MAIN(MEM("3"))) "}"},
                [ANNOTATION] = {"{\"metadata\":{\"annotations\":{\"",
                                "\":\"1\"}}," SPEC("", MAIN(MEM("3"))) "}"},
                [SELECTOR] = {"{\"spec\":{\"nodeSelector\":{\"",
                              "\":\"share\"},\"containers\":[" MAIN(MEM("3")) "]}}"},
                [ENVIRONMENT] = {"{\"spec\":{\"containers\":[{\"env\":[{\"value\":\"1\",\"name\":\"",
                                 "\"}],\"name\":\"main\"}," MAIN(MEM("3")) "]}}"},
                [LIMIT] = {"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"",
                           "\":\"2\"}},\"name\":\"main\"}]}}"},
        };
        static const struct {
                int kind;
                const char *key, *meant;
        } cases[] = {
                {ANNOTATION, "aliquot.dev/gpu-memry", "annotation aliquot.dev/gpu-mem?"},
                {ANNOTATION, "aliquot.dev/gpu-typ", "annotation aliquot.dev/gpu-type?"},
                {ANNOTATION, "aliqout.dev/gpu-type", "annotation aliquot.dev/gpu-type?"},
                {ANNOTATION, "aliquot.de/gpu-type", "annotation aliquot.dev/gpu-type?"},
                {LABEL, "aliquot.dev/gpu-uuid", "annotation aliquot.dev/gpu-uuid?"},
                {ANNOTATION, "nvidia.com/use-gpu-type", "annotation nvidia.com/use-gputype?"},
                {ANNOTATION, "nvidia.com/use-gpuuid", "annotation nvidia.com/use-gpuuuid?"},
                {LABEL, "aliyun.com/gpu-cont", "label aliyun.com/gpu-count?"},
                {LABEL, LABEL_GANG "/min-availble", "label " LABEL_GANG "/min-available?"},
                {ANNOTATION, LABEL_GANG "/min-available", "label " LABEL_GANG "/min-available?"},
                {LABEL, "gpu-topology-replicas", "label gpu-topology-replica?"},
                {SELECTOR, "ack.node.gpu.shedule", "ack.node.gpu.schedule?"},
                {ENVIRONMENT, "ALIYUN_COM_GPU_SCHED_WEIGHT", "env ALIYUN_COM_GPU_SCHD_WEIGHT?"},
                {ENVIRONMENT, "CGPU_DISABLED", "env CGPU_DISABLE?"},
                {LIMIT, "aliyum.com/gpu-mem", "aliyun.com/gpu-mem?"},
                /* What is known, what others have, and what says too little. */
                {ANNOTATION, "aliquot.dev/resize-status", NULL},
                {ANNOTATION, ANNOTATION_KICK, NULL},
                {ANNOTATION, "aliquot.dev/owner", NULL},
                {ANNOTATION, "nvidia.com/include-gpu-index", NULL},
                {ANNOTATION, "nvidia.com/vgpu-mode", NULL},
                {ANNOTATION, "gang.scheduling.koordinator.sh/mode", NULL},
                {ANNOTATION, "gang.scheduling.koordinator.sh/total-number", NULL},
                {ANNOTATION, "example.com/gpu-type", NULL},
                {LABEL, "topology.kubernetes.io/zone", NULL},
                {LABEL, "app", NULL},
                {LABEL, "aliquot.dev/webhook", NULL},
                {SELECTOR, "nvidia.com/gpu.product", NULL},
                {SELECTOR, "kubernetes.io/hostname", NULL},
                {ENVIRONMENT, "GPU_DISABLE", NULL},
                {ENVIRONMENT, "CGPU", NULL},
                {ENVIRONMENT, "ALIYUN_COM_GPU_VISIBLE_DEVICES", NULL},
                {ENVIRONMENT, "CUDA_VISIBLE_DEVICES", NULL},
                {LIMIT, "nvidia.com/gpu", NULL},
                {LIMIT, "aliyuncs.com/eni", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char object[512], template_[600], expected[512];
                Case c = {"CREATE", "", "Pod", object, NULL};

                (void) snprintf(object, sizeof object, "%s%s%s", forms[cases[i].kind][0], cases[i].key,
                                forms[cases[i].kind][1]);
                (void) snprintf(expected, sizeof expected, "%s is %s did you mean %s", cases[i].key,
                                cases[i].kind == LIMIT      ? "no resource of aliquot:"
                                : cases[i].kind == SELECTOR ? "no label of aliquot:"
                                                            : "not known and changes nothing,",
                                cases[i].meant ? cases[i].meant : "");
                for (int is_template = 0; is_template < 2; is_template++) {
                        ReviewVerdict verdict;
                        _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                        if (!cases[i].meant && strstr(answer, "did you mean"))
                                TEST_FAIL_("%s: %s", cases[i].key, answer);
                        if (cases[i].meant)
                                ASSERT_CONTAINS(answer, expected);
                        if (cases[i].meant && (cases[i].kind == ENVIRONMENT || cases[i].kind == LIMIT))
                                ASSERT_CONTAINS(answer, "container \\\"main\\\": ");
                        (void) snprintf(template_, sizeof template_, DEPLOYMENT("%s"), object);
                        c = (Case){"CREATE", "apps", "Deployment", template_, NULL};
                }
        }
}

/* Keys of pods stand in the template's metadata; on the workload itself nothing reads them. */
static void warns_of_a_key_of_the_workload_itself(void) {
#define OWN(members, template) "{\"metadata\":{" members "},\"spec\":{\"template\":" template "}}"
#define KEYS(kind, key)        "\"" kind "\":{\"" key "\":\"2\"}"
#define TEMPLATE(metadata)     "{\"metadata\":{" metadata "}," SPEC("", MAIN(MEM("4"))) "}"
#define CRON_TEMPLATE(job, metadata)                                                                         \
        "\"spec\":{\"jobTemplate\":{\"metadata\":{" job "},\"spec\":{\"template\":" TEMPLATE(metadata) "}}}"
#define ITSELF " of the workload itself changes nothing: "
        static const struct {
                const char *kind, *object, *old;
                const char *warning; /* NULL: none */
        } cases[] = {
                {"Deployment", OWN(KEYS("labels", "aliyun.com/gpu-count"), TEMPLATE("")), NULL,
                 "[\"label aliyun.com/gpu-count" ITSELF
                 "label aliyun.com/gpu-count is read in spec.template.metadata\"]"},
                {"StatefulSet", OWN(KEYS("annotations", "aliquot.dev/gpu-typ"), TEMPLATE("")), NULL,
                 "annotation aliquot.dev/gpu-typ" ITSELF
                 "annotation aliquot.dev/gpu-type is read in spec.template.metadata"},
                {"DaemonSet", OWN(KEYS("annotations", "aliyun.com/gpu-count"), TEMPLATE("")), NULL,
                 "annotation aliyun.com/gpu-count" ITSELF "label aliyun.com/gpu-count is read in"},
                {"Deployment", OWN(KEYS("annotations", "nvidia.com/use-gputype"), TEMPLATE("")), NULL,
                 "annotation nvidia.com/use-gputype" ITSELF},
                {"Deployment", OWN(KEYS("annotations", "aliquot.dev/policy"), TEMPLATE("")), NULL,
                 "annotation aliquot.dev/policy" ITSELF "it is read on nodes"},
                {"CronJob",
                 "{\"metadata\":{" KEYS("labels", "aliyun.com/gpu-count") "}," CRON_TEMPLATE("", "") "}",
                 NULL, "is read in spec.jobTemplate.spec.template.metadata"},
                {"CronJob", "{" CRON_TEMPLATE(KEYS("labels", "aliyun.com/gpu-count"), "") "}", NULL,
                 "is read in spec.jobTemplate.spec.template.metadata"},
                {"Deployment", OWN(KEYS("labels", "aliyun.com/gpu-count"), TEMPLATE("")),
                 OWN("\"generation\":1", TEMPLATE("")), "label aliyun.com/gpu-count" ITSELF},
                {"Deployment", OWN(KEYS("labels", "aliyun.com/gpu-count"), TEMPLATE("")),
                 OWN("\"generation\":1," KEYS("labels", "aliyun.com/gpu-count"), TEMPLATE("")), NULL},
                {"Deployment",
                 OWN(KEYS("labels", "aliyun.com/gpu-count"),
                     TEMPLATE(KEYS("labels", "aliyun.com/gpu-count"))),
                 NULL, NULL},
                {"Deployment", OWN(KEYS("labels", "aliquot.dev/webhook"), TEMPLATE("")), NULL, NULL},
                {"Deployment", OWN(KEYS("labels", "app"), TEMPLATE("")), NULL, NULL},
                {"Deployment", OWN("\"labels\":null,\"annotations\":null", TEMPLATE("")), NULL, NULL},
                {"Deployment",
                 OWN(KEYS("annotations", "scheduler.framework.gpushare.allocation"), TEMPLATE("")), NULL,
                 NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c = {cases[i].old ? "UPDATE" : "CREATE",
                          strcmp(cases[i].kind, "CronJob") == 0 ? "batch" : "apps", cases[i].kind,
                          cases[i].object, cases[i].old};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                ASSERT_INT(verdict, REVIEW_ALLOWED);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                if ((strstr(answer, "\"warnings\"") != NULL) != (cases[i].warning != NULL))
                        TEST_FAIL_("case %zu: %s", i, answer);
        }
}

static void warns_of_a_key_of_nodes(void) {
        static const char *const objects[] = {
                "{\"metadata\":{\"annotations\":{\"aliquot.dev/policy\":\"1\"}}," SPEC("",
                                                                                       MAIN(MEM("3"))) "}",
                POD("\"ack.node.gpu.schedule\":\"cgpu\"", MAIN(MEM("3")))};
        static const char *const says[] = {
                "annotation aliquot.dev/policy is read on nodes and changes nothing on a pod",
                "label ack.node.gpu.schedule is read on nodes and changes nothing on a pod"};

        for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
                Case c = {"CREATE", "", "Pod", objects[i], NULL};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                ASSERT_CONTAINS(answer, says[i]);
        }
}

/* A pod of other names alone has no more than a part of them in its warnings. */
static void says_a_part_of_many_misspelt_keys(void) {
        _cleanup_buf_ Buf object = BUF_NULL;
        Case c = {"CREATE", "", "Pod", NULL, NULL};
        ReviewVerdict verdict;
        _cleanup_free_ char *answer = NULL;
        size_t n = 0;

        buf_append_str(&object, STR("{\"metadata\":{\"annotations\":{"));
        for (unsigned i = 0; i < 1000; i++)
                buf_appendf(&object, "%s\"aliquot.dev/gpu-typ%u\":\"x\"", i > 0 ? "," : "", i % 10);
        buf_append_str(&object, STR("}}," SPEC("", MAIN(MEM("3"))) "}"));
        ASSERT_OK(buf_result(&object));
        c.object = object.data;
        answer = ask(REVIEW_VALIDATE, &c, &verdict);
        for (const char *at = answer; (at = strstr(at, "did you mean")); at++)
                n++;
        ASSERT_INT(n, 16);
}

/* An allowed pod that says what has another effect than its author may think. */
static void warns_of_what_has_another_effect(void) {
#define SHARED(more)  "{\"name\":\"main\"," more "," LIMITS(MEM("3")) "}"
#define COMPUTE(more) "{\"name\":\"main\"," more "," LIMITS(MEM("3") "," CORE("30")) "}"
#define ENV(members)  "\"env\":[{" members "}]"
#define INIT(more, l) "\"initContainers\":[{\"name\":\"i\"," more LIMITS(l) "}],"
#define PRIVILEGED    "\"securityContext\":{\"privileged\":true}"
#define SELECTS(mode) "\"nodeSelector\":{\"ack.node.gpu.schedule\":\"" mode "\"},"
#define AGENTS(name)                                                                                         \
        "container \\\"main\\\": env " name ": the program reads this value in place of the node agent's"
#define INIT_WARNING                                                                                         \
        "init container \\\"i\\\": it has a share of a GPU: where the kubelet restarts while the node agent"
#define OTHERS_LIMIT(is) "limit " is " is another system's, and aliquot gives nothing for it: did you mean "
        static const struct {
                const char *kind, *object, *old;
                const char *warning; /* NULL: none */
        } cases[] = {
                {"Pod", POD_WITH(INIT("", MEM("2")), MAIN(MEM("3"))), NULL, INIT_WARNING},
                {"Deployment", DEPLOYMENT(POD_WITH(INIT("", MEM("2")), PLAIN)), NULL, INIT_WARNING},
                {"Deployment", DEPLOYMENT(POD_WITH(INIT("", MEM("2")), MAIN(MEM("3")))),
                 DEPLOYMENT(POD("", MAIN(MEM("3")))), INIT_WARNING},
                {"Deployment", DEPLOYMENT_2(POD_WITH(INIT("", MEM("2")), MAIN(MEM("3")))),
                 DEPLOYMENT(POD_WITH(INIT("", MEM("2")), MAIN(MEM("3")))), NULL},
                {"Pod", POD_WITH(INIT("\"restartPolicy\":\"Always\",", MEM("2")), MAIN(MEM("3"))), NULL,
                 NULL},
                {"Pod", POD_WITH(INIT("", "\"cpu\":\"1\""), MAIN(MEM("3"))), NULL, NULL},
                {"Pod", POD("", SHARED(PRIVILEGED)), NULL,
                 "container \\\"main\\\": securityContext.privileged: it reaches all cards of its node"},
                {"Deployment", DEPLOYMENT(POD("", SHARED(PRIVILEGED))), DEPLOYMENT(POD("", MAIN(MEM("3")))),
                 "securityContext.privileged"},
                {"Pod", POD("", SHARED("\"securityContext\":{\"privileged\":false}")), NULL, NULL},
                {"Pod", POD("", "{\"name\":\"main\"," PRIVILEGED "}," SHARED("\"tty\":true")), NULL, NULL},
                {"Pod", POD("", COMPUTE(ENV("\"name\":\"CGPU_DISABLE\",\"value\":\"yes\""))), NULL,
                 "container \\\"main\\\": environment CGPU_DISABLE is \\\"yes\\\""},
                {"Pod", POD("", SHARED(ENV("\"name\":\"CGPU_DISABLE\",\"value\":\"true\""))), NULL, NULL},
                {"Pod", POD("", COMPUTE(ENV("\"name\":\"ALIYUN_COM_GPU_SCHD_WEIGHT\",\"value\":\"x\""))),
                 NULL, "ALIYUN_COM_GPU_SCHD_WEIGHT is \\\"x\\\""},
                {"Pod", POD_WITH(SELECTS("cgpu"), MAIN(MEM("3") "," CORE("30"))), NULL,
                 "nodeSelector ack.node.gpu.schedule is \\\"cgpu\\\", and compute percent needs core_mem: no "
                 "node "
                 "takes the pod"},
                {"Pod", POD_WITH(SELECTS("topology"), MAIN(MEM("3"))), NULL,
                 "and gpu-mem needs share, cgpu or core_mem: no node takes the pod"},
                {"Pod", POD_WITH(SELECTS("core_mem"), MAIN(GPU)), NULL,
                 "and aliyun.com/gpu needs topology: no node takes the pod"},
                {"Pod", POD_WITH(SELECTS("core-mem"), MAIN(MEM("3"))), NULL, "is \\\"core-mem\\\""},
                {"Pod", POD_WITH(SELECTS("core_mem"), MAIN(MEM("3"))), NULL, NULL},
                {"Pod", POD_WITH(SELECTS("mig"), PLAIN), NULL, NULL},
                {"Pod", POD("", MAIN(MEM("0"))), NULL,
                 "container \\\"main\\\": limit aliyun.com/gpu-mem is 0, which asks for no share of a GPU"},
                {"Pod", POD("", MAIN(MEM("0Gi"))), NULL, "limit aliyun.com/gpu-mem is 0Gi"},
                {"Pod", POD("", MAIN(MEM("0")) "," MAIN(MEM("2"))), NULL, "asks for no share of a GPU"},
                {"Pod", POD("", MAIN(MEM("3") ",\"nvidia.com/gpumem\":\"3000\"")), NULL,
                 OTHERS_LIMIT("nvidia.com/gpumem") "aliyun.com/gpu-mem?"},
                {"Pod", POD("", MAIN("\"nvidia.com/gpucores\":\"30\"," MEM("3"))), NULL,
                 OTHERS_LIMIT("nvidia.com/gpucores") "aliyun.com/gpu-core.percentage?"},
                {"Pod", POD("", MAIN("\"nvidia.com/gpumem-percentage\":\"30\"," MEM("3"))), NULL,
                 OTHERS_LIMIT("nvidia.com/gpumem-percentage")},
                {"Pod", POD("", MAIN("\"nvidia.com/gpumem\":\"3000\"")), NULL,
                 OTHERS_LIMIT("nvidia.com/gpumem") "aliyun.com/gpu-mem?"},
                {"Pod", POD("", MAIN("\"nvidia.com/gpu\":\"1\"")), NULL, NULL},
                {"Pod", POD("", SHARED(ENV("\"name\":\"ALIYUN_COM_GPU_MEM_CONTAINER\",\"value\":\"9\""))),
                 NULL, AGENTS("ALIYUN_COM_GPU_MEM_CONTAINER")},
                {"Pod",
                 POD("", SHARED(ENV("\"name\":\"ALIYUN_COM_GPU_MEM_IDX\",\"valueFrom\":{\"fieldRef\":{}}"))),
                 NULL, AGENTS("ALIYUN_COM_GPU_MEM_IDX")},
                {"Pod", POD("", SHARED(ENV("\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"all\""))), NULL,
                 AGENTS("NVIDIA_VISIBLE_DEVICES")},
                {"Pod", POD("", SHARED(ENV("\"name\":\"NVIDIA_DRIVER_CAPABILITIES\",\"value\":\"all\""))),
                 NULL, NULL},
                {"Pod", POD_WITH("\"schedulingGroup\":{\"podGroupName\":\"g\"},", MAIN(MEM("3"))), NULL,
                 "spec.schedulingGroup has no effect: Workload and PodGroup objects are not read"},
                {"Deployment", DEPLOYMENT(POD_WITH("\"workloadRef\":{\"name\":\"w\"},", MAIN(MEM("3")))),
                 NULL, "spec.schedulingGroup has no effect"},
                {"Pod", POD_WITH("\"schedulingGroup\":null,", MAIN(MEM("3"))), NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c = {cases[i].old ? "UPDATE" : "CREATE", strcmp(cases[i].kind, "Pod") == 0 ? "" : "apps",
                          cases[i].kind, cases[i].object, cases[i].old};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                ASSERT_INT(verdict, REVIEW_ALLOWED);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                if ((strstr(answer, "\"warnings\"") != NULL) != (cases[i].warning != NULL))
                        TEST_FAIL_("case %zu: %s", i, answer);
        }
}

/* A mode that the node affinity leaves no node of. */
static void warns_of_the_mode_of_an_affinity(void) {
#define AFFINE(terms)                                                                                        \
        "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"               \
        "\"nodeSelectorTerms\":[" terms "]}}},"
#define TERM(rules)       "{\"matchExpressions\":[" rules "]}"
#define RULE(key, op, v)  "{\"key\":\"" key "\",\"operator\":\"" op "\",\"values\":[" v "]}"
#define MODES(op, v)      RULE("ack.node.gpu.schedule", op, v)
#define AFFINE_WARNING(w) "nodeAffinity on ack.node.gpu.schedule excludes the mode, and " w
        static const struct {
                const char *kind, *object, *old;
                const char *warning; /* NULL: none */
        } cases[] = {
                {"Pod",
                 POD_WITH(AFFINE(TERM(MODES("In", "\"cgpu\",\"share\""))), MAIN(MEM("3") "," CORE("30"))),
                 NULL, AFFINE_WARNING("compute percent needs core_mem: no node takes the pod")},
                {"Deployment",
                 DEPLOYMENT(POD_WITH(AFFINE(TERM(MODES("In", "\"core-mem\""))), MAIN(MEM("3")))), NULL,
                 AFFINE_WARNING("gpu-mem needs share, cgpu or core_mem")},
                {"Pod", POD_WITH(AFFINE(TERM(MODES("NotIn", "\"topology\""))), MAIN(GPU)), NULL,
                 AFFINE_WARNING("aliyun.com/gpu needs topology")},
                {"Pod", POD_WITH(AFFINE(TERM(MODES("DoesNotExist", ""))), MAIN(MEM("3"))), NULL,
                 AFFINE_WARNING("gpu-mem needs")},
                {"Pod",
                 POD_WITH(AFFINE(TERM(RULE("zone", "In", "\"a\"") "," MODES("In", "\"mig\"")) ",{}"),
                          MAIN(MEM("3"))),
                 NULL, AFFINE_WARNING("gpu-mem needs")},
                {"Pod", POD_WITH(SELECTS("cgpu") AFFINE(TERM(MODES("In", "\"share\""))), MAIN(MEM("3"))),
                 NULL, AFFINE_WARNING("gpu-mem needs")},
                {"Pod",
                 POD_WITH(AFFINE(TERM(MODES("In", "\"cgpu\"")) "," TERM(MODES("In", "\"core_mem\""))),
                          MAIN(MEM("3") "," CORE("30"))),
                 NULL, NULL},
                {"Pod",
                 POD_WITH(AFFINE(TERM(MODES("In", "\"mig\"")) "," TERM(RULE("zone", "In", "\"a\""))),
                          MAIN(MEM("3"))),
                 NULL, NULL},
                {"Pod", POD_WITH(AFFINE(TERM(MODES("Exists", ""))), MAIN(MEM("3"))), NULL, NULL},
                {"Pod", POD_WITH(AFFINE(TERM(MODES("NotIn", "\"cgpu\""))), MAIN(MEM("3"))), NULL, NULL},
                {"Pod", POD_WITH(AFFINE(TERM(MODES("In", "\"mig\""))), PLAIN), NULL, NULL},
                {"Pod", POD_WITH("\"affinity\":{\"nodeAffinity\":{}},", MAIN(MEM("3"))), NULL, NULL},
                {"Pod", POD_WITH("\"affinity\":null,", MAIN(MEM("3"))), NULL, NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Case c = {cases[i].old ? "UPDATE" : "CREATE", strcmp(cases[i].kind, "Pod") == 0 ? "" : "apps",
                          cases[i].kind, cases[i].object, cases[i].old};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);

                ASSERT_INT(verdict, REVIEW_ALLOWED);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                if ((strstr(answer, "\"warnings\"") != NULL) != (cases[i].warning != NULL))
                        TEST_FAIL_("case %zu: %s", i, answer);
        }
}

/* Where gangs are off, a wrong number is named all the same; where they are on, it is refused. */
static void warns_of_a_gang_that_is_wrong(void) {
#define GANG(key, value) "\"" LABEL_GANG_NAME "\":\"g\",\"" key "\":\"" value "\""
        static const struct {
                const char *labels, *warning;
        } cases[] = {
                {GANG(LABEL_GANG_MIN, "x"), "metadata.labels[\\\"" LABEL_GANG_MIN
                                            "\\\"]: is \\\"x\\\", must be a number from 1 to 1024"},
                {GANG(LABEL_GANG_MIN, "0"), "is \\\"0\\\", must be a number from 1 to 1024"},
                {GANG(LABEL_GANG_MIN, "1025"), "is \\\"1025\\\", must be a number from 1 to 1024"},
                {GANG(LABEL_GANG_MIN, "3"), NULL},
                {"\"app\":\"x\"", NULL},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char object[512];
                Case c = {"CREATE", "", "Pod", object, NULL};
                ReviewVerdict verdict;
                _cleanup_free_ char *answer = NULL, *update = NULL;

                (void) snprintf(object, sizeof object, POD("%s", MAIN(MEM("3"))), cases[i].labels);
                answer = ask(REVIEW_VALIDATE, &c, &verdict);
                ASSERT_INT(verdict, REVIEW_ALLOWED);
                if (cases[i].warning)
                        ASSERT_CONTAINS(answer, cases[i].warning);
                ASSERT_INT(strstr(answer, "must be a number") != NULL, cases[i].warning != NULL);
                c.operation = "UPDATE";
                c.old = object;
                update = ask(REVIEW_VALIDATE, &c, &verdict);
                ASSERT_TRUE(!strstr(update, "must be a number"));
        }
}

/* kubectl shows one line for each warning, and the API server cuts one at 256 characters. */
static void each_warning_stands_alone(void) {
        Case c = {"CREATE", "", "Pod",
                  POD_WITH(SELECTS("cgpu") INIT(PRIVILEGED ",", MEM("2") "," CORE("5")),
                           "{\"name\":\"a-name-of-sixty-three-characters-which-is-the-most-for-a-"
                           "contai\"," PRIVILEGED "," ENV("\"name\":\"NVIDIA_VISIBLE_DEVICES\"") "," LIMITS(
                                   MEM("3") "," CORE("30")) "}"),
                  NULL};
        ReviewVerdict verdict;
        _cleanup_free_ char *answer = ask(REVIEW_VALIDATE, &c, &verdict);
        const char *at = strstr(answer, "\"warnings\":[\""), *end = at ? strstr(at, "\"]") : NULL;
        size_t n = 0;

        ASSERT_TRUE(at && end);
        at = strchr(at, '[') + 2;
        for (const char *next = at; next != end; at = next + 3, n++) {
                next = strstr(at, "\",\"");
                next = next && next < end ? next : end;
                ASSERT_TRUE(next - at <= 256);
        }
        ASSERT_INT(n, 5);
}

static void an_amount_of_bytes_is_told_in_units(void) {
        static const struct {
                const char *unit, *text, *why;
        } cases[] = {
                {"GiB", "3Gi", "aliyun.com/gpu-mem is 3Gi; write 3, the unit is GiB here"},
                {"128MiB", "3Gi", "aliyun.com/gpu-mem is 3Gi; write 24, the unit is 128MiB here"},
                {"GiB", "512Mi", "aliyun.com/gpu-mem is 512Mi; write 1, the unit is GiB here"},
                {NULL, "3Gi", "aliyun.com/gpu-mem is 3Gi; write 3 where the unit is GiB"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                _cleanup_free_ char *answer = NULL;
                ReviewVerdict verdict;
                char object[256];
                Case c = {"CREATE", "", "Pod", object, .ledger = NULL};

                ASSERT_OK(ledger_new(&l));
                if (cases[i].unit)
                        add_node(l, "n1", "cgpu", "30", cases[i].unit);
                c.ledger = l;
                (void) snprintf(object, sizeof object, POD("", MAIN("\"aliyun.com/gpu-mem\":\"%s\"")),
                                cases[i].text);
                answer = ask(REVIEW_VALIDATE, &c, &verdict);
                ASSERT_INT(verdict, REVIEW_REFUSED);
                ASSERT_CONTAINS(answer, cases[i].why);
        }
}

int main(void) {
        return TEST_MAIN(TEST(warns_of_what_no_card_can_hold), TEST(judges_which_cards_are_chosen),
                         TEST(warns_of_a_misspelt_limit), TEST(warns_of_a_misspelt_key),
                         TEST(says_a_part_of_many_misspelt_keys), TEST(warns_of_a_key_of_the_workload_itself),
                         TEST(warns_of_a_key_of_nodes), TEST(warns_of_what_has_another_effect),
                         TEST(warns_of_the_mode_of_an_affinity), TEST(warns_of_a_gang_that_is_wrong),
                         TEST(each_warning_stands_alone), TEST(an_amount_of_bytes_is_told_in_units));
}
