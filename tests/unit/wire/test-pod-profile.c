/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_profile.h"

#include "base/buf.h"
#include "test.h"

static PodProfile decode(Arena *arena, const char *json) {
        Fault fault = FAULT_NULL;
        PodProfile p = {0};

        if (pod_profile_decode(str_from(json), arena, &p, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        return p;
}

static int64_t requested(const PodProfile *p, const char *name) {
        for (size_t i = 0; i < p->n_requests; i++)
                if (str_eq(p->requests[i].name, str_from(name)))
                        return p->requests[i].milli;
        return -1;
}

static void reads_what_preemption_asks_for(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodProfile p = decode(&arena, "{\"metadata\":{\"labels\":{\"app\":\"a\",\"e\\u0031\":\"x\"}},"
                                      "\"spec\":{\"priority\":-5,\"preemptionPolicy\":\"Never\"},"
                                      "\"status\":{\"startTime\":\"2026-11-21T10:11:12Z\","
                                      "\"nominatedNodeName\":\"n1\"}}");

        ASSERT_INT(p.priority, -5);
        ASSERT_TRUE(p.never_preempts);
        ASSERT_INT(p.start, 20261121101112);
        ASSERT_STR(p.nominated_node, STR("n1"));
        ASSERT_INT(p.n_labels, 2);
        ASSERT_STR(p.labels[1].key, STR("e1"));
        ASSERT_FALSE(p.holds_more || p.affine || p.requests_unknown);
        p = decode(&arena, "{}");
        ASSERT_INT(p.priority, 0);
        ASSERT_INT(p.start, POD_PROFILE_NOT_STARTED);
}

/* The order of the members must not matter: main containers stand before the init containers
 * here. */
static void requests_are_summed_as_kubernetes_does(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodProfile p =
                decode(&arena, "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"500m\","
                               "\"memory\":\"1Gi\"}}},"
                               "{\"resources\":{\"requests\":{\"cpu\":1,\"aliyun.com/gpu-mem\":\"42\"}}}],"
                               "\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{"
                               "\"requests\":{\"cpu\":\"1\"}}},"
                               "{\"resources\":{\"requests\":{\"cpu\":\"3\",\"memory\":\"1Ki\"}}}],"
                               "\"overhead\":{\"cpu\":\"10m\"}}}");

        ASSERT_INT(requested(&p, "cpu"),
                   4010); /* the init container with the sidecar before it, and overhead */
        ASSERT_INT(requested(&p, "memory"), (INT64_C(1) << 30) * 1000);
        ASSERT_INT(requested(&p, "aliyun.com/gpu-mem"), 42000);
        p = decode(&arena,
                   "{\"spec\":{\"resources\":{\"requests\":{\"cpu\":\"7\"}},\"containers\":[{\"resources\":{"
                   "\"requests\":{\"cpu\":\"1\",\"memory\":\"1\"}}}]}}");
        ASSERT_INT(requested(&p, "cpu"), 7000);
        ASSERT_INT(requested(&p, "memory"), 1000);
        ASSERT_TRUE(
                decode(&arena, "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"x\"}}}]}}")
                        .requests_unknown);
        ASSERT_TRUE(decode(&arena, "{\"spec\":{\"containers\":[{\"resources\":{\"requests\":{\"memory\":"
                                   "\"9223372036854775807\"}}}]}}")
                            .requests_unknown);
}

static void tells_ports_volumes_and_affinity(void) {
        static const struct {
                const char *spec;
                bool holds_more, affine;
        } cases[] = {
                {"\"containers\":[{\"ports\":[{\"containerPort\":80}]}]", false, false},
                {"\"containers\":[{\"ports\":[{\"hostPort\":80}]}]", true, false},
                {"\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\",\"configMap\":{}}]", false,
                 false},
                {"\"volumes\":[{\"name\":\"a\",\"persistentVolumeClaim\":{\"claimName\":\"x\"}}]", true,
                 false},
                {"\"volumes\":[{\"name\":\"a\",\"csi\":{}}]", true, false},
                {"\"resourceClaims\":[{\"name\":\"a\"}]", true, false},
                {"\"affinity\":{\"nodeAffinity\":{}}", false, false},
                {"\"affinity\":{\"podAntiAffinity\":{}}", false, true},
                {"\"topologySpreadConstraints\":[]", false, false},
                {"\"topologySpreadConstraints\":[{}]", false, true},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                char json[256];
                PodProfile p;

                (void) snprintf(json, sizeof json, "{\"spec\":{%s}}", cases[i].spec);
                p = decode(&arena, json);
                ASSERT_INT(p.holds_more, cases[i].holds_more);
                ASSERT_INT(p.affine, cases[i].affine);
        }
}

/* before, then "k0"VALUE,"k1"VALUE,.. of n members, then after. */
static char *many(size_t n, const char *before, const char *value, const char *after) {
        Buf text = BUF_NULL;

        buf_append_str(&text, str_from(before));
        for (size_t i = 0; i < n; i++)
                buf_appendf(&text, "%s\"k%zu\":%s", i > 0 ? "," : "", i, value);
        buf_append_str(&text, str_from(after));
        return buf_take(&text);
}

static void limits_are_kept(void) {
        for (size_t over = 0; over < 2; over++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                char *labels =
                        many(POD_PROFILE_LABELS_MAX + over, "{\"metadata\":{\"labels\":{", "\"v\"", "}}}");
                char *resources =
                        many(POD_PROFILE_RESOURCES_MAX + over, "{\"spec\":{\"overhead\":{", "1", "}}}");

                ASSERT_INT(decode(&arena, labels).labels_cut, over > 0);
                ASSERT_INT(decode(&arena, resources).requests_unknown, over > 0);
                free(labels);
                free(resources);
        }
}

static void faults_name_the_path(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        PodProfile p;

        ASSERT_INT(pod_profile_decode(STR("{\"spec\":{\"priority\":\"high\"}}"), &arena, &p, &fault),
                   OBJECT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "spec.priority");
        ASSERT_INT(pod_profile_decode(STR("null"), &arena, &p, &fault), OBJECT_E_MALFORMED);
}

int main(void) {
        return TEST_MAIN(TEST(reads_what_preemption_asks_for), TEST(requests_are_summed_as_kubernetes_does),
                         TEST(tells_ports_volumes_and_affinity), TEST(limits_are_kept),
                         TEST(faults_name_the_path));
}
