/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "exact.h"
#include "samples.h"
#include "wire/annotation.h"
#include "wire/node.h"
#include "wire/pod.h"

static void reads_a_pod(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Pod pod;

        ASSERT_OK(pod_decode(str_from(sample_pod), &arena, &pod, NULL));
        ASSERT_STR(pod.meta.name, STR("app-0"));
        ASSERT_STR(pod.meta.namespace_, STR("default"));
        ASSERT_STR(pod.meta.uid, STR("7e0d"));
        ASSERT_STR(pod.meta.resource_version, STR("4711"));
        ASSERT_STR(pod.meta.creation_timestamp, STR("2026-11-21T08:00:00Z"));
        ASSERT_STR(pod.meta.controller_uid, STR("rs-1"));
        ASSERT_TRUE(pod.meta.terminating);
        ASSERT_STR(pod.gpu_count_label, STR("2"));
        ASSERT_STR(pod.node_name, STR("n1"));
        ASSERT_STR(pod.scheduler_name, STR("ack-co-scheduler"));
        ASSERT_STR(pod.phase, STR("Running"));
        ASSERT_FALSE(pod.containers_ended);
        ASSERT_FALSE(pod_is_terminal(&pod));
}

static void reads_its_annotations(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Pod pod;

        ASSERT_OK(pod_decode(str_from(sample_pod), &arena, &pod, NULL));
        ASSERT_STR(pod.annotations.allocation, STR("{\"0\":{\"1\":3}}"));
        ASSERT_STR(pod.annotations.assigned, STR("true"));
        ASSERT_STR(pod.annotations.assume_time, STR("1700000000000000000"));
        ASSERT_STR(pod.annotations.core, STR("{\"0\":{\"1\":30}}"));
        ASSERT_STR(pod.annotations.init_allocation, STR("{}"));
        ASSERT_STR(pod.annotations.old_idx, STR("1"));
        ASSERT_STR(pod.annotations.old_dev, STR("15"));
        ASSERT_STR(pod.annotations.old_pod, STR("3"));
        ASSERT_STR(pod.annotations.old_assigned, STR("true"));
        ASSERT_STR(pod.annotations.old_assume_time, STR("1700000000000000000"));
}

/* Init containers come first although the text has them last; only they can be sidecars. */
static void reads_its_containers(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        const PodContainer *c;
        Pod pod;

        ASSERT_OK(pod_decode(str_from(sample_pod), &arena, &pod, NULL));
        ASSERT_INT(pod.n_containers, 4);
        c = pod.containers;
        ASSERT_STR(c[0].name, STR("prepare"));
        ASSERT_INT(c[0].kind, CONTAINER_INIT);
        ASSERT_INT(c[0].index, 0);
        ASSERT_TRUE(c[0].gpu_mem.present);
        ASSERT_STR(c[0].gpu_mem.text, STR("2"));
        ASSERT_FALSE(c[0].gpu_core.present);
        ASSERT_STR(c[1].name, STR("proxy"));
        ASSERT_INT(c[1].kind, CONTAINER_SIDECAR);
        ASSERT_INT(c[1].index, 1);
        ASSERT_FALSE(c[1].gpu_mem.present);
        ASSERT_STR(c[2].name, STR("main"));
        ASSERT_INT(c[2].kind, CONTAINER_MAIN);
        ASSERT_INT(c[2].index, 0);
        ASSERT_STR(c[2].gpu_mem.text, STR("3"));
        ASSERT_STR(c[2].gpu_core.text, STR("30"));
        ASSERT_STR(c[3].name, STR("log"));
        ASSERT_INT(c[3].kind, CONTAINER_MAIN);
        ASSERT_INT(c[3].index, 1);
}

static void keeps_quantities_as_they_were_written(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Pod pod;

        ASSERT_OK(pod_decode(
                STR("{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1.5k\","
                    "\"aliyun.com/gpu-core.percentage\":-1e2,\"aliyun.com/gpu-count\":\"\"}}},"
                    "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":null,\"aliyun.com\\/"
                    "gpu-count\":0}}}]}}"),
                &arena, &pod, NULL));
        ASSERT_STR(pod.containers[0].gpu_mem.text, STR("1.5k"));
        ASSERT_STR(pod.containers[0].gpu_core.text, STR("-1e2"));
        ASSERT_TRUE(pod.containers[0].gpu_count.present);
        ASSERT_STR(pod.containers[0].gpu_count.text, STR(""));
        ASSERT_FALSE(pod.containers[1].gpu_mem.present);
        ASSERT_STR(pod.containers[1].gpu_count.text, STR("0"));
}

