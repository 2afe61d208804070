/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_environment.h"
#include "local/variables.h"
#include "test.h"

static void replaces_in_place(void) {
        _cleanup_variables_ Variables v = VARIABLES_NULL;

        ASSERT_OK(variables_set(&v, STR("A"), STR("1")));
        ASSERT_OK(variables_set(&v, STR("AB"), STR("2")));
        ASSERT_OK(variables_set(&v, STR("A"), STR("3")));
        ASSERT_INT(v.n, 2);
        ASSERT_TEXT(v.items[0], "A=3");
        ASSERT_TEXT(variables_get(&v, STR("AB")), "2");
        ASSERT_TRUE(!variables_get(&v, STR("B")));
        ASSERT_TRUE(!v.items[2]);
}

static void expands_as_kubernetes_does(void) {
        static const char *const cases[][2] = {
                {"$(A)", "1"},          {"x$(A)y$(A)", "x1y1"},
                {"$(NONE)", "$(NONE)"}, {"$$(A)", "$(A)"},
                {"$A", "$A"},           {"$", "$"},
                {"$(A", "$(A"},         {"$$", "$"},
                {"$()", "$()"},         {"a$", "a$"},
                {"$($(A))", "$($(A))"}, {"$$$(A)", "$1"},
        };
        _cleanup_variables_ Variables v = VARIABLES_NULL;

        ASSERT_OK(variables_set(&v, STR("A"), STR("1")));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf out = BUF_NULL;

                variables_expand(&v, str_from(cases[i][0]), &out);
                ASSERT_STR(buf_str(&out), str_from(cases[i][1]));
        }
}

static json_t *tree(const char *text) {
        json_t *t = json_loads(text, 0, NULL);

        ASSERT_TRUE(t);
        return t;
}

#define NODE                                                                                                 \
        "{\"metadata\":{\"name\":\"n1\",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"GiB\","              \
        "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"uuid\\\":\\\"GPU-a\\\",\\\"units\\\":16},"            \
        "{\\\"index\\\":1,\\\"uuid\\\":\\\"GPU-b\\\",\\\"units\\\":16}]\"}}}"

static void print(const char *pod_text, size_t container, const char *expected, const char *expected_notes) {
        _cleanup_json_ json_t *pod = tree(pod_text), *node = tree(NODE);
        BoundPod place = {pod, node};
        _cleanup_variables_ Variables v = VARIABLES_NULL;
        _cleanup_buf_ Buf out = BUF_NULL, notes = BUF_NULL;

        ASSERT_OK(pod_environment_make(&place,
                                       json_array_get(tree_at(pod, "spec", "containers", NULL), container),
                                       CONTAINER_MAIN, (uint32_t) container, &v, &notes));
        pod_environment_print(&v, &out);
        ASSERT_STR(buf_str(&out), str_from(expected));
        ASSERT_STR(buf_str(&notes), str_from(expected_notes));
}

static void tells_a_container_its_slice(void) {
        static const char pod[] =
                "{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\",\"annotations\":{"
                "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":4},\\\"1\\\":{\\\"1\\\":"
                "2}}\"}},"
                "\"spec\":{\"nodeName\":\"n1\",\"containers\":["
                "{\"name\":\"a\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}}},"
                "{\"name\":\"b\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":2}}},{\"name\":\"c\"}]},"
                "\"status\":{\"phase\":\"Running\"}}";

        print(pod, 0,
              "ALIYUN_COM_GPU_MEM_CONTAINER=4\nALIYUN_COM_GPU_MEM_DEV=16\nALIYUN_COM_GPU_MEM_POD=6\n"
              "ALIYUN_COM_GPU_MEM_IDX=1\nALIYUN_COM_GPU_MEM_UNIT=GiB\nNVIDIA_VISIBLE_DEVICES=GPU-b\n",
              "");
        print(pod, 1,
              "ALIYUN_COM_GPU_MEM_CONTAINER=2\nALIYUN_COM_GPU_MEM_DEV=16\nALIYUN_COM_GPU_MEM_POD=6\n"
              "ALIYUN_COM_GPU_MEM_IDX=1\nALIYUN_COM_GPU_MEM_UNIT=GiB\nNVIDIA_VISIBLE_DEVICES=GPU-b\n",
              "");
        print(pod, 2, "", "");
}

static void lets_the_pod_override(void) {
        print("{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"tier\":\"gold\"},\"annotations\":{"
              "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\"}},"
              "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"a\","
              "\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":4}},\"env\":["
              "{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"all\"},{\"name\":\"BASE\",\"value\":\"x\"},"
              "{\"name\":\"CGPU_DISABLE\",\"value\":\"true\"},{\"name\":\"ALIYUN_X\",\"value\":\"$(BASE)"
              "\\ny\"},"
              "{\"name\":\"CGPU_POD\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}},"
              "{\"name\":\"CGPU_TIER\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.labels['tier']"
              "\"}}},"
              "{\"name\":\"CGPU_ABSENT\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.labels['no']"
              "\"}}},"
              "{\"name\":\"CGPU_NODE\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"spec.nodeName\"}}},"
              "{\"name\":\"CGPU_S\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}}]}]},"
              "\"status\":{\"phase\":\"Running\"}}",
              0,
              "ALIYUN_COM_GPU_MEM_CONTAINER=4\nALIYUN_COM_GPU_MEM_DEV=16\nALIYUN_COM_GPU_MEM_POD=4\n"
              "ALIYUN_COM_GPU_MEM_IDX=0\nALIYUN_COM_GPU_MEM_UNIT=GiB\nNVIDIA_VISIBLE_DEVICES=all\n"
              "CGPU_DISABLE=true\nALIYUN_X=x\\ny\nCGPU_POD=p\nCGPU_TIER=gold\nCGPU_ABSENT=\nCGPU_NODE=n1\n",
              "(env CGPU_S: this cluster does not resolve its valueFrom; it is left out)\n");
}

int main(void) {
        return TEST_MAIN(TEST(replaces_in_place), TEST(expands_as_kubernetes_does),
                         TEST(tells_a_container_its_slice), TEST(lets_the_pod_override));
}
