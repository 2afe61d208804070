/* SPDX-License-Identifier: Apache-2.0 */
#include "share/memory_unit.h"
#include "share/mode.h"
#include "share/refusal_format.h"
#include "share/request.h"
#include "slice/visible.h"
#include "test.h"
#include "wire/pod_profile.h"

typedef struct Fixture {
        Arena arena;
        Request request;
        Refusal refusal;
        char text[512]; /* of the refusal */
} Fixture;

/* spec: the JSON of spec's members; labels: of metadata.labels. */
static int read_request(Fixture *f, const char *labels, const char *spec) {
        _cleanup_buf_ Buf json = BUF_NULL, words = BUF_NULL;
        Fault fault = FAULT_NULL;
        Str text;
        Pod pod;
        int r;

        *f = (Fixture){0};
        buf_appendf(&json,
                    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"labels\":{%s}},\"spec\":{%s}}",
                    labels, spec);
        text = arena_str(&f->arena, buf_str(&json)); /* the request points into it */
        r = pod_decode(text, &f->arena, &pod, &fault);
        if (r != 0)
                TEST_FAIL_("%s", fault.text);
        r = request_from_pod(&pod, &f->arena, &f->request, &f->refusal);
        if (r == REQUEST_E_REFUSED) {
                refusal_format(&f->refusal, &words);
                (void) snprintf(f->text, sizeof f->text, "%s", words.data);
        }
        return r;
}

static uint32_t cpu_of(const char *spec) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        PodProfile profile;
        Fault fault;
        Pod pod;

        buf_appendf(&json, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"},\"spec\":{%s}}", spec);
        ASSERT_OK(pod_decode(buf_str(&json), &arena, &pod, &fault));
        ASSERT_OK(pod_profile_decode(buf_str(&json), &arena, &profile, &fault));
        ASSERT_TRUE(profile.n_requests <= 1); /* the same rule, written for preemption */
        if (!profile.requests_unknown)
                ASSERT_INT(request_cpu_of_pod(&pod), profile.n_requests > 0 ? profile.requests[0].milli : 0);
        return request_cpu_of_pod(&pod);
}

#define CPU(text) "{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":" text "}}}"
#define SIDECAR(text)                                                                                        \
        "{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":" text "}}}"

static void cpu_counts_as_for_kube_scheduler(void) {
        ASSERT_INT(cpu_of(""), 0);
        ASSERT_INT(cpu_of("\"containers\":[{\"name\":\"c\"}]"), 0);
        ASSERT_INT(cpu_of("\"containers\":[" CPU("\"1500m\"") "," CPU("2") "," CPU("null") "]"), 3500);
        ASSERT_INT(cpu_of("\"initContainers\":[" CPU("9") "],\"containers\":[" CPU("\"0.5\"") "]"), 9000);
        ASSERT_INT(cpu_of("\"initContainers\":[" SIDECAR("2") "," CPU("4") "],\"containers\":[" CPU("3") "]"),
                   6000);
        ASSERT_INT(cpu_of("\"initContainers\":[" CPU("4") "," SIDECAR("2") "],\"containers\":[" CPU("3") "]"),
                   5000);
        ASSERT_INT(cpu_of("\"overhead\":{\"cpu\":\"250m\"},\"containers\":[" CPU("1") "]"), 1250);
        ASSERT_INT(cpu_of("\"resources\":{\"requests\":{\"cpu\":\"7\"}},\"overhead\":{\"cpu\":\"1\"},"
                          "\"containers\":[" CPU("9") "]"),
                   8000);
        ASSERT_INT(cpu_of("\"containers\":[" CPU("\"many\"") "," CPU("\"1\"") "]"), 1000);
        ASSERT_INT(cpu_of("\"containers\":[" CPU("\"-1\"") "," CPU("\"1P\"") "]"), UINT32_MAX);
}

#define MEM(n) "{\"name\":\"c" #n "\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" #n "\"}}}"
#define CORE(n, p)                                                                                           \
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n                          \
        "\",\"aliyun.com/gpu-core.percentage\":\"" p "\"}}}"