static GateCover cover_of(const char *members) {
        static Arena arena = ARENA_NULL; /* the path points into the text */
        Buf text = BUF_NULL;
        Pod pod;
        Str kept;

        arena_reset(&arena);
        buf_appendf(&text, "{\"spec\":{\"containers\":[{%s}]}}", members);
        kept = arena_str(&arena, buf_str(&text));
        buf_done(&text);
        ASSERT_OK(pod_decode(kept, &arena, &pod, NULL));
        return pod.containers[0].cover;
}

#define MOUNT(path)   "\"volumeMounts\":[{\"name\":\"a\"},null,{\"mountPath\":\"" path "\"}]"
#define DEVICE(path)  "\"volumeDevices\":[{\"devicePath\":\"" path "\"}]"
#define MESSAGE(path) "\"terminationMessagePath\":\"" path "\""

static void finds_what_covers_the_gate(void) {
        GateCover cover = cover_of(MOUNT("/etc"));

        ASSERT_INT(cover.field, GATE_COVER_VOLUME_MOUNT);
        ASSERT_INT(cover.index, 2);
        ASSERT_STR(cover.path, STR("/etc"));
        cover = cover_of(MOUNT("/data") "," DEVICE("/.aliquot\\/slice"));
        ASSERT_INT(cover.field, GATE_COVER_VOLUME_DEVICE);
        ASSERT_INT(cover.index, 0);
        ASSERT_STR(cover.path, STR("/.aliquot/slice"));
        cover = cover_of(MESSAGE("/etc/ld.so.preload") "," DEVICE("/dev/sda"));
        ASSERT_INT(cover.field, GATE_COVER_TERMINATION_MESSAGE);
        ASSERT_INT(cover_of(MESSAGE("/dev/termination-log") "," MOUNT("/etc/config")).field, GATE_COVER_NONE);
        ASSERT_INT(cover_of(MESSAGE("")).field, GATE_COVER_NONE);
        ASSERT_INT(cover_of("\"volumeMounts\":null,\"volumeDevices\":[]").field, GATE_COVER_NONE);
        ASSERT_INT(cover_of(MOUNT("/etc") "," MOUNT("/data")).field, GATE_COVER_NONE);
}

static void knows_the_paths_of_the_gate(void) {
        static const char *const over[] = {"/",
                                           "//",
                                           "/.",
                                           "/..",
                                           "/a/..",
                                           "/.aliquot",
                                           "/.aliquot/",
                                           "//.aliquot",
                                           "/./.aliquot/.",
                                           "/../.aliquot",
                                           "/a/../.aliquot/slice/0/limits",
                                           "/.aliquot/a/../..",
                                           "/.aliquot/new",
                                           "/etc",
                                           "/etc/",
                                           "/etc/.",
                                           "/etc/a/..",
                                           "/a/b/../../etc",
                                           "/etc/ld.so.preload",
                                           "/etc//ld.so.preload/",
                                           "/etc/a/../ld.so.preload",
                                           "/etc/ld.so.preload/a/..",
                                           "etc",
                                           ".aliquot",
                                           "./etc/ld.so.preload"};
        static const char *const beside[] = {
                "",           "/data",        "/etc/config",       "/etc/ld.so.preload.d",
                "/etc/ld.so", "/etcetera",    "/.aliquots",        "/a/.aliquot",
                "/a/etc",     "/etc/../data", "/.aliquot/../data", "/etc/a/../b/ld.so.preload",
                "/.../etc"};

        for (size_t i = 0; i < ELEMENTSOF(over); i++)
                ASSERT_TRUE(gate_cover_is_at(str_from(over[i])));
        for (size_t i = 0; i < ELEMENTSOF(beside); i++)
                ASSERT_FALSE(gate_cover_is_at(str_from(beside[i])));
}

static bool ended(const char *status) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Pod pod;

        buf_appendf(&text, "{\"status\":%s}", status);
        ASSERT_OK(pod_decode(buf_str(&text), &arena, &pod, NULL));
        return pod.containers_ended;
}

