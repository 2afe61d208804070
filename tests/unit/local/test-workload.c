/* SPDX-License-Identifier: Apache-2.0 */
#include "local/workload.h"

#include "base/buf.h"
#include "test.h"

static json_t *tree(const char *text) {
        json_t *t = json_loads(text, 0, NULL);

        ASSERT_TRUE(t);
        return t;
}

#define TEMPLATE                                                                                             \
        "\"selector\":{\"matchLabels\":{\"app\":\"a\"}},"                                                    \
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{\"containers\":[{\"name\":\"m\"}" \
        "]}}"
#define JOB_TEMPLATE                                                                                         \
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{\"restartPolicy\":\"Never\","     \
        "\"containers\":[{\"name\":\"m\"}]}}"

static json_t *expand(const char *text, const char *nodes_text, int expected, Fault *fault) {
        _cleanup_json_ json_t *workload = tree(text), *nodes = tree(nodes_text);
        json_t *pods = json_array();

        ASSERT_INT(workload_expand(workload, nodes, pods, fault), expected);
        return pods;
}

static const char *name_of(const json_t *pods, size_t i) {
        return tree_text(json_array_get(pods, i), "metadata", "name", NULL);
}

static void gives_a_statefulset_ordinals(void) {
        _cleanup_json_ json_t *pods =
                expand("{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"app\","
                       "\"namespace\":\"team\"},\"spec\":{\"replicas\":3," TEMPLATE "}}",
                       "[]", 0, NULL);
        const json_t *last = json_array_get(pods, 2);

        ASSERT_INT(json_array_size(pods), 3);
        ASSERT_TEXT(name_of(pods, 0), "app-0");
        ASSERT_TEXT(name_of(pods, 2), "app-2");
        ASSERT_TEXT(tree_text(last, "metadata", "namespace", NULL), "team");
        ASSERT_TEXT(tree_text(last, "metadata", "labels", "app", NULL), "a");
        ASSERT_TEXT(tree_text(last, "metadata", "labels", "statefulset.kubernetes.io/pod-name", NULL),
                    "app-2");
        ASSERT_TEXT(tree_text(last, "spec", "hostname", NULL), "app-2");
}

static void begins_ordinals_where_the_statefulset_says(void) {
        _cleanup_json_ json_t *pods =
                expand("{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"app\"},"
                       "\"spec\":{\"replicas\":2,\"ordinals\":{\"start\":5}," TEMPLATE "}}",
                       "[]", 0, NULL);

        ASSERT_TEXT(name_of(pods, 0), "app-5");
        ASSERT_TEXT(name_of(pods, 1), "app-6");
        ASSERT_TEXT(tree_text(json_array_get(pods, 1), "metadata", "labels", "apps.kubernetes.io/pod-index",
                              NULL),
                    "6");
}

static void points_each_pod_to_its_controller(void) {
        _cleanup_json_ json_t *workload =
                tree("{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{"
                     "\"parallelism\":2," JOB_TEMPLATE "}}");
        _cleanup_json_ json_t *pods = json_array();
        const json_t *owner;

        ASSERT_OK(workload_expand(workload, NULL, pods, NULL));
        ASSERT_INT(json_array_size(pods), 2);
        owner = json_array_get(tree_at(json_array_get(pods, 1), "metadata", "ownerReferences", NULL), 0);
        ASSERT_TEXT(tree_text(owner, "uid", NULL), tree_text(workload, "metadata", "uid", NULL));
        ASSERT_TRUE(json_is_true(json_object_get(owner, "controller")));
}

static void gives_the_same_names_each_time(void) {
        const char *text =
                "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"web\"},"
                "\"spec\":{\"replicas\":100," TEMPLATE "}}";
        _cleanup_json_ json_t *a = expand(text, "[]", 0, NULL), *b = expand(text, "[]", 0, NULL);
        _cleanup_json_ json_t *seen = json_object();

        ASSERT_TRUE(json_equal(a, b));
        for (size_t i = 0; i < 100; i++)
                (void) json_object_set_new(seen, name_of(a, i), json_true());
        ASSERT_INT(json_object_size(seen), 100);
        ASSERT_TRUE(str_has_prefix(str_from(name_of(a, 0)), STR("web-")));
}

static void gives_no_name_twice(void) {
        _cleanup_json_ json_t *seen = json_object(), *pods = NULL;
        const json_t *pod;
        size_t i;

        pods = expand("{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"x\"},"
                      "\"spec\":{\"replicas\":20000," TEMPLATE "}}",
                      "[]", 0, NULL);
        json_array_foreach(pods, i, pod) {
                (void) json_object_set_new(seen, tree_text(pod, "metadata", "name", NULL), json_true());
        }
        ASSERT_INT(json_object_size(seen), 20000);
}

static size_t n_pods_of_job(const char *spec) {
        _cleanup_buf_ Buf text = BUF_NULL;
        _cleanup_json_ json_t *pods = NULL;

        buf_appendf(&text,
                    "{\"apiVersion\":\"batch/"
                    "v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},\"spec\":{%s%s}}",
                    spec, JOB_TEMPLATE);
        pods = expand(text.data, "[]", 0, NULL);
        return json_array_size(pods);
}

static void runs_as_many_pods_of_a_job_as_may_run_at_once(void) {
        ASSERT_INT(n_pods_of_job(""), 1);
        ASSERT_INT(n_pods_of_job("\"parallelism\":3,"), 3);
        ASSERT_INT(n_pods_of_job("\"parallelism\":3,\"completions\":2,"), 2);
        ASSERT_INT(n_pods_of_job("\"completions\":5,"), 1);
        ASSERT_INT(n_pods_of_job("\"parallelism\":0,"), 0);
        ASSERT_INT(n_pods_of_job("\"parallelism\":3,\"suspend\":true,"), 0);
}

static void pins_daemons_to_their_nodes(void) {
        _cleanup_json_ json_t *pods =
                expand("{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"d\"},"
                       "\"spec\":{" TEMPLATE "}}",
                       "[{\"metadata\":{\"name\":\"n1\"}},{\"metadata\":{\"name\":\"n2\"}}]", 0, NULL);
        _cleanup_free_ char *affinity = NULL;

        ASSERT_INT(json_array_size(pods), 2);
        affinity = json_dumps(tree_at(json_array_get(pods, 1), "spec", "affinity", NULL), JSON_COMPACT);
        ASSERT_CONTAINS(affinity, "\"values\":[\"n2\"]");
}

/* The controller makes no pod for a node that the template's selector, affinity or tolerations
 * exclude: none waits there. */
static void makes_daemons_where_they_may_run(void) {
        static const char nodes[] = "[{\"metadata\":{\"name\":\"n1\",\"labels\":{\"gpu\":\"yes\"}}},{"
                                    "\"metadata\":{\"name\":\"n2\"}},"
                                    "{\"metadata\":{\"name\":\"n3\",\"labels\":{\"gpu\":\"yes\"}},"
                                    "\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]}}]";
        static const char *const specs[] = {
                "\"nodeSelector\":{\"gpu\":\"yes\"},",
                "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
                "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"gpu\",\"operator\":\"In\","
                "\"values\":[\"yes\"]}]}]}}},"};

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_json_ json_t *pods = NULL;
                _cleanup_free_ char *affinity = NULL;
                char text[1024];

                (void) snprintf(
                        text, sizeof text,
                        "{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"metadata\":{\"name\":\"d\"},"
                        "\"spec\":{\"selector\":{\"matchLabels\":{\"app\":\"a\"}},\"template\":{"
                        "\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{%s\"containers\":["
                        "{\"name\":\"m\"}]}}}}",
                        specs[i]);
                pods = expand(text, nodes, 0, NULL);
                ASSERT_INT(json_array_size(pods), 1);
                affinity =
                        json_dumps(tree_at(json_array_get(pods, 0), "spec", "affinity", NULL), JSON_COMPACT);
                ASSERT_CONTAINS(affinity, "\"values\":[\"n1\"]");
        }
}

/* One workload whose spec has these members before its template. */
static void refuses(const char *version, const char *kind, const char *spec, const char *words) {
        _cleanup_buf_ Buf text = BUF_NULL;
        _cleanup_json_ json_t *pods = NULL;
        Fault fault = FAULT_NULL;

        buf_appendf(&text,
                    "{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"w\"},\"spec\":{%s}}",
                    version, kind, spec);
        pods = expand(text.data, "[{\"metadata\":{\"name\":\"n1\"}}]", words ? WORKLOAD_E_INVALID : 0,
                      &fault);
        if (words)
                ASSERT_CONTAINS(fault.text, words);
        ASSERT_INT(json_array_size(pods), words ? 0 : 1);
}

static void refuses_what_the_api_server_refuses(void) {
#define POD(labels, rest)                                                                                    \
        "\"template\":{\"metadata\":{\"labels\":{" labels "}},\"spec\":{" rest "\"containers\":[]}}"
        static const char *const kinds[] = {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"};
        static const char none[] = "spec.selector: Required value", differs[] = "`selector` does not match";

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                refuses("apps/v1", kinds[i], POD("\"app\":\"a\"", ""), none);
                refuses("apps/v1", kinds[i], "\"selector\":{}," POD("\"app\":\"a\"", ""), none);
                refuses("apps/v1", kinds[i],
                        "\"selector\":{\"matchLabels\":{\"app\":\"z\"}}," POD("\"app\":\"a\"", ""), differs);
                refuses("apps/v1", kinds[i],
                        "\"selector\":{\"matchLabels\":{\"app\":\"a\",\"b\":\"c\"}}," POD("\"app\":\"a\"",
                                                                                          ""),
                        differs);
                refuses("apps/v1", kinds[i],
                        "\"selector\":{\"matchExpressions\":[{\"key\":\"b\",\"operator\":\"Exists\"}]}," POD(
                                "\"app\":\"a\"", ""),
                        differs);
                refuses("apps/v1", kinds[i],
                        "\"selector\":{\"matchLabels\":{\"app\":\"a\"}}," POD("\"app\":\"a\"",
                                                                              "\"restartPolicy\":\"Never\","),
                        "supported values: \"Always\"");
                refuses("apps/v1", kinds[i],
                        "\"selector\":{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\"}]}," POD(
                                "\"app\":\"a\"", "\"restartPolicy\":\"Always\","),
                        NULL);
        }
        refuses("v1", "ReplicationController", POD("", ""), NULL);
        refuses("batch/v1", "Job", POD("", ""),
                "restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"");
        refuses("batch/v1", "Job", POD("", "\"restartPolicy\":\"Always\","), "Unsupported value: \"Always\"");
        refuses("batch/v1", "Job", POD("", "\"restartPolicy\":\"OnFailure\","), NULL);
#undef POD
}

static void knows_kinds_by_their_group(void) {
        ASSERT_TRUE(workload_is("batch/v1", "Job"));
        ASSERT_FALSE(workload_is("batch.volcano.sh/v1alpha1", "Job"));
        ASSERT_FALSE(workload_is("extensions/v1beta1", "Deployment"));
        ASSERT_FALSE(workload_is("apps/v1", "ReplicationController"));
        ASSERT_TEXT(workload_version("StatefulSet"), "apps/v1");
        ASSERT_TRUE(!workload_version("Pod"));
}

static void names_the_field_that_is_wrong(void) {
        static const struct {
                const char *spec, *words;
        } cases[] = {
                {"\"replicas\":-1," TEMPLATE, "spec.replicas must be a whole number from 0"},
                {"\"replicas\":\"2\"," TEMPLATE, "spec.replicas must be a whole number from 0"},
                {"\"replicas\":1.5," TEMPLATE, "spec.replicas must be a whole number from 0"},
                {"\"replicas\":100001," TEMPLATE, "spec.replicas is 100001, must be at most 100000"},
                {"\"replicas\":9223372036854775807," TEMPLATE, "must be at most 100000"},
                {"\"replicas\":1", "spec.template.spec is missing"},
                {"\"replicas\":1,\"template\":{\"spec\":[]}", "spec.template.spec is missing"},
                {"\"template\":{\"metadata\":{\"labels\":[]},\"spec\":{}}",
                 "spec.template.metadata.labels must be an object"},
                {"\"template\":{\"spec\":{\"affinity\":[]}}",
                 "spec.template.spec.affinity must be an object"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf text = BUF_NULL;
                _cleanup_json_ json_t *pods = NULL;
                Fault fault = FAULT_NULL;

                buf_appendf(
                        &text,
                        "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"w\"},"
                        "\"spec\":{%s}}",
                        cases[i].spec);
                pods = expand(text.data, "[]", WORKLOAD_E_INVALID, &fault);
                ASSERT_INT(json_array_size(pods), 0);
                ASSERT_CONTAINS(fault.text, cases[i].words);
        }
}

int main(void) {
        return TEST_MAIN(TEST(gives_a_statefulset_ordinals), TEST(begins_ordinals_where_the_statefulset_says),
                         TEST(points_each_pod_to_its_controller), TEST(gives_the_same_names_each_time),
                         TEST(gives_no_name_twice), TEST(runs_as_many_pods_of_a_job_as_may_run_at_once),
                         TEST(pins_daemons_to_their_nodes), TEST(makes_daemons_where_they_may_run),
                         TEST(refuses_what_the_api_server_refuses), TEST(knows_kinds_by_their_group),
                         TEST(names_the_field_that_is_wrong));
}