static void reads_what_is_asked(void) {
        Fixture f;

        ASSERT_OK(read_request(&f, "", "\"containers\":[" MEM(4) "]"));
        ASSERT_INT(f.request.mem, 4);
        ASSERT_INT(f.request.core, 0);
        ASSERT_INT(f.request.cards, 1);
        arena_done(&f.arena);
        ASSERT_OK(read_request(&f, "", "\"containers\":[" CORE("2", "30") "]"));
        ASSERT_INT(f.request.mem, 2);
        ASSERT_INT(f.request.core, 30);
        arena_done(&f.arena);
        ASSERT_OK(read_request(&f, "\"aliyun.com/gpu-count\":\"4\"", "\"containers\":[" MEM(8) "]"));
        ASSERT_INT(f.request.mem, 2);
        ASSERT_INT(f.request.cards, 4);
        arena_done(&f.arena);
        ASSERT_INT(read_request(&f, "", "\"containers\":[{\"name\":\"x\"}]"), REQUEST_E_NONE);
        arena_done(&f.arena);
        ASSERT_INT(read_request(&f, "", "\"containers\":[" MEM(0) "]"), REQUEST_E_NONE);
        arena_done(&f.arena);
}

#define WHOLE(name, n) "{\"name\":\"" name "\",\"resources\":{\"limits\":{\"aliyun.com/gpu\":\"" n "\"}}}"

/* A card is one unit of a node in mode topology. */
static void reads_whole_cards(void) {
        Fixture f;

        ASSERT_OK(read_request(&f, "", "\"containers\":[{\"name\":\"x\"}," WHOLE("main", "4") "]"));
        ASSERT_TRUE(f.request.whole);
        ASSERT_INT(f.request.cards, 4);
        ASSERT_INT(f.request.mem, 1);
        ASSERT_INT(f.request.core, 0);
        ASSERT_INT(f.request.n_containers, 1);
        ASSERT_INT(f.request.containers[0].index, 1);
        arena_done(&f.arena);
        ASSERT_INT(read_request(&f, "", "\"containers\":[" WHOLE("main", "0") "]"), REQUEST_E_NONE);
        arena_done(&f.arena);
        ASSERT_OK(read_request(&f, "", "\"containers\":[" WHOLE("main", "0") "," MEM(4) "]"));
        ASSERT_FALSE(f.request.whole);
        arena_done(&f.arena);
}