static void knows_when_containers_have_ended(void) {
        ASSERT_TRUE(ended("{}"));
        ASSERT_TRUE(ended("null"));
        ASSERT_TRUE(ended("{\"containerStatuses\":[]}"));
        ASSERT_TRUE(ended("{\"containerStatuses\":[{\"state\":{\"terminated\":{}}}]}"));
        ASSERT_TRUE(ended(
                "{\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]}"));
        ASSERT_TRUE(ended("{\"containerStatuses\":[{\"state\":{\"running\":null}}]}"));
        ASSERT_FALSE(ended(
                "{\"containerStatuses\":[{\"state\":{\"running\":{}}},{\"state\":{\"terminated\":{}}}]}"));
        ASSERT_FALSE(
                ended("{\"initContainerStatuses\":[{\"state\":{\"running\":{}}}],\"containerStatuses\":[]}"));
        ASSERT_FALSE(ended("{\"ephemeralContainerStatuses\":[{\"state\":{\"running\":{}}}]}"));
}

static void knows_terminal_phases(void) {
        ASSERT_TRUE(pod_is_terminal(&(Pod){.phase = STR("Succeeded")}));
        ASSERT_TRUE(pod_is_terminal(&(Pod){.phase = STR("Failed")}));
        ASSERT_FALSE(pod_is_terminal(&(Pod){.phase = STR("Unknown")}));
        ASSERT_FALSE(pod_is_terminal(&(Pod){0}));
}

static void reads_the_ids_of_containers(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Pod pod;

        ASSERT_OK(pod_decode(
                STR("{\"status\":{\"initContainerStatuses\":[{\"containerID\":\"docker://"
                    "1\",\"name\":\"i\"}],"
                    "\"containerStatuses\":[{\"name\":\"w\",\"containerID\":\"\"},null,{\"name\":\"m\","
                    "\"containerID\":\"containerd://2\",\"state\":{\"running\":{}}}]}}"),
                &arena, &pod, NULL));
        ASSERT_INT(pod.n_ids, 2);
        ASSERT_STR(pod.ids[0].name, STR("i"));
        ASSERT_STR(pod.ids[0].id, STR("docker://1"));
        ASSERT_STR(pod.ids[1].name, STR("m"));
        ASSERT_STR(pod.ids[1].id, STR("containerd://2"));
        ASSERT_FALSE(pod.containers_ended);
        buf_append_str(&text, STR("{\"status\":{\"containerStatuses\":["));
        for (int i = 0; i < 2000; i++)
                buf_appendf(&text, "%s{\"name\":\"c%d\",\"containerID\":\"x://%d\"}", i > 0 ? "," : "", i, i);
        buf_append_str(&text, STR("]}}"));
        ASSERT_OK(pod_decode(buf_str(&text), &arena, &pod, NULL));
        ASSERT_INT(pod.n_ids, CONTAINER_INDEX_MAX + 1);
        ASSERT_STR(pod.ids[CONTAINER_INDEX_MAX].id, STR("x://1023"));
        ASSERT_INT(pod_decode(STR("{\"status\":{\"containerStatuses\":[{\"containerID\":5}]}}"), &arena, &pod,
                              NULL),
                   OBJECT_E_MALFORMED);
}

static void reads_almost_nothing(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node node;
        Pod pod;

        ASSERT_OK(pod_decode(STR("{}"), &arena, &pod, NULL));
        ASSERT_INT(pod.n_containers, 0);
        ASSERT_TRUE(pod.containers_ended);
        ASSERT_FALSE(pod.meta.terminating);
        ASSERT_OK(pod_decode(
                STR("{\"metadata\":null,\"spec\":{\"containers\":null,\"initContainers\":[null]}}"), &arena,
                &pod, NULL));
        ASSERT_INT(pod.n_containers, 1);
        ASSERT_OK(pod_decode(STR("{\"spec\":{\"containers\":[{},{}],\"containers\":[{\"name\":\"last\"}]}}"),
                             &arena, &pod, NULL));
        ASSERT_INT(pod.n_containers, 1);
        ASSERT_STR(pod.containers[0].name, STR("last"));
        ASSERT_OK(
                node_decode(STR("{\"metadata\":{\"annotations\":null,\"labels\":{}}}"), &arena, &node, NULL));
        ASSERT_INT(node.meta.name.len, 0);
}

