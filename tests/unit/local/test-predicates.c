/* SPDX-License-Identifier: Apache-2.0 */
#include "local/predicates.h"
#include "test.h"

#define TAINT    "node(s) had untolerated taint {"
#define AFFINITY "node(s) didn't match Pod's node affinity/selector"
#define TERMS(t)                                                                                             \
        "{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"              \
        "\"nodeSelectorTerms\":[" t "]}}}}"
#define MATCH(key, op, values)                                                                               \
        "{\"matchExpressions\":[{\"key\":\"" key "\",\"operator\":\"" op "\",\"values\":[" values "]}]}"
#define ASKS(kind, amounts) "{\"containers\":[{\"name\":\"m\",\"resources\":{\"" kind "\":{" amounts "}}}]}"
#define NODE                                                                                                 \
        "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"zone\":\"a\",\"gen\":\"7\"}},\"status\":{"             \
        "\"allocatable\":{\"cpu\":\"2\",\"memory\":\"4Gi\",\"pods\":\"2\",\"example.com/nic\":\"1\"}}}"

/* "" for yes, else the text of the refusal. */
static void check(const char *spec, const char *node_text, const char *used_text, const char *words) {
        _cleanup_json_ json_t *pod = json_pack("{s:o}", "spec", json_loads(spec, 0, NULL));
        _cleanup_json_ json_t *node = json_loads(node_text, 0, NULL), *used = json_loads(used_text, 0, NULL);
        _cleanup_buf_ Buf reason = BUF_NULL;
        bool passed;

        ASSERT_TRUE(pod && node && used);
        passed = predicates_pass(pod, node, used, &reason);
        ASSERT_STR(buf_str(&reason), str_from(words));
        ASSERT_INT(passed, !*words);
}

static void selects_nodes_by_labels(void) {
        check("{\"nodeSelector\":{\"zone\":\"a\"}}", NODE, "{}", "");
        check("{\"nodeSelector\":{\"zone\":\"a\",\"gen\":\"8\"}}", NODE, "{}", AFFINITY);
        check("{\"nodeSelector\":{\"disk\":\"ssd\"}}", NODE, "{}", AFFINITY);
}

static void matches_affinity_terms(void) {
        check(TERMS(MATCH("zone", "In", "\"b\",\"a\"")), NODE, "{}", "");
        check(TERMS(MATCH("zone", "In", "\"b\"")), NODE, "{}", AFFINITY);
        check(TERMS(MATCH("zone", "NotIn", "\"b\"")), NODE, "{}", "");
        check(TERMS(MATCH("disk", "NotIn", "\"b\"")), NODE, "{}", ""); /* absent is not in */
        check(TERMS(MATCH("zone", "Exists", "")), NODE, "{}", "");
        check(TERMS(MATCH("disk", "Exists", "")), NODE, "{}", AFFINITY);
        check(TERMS(MATCH("disk", "DoesNotExist", "")), NODE, "{}", "");
        check(TERMS(MATCH("gen", "Gt", "\"6\"")), NODE, "{}", "");
        check(TERMS(MATCH("gen", "Gt", "\"7\"")), NODE, "{}", AFFINITY);
        check(TERMS(MATCH("gen", "Lt", "\"8\"")), NODE, "{}", "");
        check(TERMS(MATCH("zone", "Lt", "\"8\"")), NODE, "{}", AFFINITY); /* not a number */
        check(TERMS(MATCH("zone", "Like", "\"a\"")), NODE, "{}", AFFINITY);
        check(TERMS(MATCH("zone", "In", "\"b\"") "," MATCH("gen", "Exists", "")), NODE, "{}", "");
        check(TERMS("{}"), NODE, "{}", AFFINITY); /* an empty term matches nothing */
        check(TERMS("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n1\"]}]"
                    "}"),
              NODE, "{}", "");
        check(TERMS("{\"matchFields\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"n2\"]}]"
                    "}"),
              NODE, "{}", AFFINITY);
}

static void respects_taints(void) {
        static const char tainted[] = "{\"spec\":{\"taints\":[{\"key\":\"gpu\",\"value\":\"yes\",\"effect\":"
                                      "\"NoSchedule\"}]}}";

        check("{}", tainted, "{}", TAINT "gpu: yes}");
        check("{\"tolerations\":[{\"operator\":\"Exists\"}]}", tainted, "{}", "");
        check("{\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Exists\"}]}", tainted, "{}", "");
        check("{\"tolerations\":[{\"key\":\"gpu\",\"value\":\"yes\"}]}", tainted, "{}", "");
        check("{\"tolerations\":[{\"key\":\"gpu\",\"value\":\"no\"}]}", tainted, "{}", TAINT "gpu: yes}");
        check("{\"tolerations\":[{\"key\":\"gpu\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"}]}",
              tainted, "{}", TAINT "gpu: yes}");
        check("{}", "{\"spec\":{\"taints\":[{\"key\":\"a\",\"effect\":\"PreferNoSchedule\"}]}}", "{}", "");
        check("{}", "{\"spec\":{\"unschedulable\":true}}", "{}", "node(s) were unschedulable");
        check("{\"tolerations\":[{\"operator\":\"Exists\"}]}", "{\"spec\":{\"unschedulable\":true}}", "{}",
              "");
}