static void refuses_wrong_whole_cards(void) {
        static const struct {
                const char *labels, *spec, *words;
        } cases[] = {
                {"", "\"containers\":[" WHOLE("main", "257") "]",
                 "container \"main\": aliyun.com/gpu is 257, must be a whole number from 1 to 256"},
                {"", "\"containers\":[" WHOLE("main", "1.5") "]",
                 "container \"main\": aliyun.com/gpu is 1.5, must be a whole number from 1 to 256"},
                {"", "\"containers\":[" WHOLE("a", "1") "," WHOLE("b", "1") "]",
                 "container \"a\": aliyun.com/gpu is 1, must be of one container only"},
                {"", "\"containers\":[" WHOLE("a", "1") "," MEM(4) "]",
                 "container \"a\": aliyun.com/gpu is 1, must not come together with another resource of a "
                 "GPU"},
                {"", "\"initContainers\":[" WHOLE("a", "1") "],\"containers\":[{\"name\":\"b\"}]",
                 "container \"a\": aliyun.com/gpu is 1, must not be of an init container"},
                {"\"aliyun.com/gpu-count\":\"2\"", "\"containers\":[" WHOLE("a", "2") "]",
                 "container \"a\": aliyun.com/gpu is 2, must not come together with the label "
                 "aliyun.com/gpu-count"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                ASSERT_INT(read_request(&f, cases[i].labels, cases[i].spec), REQUEST_E_REFUSED);
                ASSERT_TEXT(f.text, cases[i].words);
                ASSERT_INT(f.refusal.code, REFUSAL_WHOLE);
                ASSERT_TRUE(refusal_is_final(f.refusal.code));
                arena_done(&f.arena);
        }
}

#define COUNT(n, m)                                                                                          \
        "{\"name\":\"k\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" n                             \
        "\",\"aliyun.com/gpu-count\":\"" m "\"}}}"

/* Some manifests have gpu-count among the limits. It means the same as the label. */
static void reads_the_number_of_cards_from_the_limits_as_well(void) {
        Fixture f;

        ASSERT_OK(read_request(&f, "", "\"containers\":[" COUNT("8", "4") "," MEM(4) "]"));
        ASSERT_INT(f.request.cards, 4);
        ASSERT_INT(f.request.mem, 3);
        arena_done(&f.arena);
        ASSERT_OK(read_request(&f, "\"aliyun.com/gpu-count\":\"4\"", "\"containers\":[" COUNT("8", "4") "]"));
        arena_done(&f.arena);
        ASSERT_OK(read_request(&f, "", "\"containers\":[" COUNT("8", "0") "]"));
        ASSERT_INT(f.request.cards, 1);
        arena_done(&f.arena);
        ASSERT_INT(read_request(&f, "", "\"containers\":[" COUNT("0", "0") "]"), REQUEST_E_NONE);
        arena_done(&f.arena);
}

/* The largest amount that a container may ask for, so that 255 of them can be added. */
static void counts_up_to_the_limit(void) {
        static const char spec[] =
                "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":"
                "\"%u\"}}}]";
        char text[sizeof spec + 16];
        Fixture f;

        (void) snprintf(text, sizeof text, spec, UINT32_MAX / REQUEST_MAX_CONTAINERS);
        ASSERT_OK(read_request(&f, "", text));
        ASSERT_INT(f.request.mem, UINT32_MAX / REQUEST_MAX_CONTAINERS);
        arena_done(&f.arena);
        (void) snprintf(text, sizeof text, spec, UINT32_MAX / REQUEST_MAX_CONTAINERS + 1);
        ASSERT_INT(read_request(&f, "", text), REQUEST_E_REFUSED);
        ASSERT_INT(f.refusal.code, REFUSAL_RANGE);
        arena_done(&f.arena);
}

static void counts_containers_up_to_the_limit(void) {
        for (size_t n = REQUEST_MAX_CONTAINERS; n <= REQUEST_MAX_CONTAINERS + 1; n++) {
                _cleanup_buf_ Buf spec = BUF_NULL;
                Fixture f;

                buf_append_str(&spec, STR("\"containers\":["));
                for (size_t i = 0; i < n; i++)
                        buf_appendf(&spec, "%s" MEM(1), i > 0 ? "," : "");
                buf_append_char(&spec, ']');
                ASSERT_INT(read_request(&f, "", spec.data),
                           n > REQUEST_MAX_CONTAINERS ? REQUEST_E_REFUSED : 0);
                ASSERT_TRUE(n == REQUEST_MAX_CONTAINERS || f.refusal.code == REFUSAL_TOO_MANY_CONTAINERS);
                arena_done(&f.arena);
        }
}

/* init 9, sidecar 2 started after it, init 4 beside the sidecar, main 3: max(9, 2 + 4, 2 + 3) */
static void counts_init_containers_as_kubernetes_does(void) {
        static const char spec[] = "\"initContainers\":[" MEM(
                9) ",{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":"
                   "{\"aliyun.com/gpu-mem\":2}}}," MEM(4) "],\"containers\":[" MEM(3) "]";
        Fixture f;

        ASSERT_OK(read_request(&f, "", spec));
        ASSERT_INT(f.request.mem, 9);
        ASSERT_INT(f.request.n_containers, 4);
        ASSERT_INT(f.request.containers[1].kind, CONTAINER_SIDECAR);
        arena_done(&f.arena);
        /* The same with 8 beside the sidecar: that moment is the largest. */
        ASSERT_OK(read_request(
                &f, "",
                "\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":"
                "{\"aliyun.com/gpu-mem\":2}}}," MEM(8) "],\"containers\":[" MEM(7) "]"));
        ASSERT_INT(f.request.mem, 10);
        arena_done(&f.arena);
        /* init 3, sidecar 5, init 2 beside it: 7, although 2 is less than 3. */
        ASSERT_OK(read_request(
                &f, "",
                "\"initContainers\":[" MEM(3) ",{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":"
                                              "{\"limits\":{\"aliyun.com/gpu-mem\":5}}}," MEM(
                                                      2) "],\"containers\":[" MEM(1) "]"));
        ASSERT_INT(f.request.mem, 7);
        arena_done(&f.arena);
}

static void refuses_with_object_value_and_rule(void) {
        static const struct {
                const char *labels, *spec, *words;
                RefusalCode code;
        } cases[] = {
                {"", "\"containers\":[" CORE("2", "33") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is 33, must be a multiple of 5 from 5 "
                 "to 100",
                 REFUSAL_CORE_STEP},
                {"", "\"containers\":[" CORE("2", "0") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is 0, must be a multiple of 5 from 5 to "
                 "100",
                 REFUSAL_CORE_STEP},
                {"", "\"containers\":[" CORE("2", "105") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is 105, must be a multiple of 5 from 5 "
                 "to 100",
                 REFUSAL_CORE_STEP},
                {"", "\"containers\":[" CORE("0", "30") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is 30, must come together with "
                 "aliyun.com/gpu-mem",
                 REFUSAL_CORE_WITHOUT_MEM},
                {"", "\"containers\":[" CORE("1.5", "30") "]",
                 "container \"main\": aliyun.com/gpu-mem is 1.5, must be a whole number", REFUSAL_MALFORMED},
                {"", "\"containers\":[" CORE("-3", "30") "]",
                 "container \"main\": aliyun.com/gpu-mem is -3, must be from 0 to 16843009", REFUSAL_RANGE},
                {"", "\"containers\":[" CORE("9E", "30") "]",
                 "container \"main\": aliyun.com/gpu-mem is 9E, must be from 0 to 16843009", REFUSAL_RANGE},
                {"", "\"containers\":[" CORE("2", "60") "," CORE("2", "45") "]",
                 "the pod's containers ask for 105 of aliyun.com/gpu-core.percentage together, must be at "
                 "most 100, the whole "
                 "of one card",
                 REFUSAL_CORE_SUM},
                {"", "\"containers\":[" MEM(4) "," CORE("2", "30") "]",
                 "containers \"c4\" and \"main\" ask for different kinds of GPU resources",
                 REFUSAL_MIXED_KINDS},
                {"\"aliyun.com/gpu-count\":\"3\"", "\"containers\":[" MEM(8) "]",
                 "container \"c8\": aliyun.com/gpu-mem is 8, must be a multiple of 3, the number of cards by "
                 "aliyun.com/gpu-count",
                 REFUSAL_COUNT_UNEVEN},
                {"\"aliyun.com/gpu-count\":\"two\"", "\"containers\":[" MEM(8) "]",
                 "label aliyun.com/gpu-count is \"two\", must be a whole number from 1 to 256",
                 REFUSAL_COUNT_MALFORMED},
                {"\"aliyun.com/gpu-count\":\"2\"", "\"containers\":[" CORE("8", "30") "]",
                 "aliyun.com/gpu-count is 2, must be 1 or absent together with "
                 "aliyun.com/gpu-core.percentage",
                 REFUSAL_COUNT_WITH_CORE},
                {"", "\"containers\":[" CORE("2", "99999999999999999999") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is 99999999999999999999, must be a "
                 "multiple "
                 "of 5 from 5 to 100",
                 REFUSAL_RANGE},
                {"", "\"containers\":[" CORE("2", "a few") "]",
                 "container \"main\": aliyun.com/gpu-core.percentage is a few, must be a whole number",
                 REFUSAL_MALFORMED},
                {"\"aliyun.com/gpu-count\":\"0\"", "\"containers\":[" MEM(8) "]",
                 "label aliyun.com/gpu-count is \"0\", must be a whole number from 1 to 256",
                 REFUSAL_COUNT_MALFORMED},
                {"\"aliyun.com/gpu-count\":\"257\"", "\"containers\":[" MEM(8) "]",
                 "label aliyun.com/gpu-count is \"257\", must be", REFUSAL_COUNT_MALFORMED},
                {"", "\"containers\":[" COUNT("8", "1.5") "]",
                 "container \"k\": aliyun.com/gpu-count is 1.5, must be a whole number from 1 to 256",
                 REFUSAL_COUNT_MALFORMED},
                {"\"aliyun.com/gpu-count\":\"4\"", "\"containers\":[" COUNT("8", "2") "]",
                 "container \"k\": aliyun.com/gpu-count is 2, must be the same everywhere in the pod, which "
                 "says 4 "
                 "already",
                 REFUSAL_COUNT_MALFORMED},
                {"", "\"containers\":[" COUNT("0", "1") "]",
                 "container \"k\": aliyun.com/gpu-count is 1, must come together with aliyun.com/gpu-mem",
                 REFUSAL_COUNT_WITHOUT_MEM},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                ASSERT_INT(read_request(&f, cases[i].labels, cases[i].spec), REQUEST_E_REFUSED);
                ASSERT_CONTAINS(f.text, cases[i].words);
                ASSERT_INT(f.refusal.code, cases[i].code);
                ASSERT_TRUE(refusal_is_final(f.refusal.code));
                arena_done(&f.arena);
        }
}

/* A pod with 4 units and these annotations. */
static int read_choice(Fixture *f, PodAnnotations keys, bool amounts_alone) {
        PodContainer c = {.name = STR("c"), .gpu_mem = {true, STR("4")}};
        Pod pod = {.annotations = keys, .containers = &c, .n_containers = 1};
        _cleanup_buf_ Buf words = BUF_NULL;
        int r;

        *f = (Fixture){0};
        r = (amounts_alone ? request_amounts_from_pod : request_from_pod)(&pod, &f->arena, &f->request,
                                                                          &f->refusal);
        if (r == REQUEST_E_REFUSED) {
                refusal_format(&f->refusal, &words);
                (void) snprintf(f->text, sizeof f->text, "%s", words.data);
        }
        return r;
}

static void reads_which_cards_are_chosen(void) {
        Fixture f;

        ASSERT_OK(read_choice(&f, (PodAnnotations){.use_gputype = STR(" , ")}, false));
        ASSERT_TRUE(f.request.choice == NULL);
        arena_done(&f.arena);
        ASSERT_OK(read_choice(&f, (PodAnnotations){.use_gputype = STR("A100,V100")}, false));
        ASSERT_INT(f.request.choice->n_rules, 2);
        arena_done(&f.arena);
        ASSERT_INT(read_choice(&f, (PodAnnotations){.nouse_gputype = STR("K80,!A100")}, false),
                   REQUEST_E_REFUSED);
        ASSERT_INT(f.refusal.code, REFUSAL_CARD_LIST);
        ASSERT_TRUE(refusal_is_final(f.refusal.code));
        ASSERT_TEXT(f.text,
                    "annotation nvidia.com/nouse-gputype: \"!A100\" must not begin with \"!\" in this key");
        arena_done(&f.arena);
        ASSERT_INT(read_choice(&f, (PodAnnotations){.gpu_uuid = STR("GPU-1,!gpu-1")}, false),
                   REQUEST_E_REFUSED);
        ASSERT_TEXT(f.text,
                    "annotation aliquot.dev/gpu-uuid wants only cards that the pod's annotations exclude");
        arena_done(&f.arena);
        ASSERT_OK(read_choice(&f, (PodAnnotations){.gpu_uuid = STR("!")}, true));
        ASSERT_TRUE(f.request.choice == NULL);
        arena_done(&f.arena);
}

static void a_copy_needs_nothing_of_the_original(void) {
        _cleanup_free_ void *bytes = NULL;
        const Request *copy;
        Fixture f;

        ASSERT_OK(
                read_choice(&f, (PodAnnotations){.gpu_type = STR("A100"), .gpu_uuid = STR("!GPU-1")}, false));
        bytes = malloc(request_size(&f.request));
        ASSERT_TRUE(bytes != NULL);
        copy = request_copy(&f.request, bytes);
        arena_done(&f.arena);
        ASSERT_INT(copy->containers[0].mem, 4);
        ASSERT_INT(card_choice_judge(copy->choice, STR("A100"), STR("GPU-2")), CARD_ALLOWED);
        ASSERT_INT(card_choice_judge(copy->choice, STR("A100"), STR("GPU-1")), CARD_FORBIDDEN);
        ASSERT_INT(card_choice_judge(copy->choice, STR("V100"), STR("GPU-2")), CARD_FORBIDDEN);
}

static void units(void) {
        static const struct {
                uint32_t card, units, dev, visible;
        } published[] = {{16160, 2, 15, 2154}, {16130, 4, 15, 4301}, {16130, 3, 15, 3226},
                         {15079, 3, 14, 3231}, {15360, 3, 15, 3072}, {23028, 8, 22, 8373}};
        static const struct {
                const char *text;
                uint32_t mib;
        } forms[] = {{"GiB", 1024}, {"MiB", 1}, {"128MiB", 128}, {"2GiB", 2048}};
        static const struct {
                uint32_t units, mib;
                const char *text;
        } amounts[] = {
                {3, 1024, "3 GiB"}, {512, 1, "512 MiB"}, {16, 128, "16 x 128MiB"}, {4, 2048, "4 x 2GiB"}};
        MemoryUnit unit;

        for (size_t i = 0; i < ELEMENTSOF(published); i++) {
                ASSERT_INT(visible_mib(published[i].card, published[i].units, published[i].dev),
                           published[i].visible);
                ASSERT_INT(memory_unit_count(published[i].card, MEMORY_UNIT_GIB), published[i].dev);
                for (uint64_t mib = 1, units = 0; mib <= published[i].card; mib++) {
                        while (visible_mib(published[i].card, units, published[i].dev) < mib)
                                units++;
                        ASSERT_INT(visible_units(published[i].card, mib, published[i].dev), units);
                }
        }
        for (size_t i = 0; i < ELEMENTSOF(forms); i++) {
                _cleanup_buf_ Buf out = BUF_NULL;

                ASSERT_OK(memory_unit_parse(str_from(forms[i].text), &unit));
                ASSERT_INT(unit.mib, forms[i].mib);
                memory_unit_format(unit, &out);
                ASSERT_STR(buf_str(&out), str_from(forms[i].text));
        }
        for (size_t i = 0; i < ELEMENTSOF(amounts); i++) {
                _cleanup_buf_ Buf out = BUF_NULL;

                memory_unit_format_amount(amounts[i].units, (MemoryUnit){amounts[i].mib}, &out);
                ASSERT_STR(buf_str(&out), str_from(amounts[i].text));
        }
        ASSERT_INT(memory_unit_count(16160, (MemoryUnit){128}), 126);
        ASSERT_INT(memory_unit_parse(STR("0MiB"), &unit), MEMORY_UNIT_E_MALFORMED);
        ASSERT_INT(memory_unit_parse(STR("GB"), &unit), MEMORY_UNIT_E_MALFORMED);
        ASSERT_INT(memory_unit_parse(STR("128"), &unit), MEMORY_UNIT_E_MALFORMED);
        ASSERT_INT(memory_unit_parse(STR("4194304GiB"), &unit), MEMORY_UNIT_E_MALFORMED);
        ASSERT_INT(memory_unit_parse(STR("99999999999MiB"), &unit), MEMORY_UNIT_E_MALFORMED);
}

static void modes(void) {
        ASSERT_INT(share_mode_from_label(STR("")), SHARE_MODE_NONE);
        ASSERT_INT(share_mode_from_label(STR("Share")), SHARE_MODE_UNKNOWN);
        for (int m = SHARE_MODE_SHARE; m <= SHARE_MODE_MIG; m++)
                ASSERT_INT(share_mode_from_label(str_from(share_mode_to_string((ShareMode) m))), m);
        ASSERT_TRUE(share_mode_has_memory(SHARE_MODE_SHARE) && !share_mode_is_isolated(SHARE_MODE_SHARE));
        ASSERT_TRUE(share_mode_has_core(SHARE_MODE_CORE_MEM) && !share_mode_has_core(SHARE_MODE_CGPU));
        ASSERT_FALSE(share_mode_has_memory(SHARE_MODE_DEFAULT));
}

int main(void) {
        return TEST_MAIN(TEST(cpu_counts_as_for_kube_scheduler), TEST(reads_what_is_asked),
                         TEST(reads_whole_cards), TEST(refuses_wrong_whole_cards),
                         TEST(reads_the_number_of_cards_from_the_limits_as_well),
                         TEST(counts_up_to_the_limit), TEST(counts_containers_up_to_the_limit),
                         TEST(counts_init_containers_as_kubernetes_does),
                         TEST(refuses_with_object_value_and_rule), TEST(reads_which_cards_are_chosen),
                         TEST(a_copy_needs_nothing_of_the_original), TEST(units), TEST(modes));
}