static void refuses_bad_pods(void) {
        static const struct {
                const char *text, *fault;
        } bad[] = {
                {"", "pod: the text ends"},
                {"null", "pod: not an object"},
                {"[]", "pod: not an object"},
                {"{} {}", "pod: something follows the value"},
                {"{\"metadata\":{\"name\":1}}", "pod: metadata.name: not a string at byte 20"},
                {"{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_"
                 "IDX\":1}}}",
                 "pod d/a: metadata.annotations.ALIYUN_COM_GPU_MEM_IDX: not a string"},
                {"{\"metadata\":{\"annotations\":[]}}", "metadata.annotations: not an object"},
                {"{\"metadata\":{\"labels\":{\"aliyun.com/gpu-count\":2}}}",
                 "metadata.labels[aliyun.com/gpu-count]: not a string"},
                {"{\"metadata\":{\"ownerReferences\":[{},{\"controller\":\"yes\"}]}}",
                 "metadata.ownerReferences[1].controller: neither true nor false"},
                {"{\"spec\":{\"containers\":{}}}", "spec.containers: not an array"},
                {"{\"spec\":{\"containers\":[1]}}", "spec.containers[0]: not an object"},
                {"{\"spec\":{\"containers\":[{},{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":[3]}}}]}}",
                 "spec.containers[1].resources.limits[aliyun.com/gpu-mem]: not a string"},
                {"{\"spec\":{\"nodeName\":{}}}", "spec.nodeName: not a string"},
                {"{\"status\":{\"containerStatuses\":[{\"state\":7}]}}",
                 "status.containerStatuses[0].state: not an object"},
                {"{\"spec\":{\"x\":[1,}}", "no value starts here"},
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Pod pod = {.n_containers = 77};
                Fault fault = FAULT_NULL;

                ASSERT_INT(pod_decode(str_from(bad[i].text), &arena, &pod, &fault), OBJECT_E_MALFORMED);
                ASSERT_CONTAINS(fault.text, bad[i].fault);
                ASSERT_INT(pod.n_containers, 77);
        }
}

static void holds_the_container_limit(void) {
        for (unsigned n = 1024; n <= 1025; n++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf text = BUF_NULL;
                Fault fault = FAULT_NULL;
                Pod pod;

                buf_append_str(&text, STR("{\"spec\":{\"containers\":["));
                for (unsigned i = 0; i < n; i++)
                        buf_appendf(&text, "%s{\"name\":\"c%u\"}", i > 0 ? "," : "", i);
                buf_append_str(&text, STR("]}}"));
                ASSERT_INT(pod_decode(buf_str(&text), &arena, &pod, &fault),
                           n > 1024 ? OBJECT_E_MALFORMED : 0);
                if (n > 1024)
                        ASSERT_CONTAINS(fault.text, "more than 1024 containers");
                else
                        ASSERT_STR(pod.containers[1023].name, STR("c1023"));
        }
}

static void reads_a_node(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Node node;

        ASSERT_OK(node_decode(
                STR("{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":"
                    "\"1\",\"annotations\":{"
                    "\"aliquot.dev/cards\":\"[]\",\"aliquot.dev/gpu-mem-unit\":\"128MiB\",\"aliquot.dev/"
                    "policy\":\"5\","
                    "\"aliquot.dev/max-pods-per-card\":\"20\",\"aliquot.dev/allow-mixed\":\"true\","
                    "\"aliquot.dev/held-slices\":\"{}\",\"aliquot.dev/"
                    "simulated-cards\":\"1xA:1MiB\"},\"labels\":{"
                    "\"ack.node.gpu.schedule\":\"cgpu\",\"ack.node.gpu.placement\":\"spread\","
                    "\"aliyun.accelerator/nvidia_name\":\"Tesla-V100\",\"aliyun.accelerator/"
                    "nvidia_mem\":\"16160MiB\","
                    "\"aliyun.accelerator/nvidia_count\":\"4\"}},\"status\":{\"addresses\":["
                    "{\"type\":\"Hostname\",\"address\":\"h\"},{\"address\":\"10.0.0.1\",\"type\":"
                    "\"InternalIP\"},"
                    "{\"type\":\"InternalIP\",\"address\":\"fd00::1\"}],\"allocatable\":{\"aliyun.com/"
                    "gpu-mem\":\"60\","
                    "\"aliyun.com/gpu-count\":4,\"aliyun.com/gpu-core.percentage\":\"400\",\"cpu\":\"8\"},"
                    "\"capacity\":{\"aliyun.com/gpu-mem\":\"99\"}}}"),
                &arena, &node, NULL));
        ASSERT_STR(node.meta.name, STR("n1"));
        ASSERT_STR(node.annotations.cards, STR("[]"));
        ASSERT_STR(node.annotations.unit, STR("128MiB"));
        ASSERT_STR(node.annotations.policy, STR("5"));
        ASSERT_STR(node.annotations.max_pods, STR("20"));
        ASSERT_STR(node.annotations.allow_mixed, STR("true"));
        ASSERT_STR(node.annotations.held_slices, STR("{}"));
        ASSERT_STR(node.annotations.simulated_cards, STR("1xA:1MiB"));
        ASSERT_STR(node.mode, STR("cgpu"));
        ASSERT_STR(node.placement, STR("spread"));
        ASSERT_STR(node.card_name, STR("Tesla-V100"));
        ASSERT_STR(node.card_mem, STR("16160MiB"));
        ASSERT_STR(node.card_count, STR("4"));
        ASSERT_STR(node.allocatable_mem, STR("60"));
        ASSERT_STR(node.allocatable_count, STR("4"));
        ASSERT_STR(node.allocatable_core, STR("400"));
        ASSERT_STR(node.internal_ip, STR("10.0.0.1"));
}