static void adds_up_resources(void) {
        check(ASKS("requests", "\"cpu\":\"1500m\""), NODE, "{}", "");
        check(ASKS("requests", "\"cpu\":\"1500m\""), NODE, "{\"cpu\":600}", "Insufficient cpu");
        check(ASKS("requests", "\"cpu\":1.5"), NODE, "{\"cpu\":500}", "");
        check(ASKS("requests", "\"cpu\":1.5"), NODE, "{\"cpu\":501}", "Insufficient cpu");
        check(ASKS("requests", "\"cpu\":\"2.001\""), NODE, "{}", "Insufficient cpu");
        check(ASKS("requests", "\"cpu\":\"2.0001\""), NODE, "{}", "Insufficient cpu"); /* rounded up */
        check(ASKS("requests", "\"cpu\":\"2000000u\""), NODE, "{\"cpu\":1}", "Insufficient cpu");
        check(ASKS("requests", "\"memory\":\"1e17\""), NODE, "{}", "Insufficient memory");
        check(ASKS("limits", "\"memory\":\"4Gi\""), NODE, "{}", "");
        check(ASKS("limits", "\"memory\":\"4097Mi\""), NODE, "{}", "Insufficient memory");
        check(ASKS("limits", "\"example.com/nic\":2"), NODE, "{}", "Insufficient example.com/nic");
        check(ASKS("limits", "\"nvidia.com/gpu\":1"), NODE, "{}", "Insufficient nvidia.com/gpu");
        check("{}", NODE, "{\"pods\":2000}", "Too many pods");
        check(ASKS("limits", "\"cpu\":\"64\",\"memory\":\"1Ti\""), "{}", "{}",
              ""); /* it does not say what it has */
}

static void leaves_our_resources_to_the_extender(void) {
        _cleanup_json_ json_t *ours =
                json_pack("{s:o}", "spec", json_loads(ASKS("limits", "\"aliyun.com/gpu-mem\":0"), 0, NULL));
        _cleanup_json_ json_t *other =
                json_pack("{s:o}", "spec", json_loads(ASKS("limits", "\"cpu\":1"), 0, NULL));

        check(ASKS("limits", "\"aliyun.com/gpu-mem\":4000"), NODE, "{}", "");
        check(ASKS("limits", "\"aliyun.com/gpu-core.percentage\":4000"), NODE, "{}", "");
        ASSERT_TRUE(predicates_is_managed(ours)); /* named, whatever the amount is */
        ASSERT_FALSE(predicates_is_managed(other));
}

/* No device plugin offers it, and the extender counts no cards: kube-scheduler and the kubelet
 * compare it with the node's status. */
static void counts_cards_among_the_limits(void) {
        static const char node[] = "{\"status\":{\"allocatable\":{\"aliyun.com/gpu-count\":\"4\"}}}",
                          pod[] = ASKS("limits", "\"aliyun.com/gpu-mem\":2,\"aliyun.com/gpu-count\":2");
        static const char words[] = "Insufficient aliyun.com/gpu-count";
        _cleanup_json_ json_t *managed =
                json_pack("{s:o}", "spec", json_loads(ASKS("limits", "\"aliyun.com/gpu-count\":2"), 0, NULL));

        check(pod, node, "{\"aliyun.com/gpu-count\":2000}", "");
        check(pod, node, "{\"aliyun.com/gpu-count\":3000}", words);
        check(pod, NODE, "{}", words); /* a node that does not say it */
        ASSERT_TRUE(predicates_is_managed(managed));
}

static void counts_init_containers_by_maximum(void) {
        _cleanup_json_ json_t *used = json_object();
        _cleanup_json_ json_t *pod =
                json_loads("{\"spec\":{\"initContainers\":["
                           "{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{"
                           "\"cpu\":\"100m\"}}},"
                           "{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"3\"}}}],"
                           "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"},"
                           "\"limits\":{\"cpu\":\"4\"}}},"
                           "{\"name\":\"b\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1k\"}}}]}}",
                           0, NULL);

        ASSERT_OK(predicates_charge(used, pod));
        ASSERT_INT(json_integer_value(json_object_get(used, "cpu")),
                   3100); /* init beside the sidecar > 2100 */
        ASSERT_INT(json_integer_value(json_object_get(used, "memory")), 1000 * 1000);
        ASSERT_INT(json_integer_value(json_object_get(used, "pods")), 1000);
        ASSERT_OK(predicates_charge(used, pod));
        ASSERT_INT(json_integer_value(json_object_get(used, "cpu")), 6200);
}

int main(void) {
        return TEST_MAIN(TEST(selects_nodes_by_labels), TEST(matches_affinity_terms), TEST(respects_taints),
                         TEST(adds_up_resources), TEST(leaves_our_resources_to_the_extender),
                         TEST(counts_cards_among_the_limits), TEST(counts_init_containers_by_maximum));
}
