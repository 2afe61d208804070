/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_slices.h"
#include "test.h"

#define NODE(mode)                                                                                           \
        "{\"metadata\":{\"name\":\"n1\",\"labels\":{\"ack.node.gpu.schedule\":\"" mode                       \
        "\"},\"annotations\":{"                                                                              \
        "\"aliquot.dev/gpu-mem-unit\":\"128MiB\",\"aliquot.dev/cards\":"                                     \
        "\"[{\\\"index\\\":0,\\\"uuid\\\":\\\"GPU-a\\\",\\\"units\\\":126},"                                 \
        "{\\\"index\\\":1,\\\"uuid\\\":\\\"GPU-b\\\",\\\"units\\\":180}]\"}}}"

static const char pod_text[] =
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\",\"annotations\":{"
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":4},\\\"1\\\":{\\\"0\\\":2,"
        "\\\"1\\\":2}}\","
        "\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"1\\\":3}}\"}},\"spec\":{\"nodeName\":\"n1\","
        "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"aliyun.com/"
        "gpu-mem\":3}}}],\"containers\":["
        "{\"name\":\"a\",\"env\":[{\"name\":\"CGPU_DISABLE\",\"value\":\"true\"}],"
        "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}},"
        "{\"name\":\"b\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}},{\"name\":\"c\"}]},"
        "\"status\":{\"phase\":\"Running\"}}";

static PodSlices read_slices_of(const char *text, const char *node_text, ContainerKind kind, uint32_t index,
                                Arena *arena) {
        _cleanup_json_ json_t *pod = json_loads(text, 0, NULL), *node = json_loads(node_text, 0, NULL);
        BoundPod place = {pod, node};
        PodSlices s;

        ASSERT_TRUE(pod && node);
        ASSERT_OK(pod_slices_read(&place, kind, index, arena, &s));
        return s;
}

static PodSlices read_slices(const char *node_text, ContainerKind kind, uint32_t index, Arena *arena) {
        return read_slices_of(pod_text, node_text, kind, index, arena);
}

static void reads_each_container_by_itself(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodSlices a = read_slices(NODE("cgpu"), CONTAINER_MAIN, 0, &arena);
        PodSlices b = read_slices(NODE("cgpu"), CONTAINER_MAIN, 1, &arena);
        PodSlices c = read_slices(NODE("cgpu"), CONTAINER_MAIN, 2, &arena);
        PodSlices i = read_slices(NODE("cgpu"), CONTAINER_INIT, 0, &arena);

        ASSERT_INT(a.n, 1);
        ASSERT_INT(a.own[0].card, 1);
        ASSERT_INT(a.own[0].mem, 4);
        ASSERT_INT(a.pod_units, 8);
        ASSERT_INT(a.unit.mib, 128);
        ASSERT_INT(a.mode, SHARE_MODE_CGPU);
        ASSERT_TRUE(a.not_isolated);
        ASSERT_INT(b.n, 2);
        ASSERT_FALSE(b.not_isolated);
        ASSERT_INT(c.n, 0);
        ASSERT_INT(i.n, 1);
        ASSERT_INT(i.own[0].mem, 3);
        ASSERT_FALSE(i.not_isolated);
}

/* They run one after another. The second one is on both cards. */
static void the_largest_init_container_counts(void) {
        static const char inits[] =
                "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\",\"annotations\":{"
                "\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"1\\\":3},\\\"1\\\":{\\\"0\\\":2,"
                "\\\"1\\\":3},\\\"2\\\":{\\\"1\\\":4}}\"}},\"spec\":{\"nodeName\":\"n1\",\"initContainers\":["
                "{\"name\":\"i\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":3}}},"
                "{\"name\":\"j\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":5}}},"
                "{\"name\":\"k\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}}],"
                "\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"}}";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodSlices j = read_slices_of(inits, NODE("cgpu"), CONTAINER_INIT, 1, &arena);

        ASSERT_INT(j.n, 2);
        ASSERT_INT(j.pod_units, 5);
}

static void finds_cards_by_index(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodSlices s = read_slices(NODE("share"), CONTAINER_MAIN, 0, &arena);

        ASSERT_INT(s.mode, SHARE_MODE_SHARE);
        ASSERT_INT(pod_slices_card(&s, 1)->units, 180);
        ASSERT_TRUE(!pod_slices_card(&s, 2));
}

static void has_none_where_nothing_decodes(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodSlices s = read_slices("{\"metadata\":{\"name\":7}}", CONTAINER_MAIN, 0, &arena);

        ASSERT_INT(s.n, 0);
}

int main(void) {
        return TEST_MAIN(TEST(reads_each_container_by_itself), TEST(the_largest_init_container_counts),
                         TEST(finds_cards_by_index), TEST(has_none_where_nothing_decodes));
}