static void refuses_bad_nodes(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        Node node;

        ASSERT_INT(node_decode(STR("{\"metadata\":{\"name\":\"n1\"},\"status\":{\"allocatable\":{\"aliyun."
                                   "com/gpu-mem\":false}}}"),
                               &arena, &node, &fault),
                   OBJECT_E_MALFORMED);
        ASSERT_TEXT(fault.text, "node n1: status.allocatable[aliyun.com/gpu-mem]: not a string at byte 72");
}

static void finds_the_kind(void) {
        static const struct {
                const char *text, *kind;
                int result;
        } cases[] = {
                {"{\"kind\":\"Pod\"}", "Pod", 0},
                {"{\"metadata\":{\"kind\":\"No\"},\"kind\":\"Node\"}", "Node", 0},
                {"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",broken", "Pod", 0},
                {"{}", "", 0},
                {"{\"kind\":null}", "", 0},
                {"{\"kind\":7}", NULL, OBJECT_E_MALFORMED},
                {"[]", NULL, OBJECT_E_MALFORMED},
                {"", NULL, OBJECT_E_MALFORMED},
                {"{\"a\":}", NULL, OBJECT_E_MALFORMED},
                {"{} x", NULL, OBJECT_E_MALFORMED},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Str kind = STR("untouched");

                ASSERT_INT(object_kind(str_from(cases[i].text), &arena, &kind, NULL), cases[i].result);
                ASSERT_STR(kind, cases[i].kind ? str_from(cases[i].kind) : STR("untouched"));
        }
}

/* Cut anywhere, in a block of exactly that size: refused, and never read beyond it. */
static void no_prefix_is_a_pod(void) {
        Str text = str_trim(str_from(sample_pod));
        _cleanup_arena_ Arena arena = ARENA_NULL;

        for (size_t n = 0; n < text.len; n++) {
                _cleanup_free_ char *copy = exact_copy((Str){text.data, n});
                Fault fault = FAULT_NULL;
                Node node;
                Pod pod;

                ASSERT_INT(pod_decode((Str){copy, n}, &arena, &pod, &fault), OBJECT_E_MALFORMED);
                ASSERT_TRUE(fault.text[0] != '\0');
                ASSERT_INT(node_decode((Str){copy, n}, &arena, &node, NULL), OBJECT_E_MALFORMED);
                arena_reset(&arena);
        }
}

int main(void) {
        return TEST_MAIN(TEST(reads_a_pod), TEST(reads_its_annotations), TEST(reads_its_containers),
                         TEST(keeps_quantities_as_they_were_written), TEST(finds_what_covers_the_gate),
                         TEST(knows_the_paths_of_the_gate), TEST(knows_when_containers_have_ended),
                         TEST(knows_terminal_phases), TEST(reads_the_ids_of_containers),
                         TEST(reads_almost_nothing), TEST(refuses_bad_pods), TEST(holds_the_container_limit),
                         TEST(reads_a_node), TEST(refuses_bad_nodes), TEST(finds_the_kind),
                         TEST(no_prefix_is_a_pod));
}
