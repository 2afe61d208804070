/* SPDX-License-Identifier: Apache-2.0 */

/* From annotations to slices and back, in both forms, and the environment that is made of them. */

#include "making.h"
#include "share/environment.h"
#include "share/pod_grant.h"
#include "share/pod_grant_write.h"
#include "wire/card_info.h"
#include "wire/pod.h"

typedef struct Fixture {
        Arena arena;
        GrantSpec spec;
        Fault fault;
} Fixture;

#define MEM(name, n) "{\"name\":\"" name "\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" #n "\"}}}"
#define CORE(name, n, p)                                                                                     \
        "{\"name\":\"" name "\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" #n                     \
        "\",\"aliyun.com/gpu-core.percentage\":\"" #p "\"}}}"
#define ALLOCATION(text) "\"scheduler.framework.gpushare.allocation\":\"" text "\""
#define COMPUTE(text)    "\"gpushare.alibabacloud.com/core-percentage\":\"" text "\""
#define INIT(text)       "\"aliquot.dev/init-allocation\":\"" text "\""
#define OLD_IDX(text)    "\"ALIYUN_COM_GPU_MEM_IDX\":\"" text "\""

static void read_pod(Fixture *f, const char *annotations, const char *spec, const char *status, Pod *ret) {
        _cleanup_buf_ Buf json = BUF_NULL;

        *f = (Fixture){0};
        buf_appendf(&json,
                    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"u\",\"annotations\":{%s}},"
                    "\"spec\":{%s},"
                    "\"status\":{%s}}",
                    annotations, spec, status);
        if (pod_decode(arena_str(&f->arena, buf_str(&json)), &f->arena, ret, &f->fault) != 0)
                TEST_FAIL_("%s", f->fault.text);
}

static int read_grant(Fixture *f, const char *annotations, const char *spec, const char *status) {
        Pod pod;

        read_pod(f, annotations, spec, status, &pod);
        return pod_grant_spec(&pod, &f->arena, &f->spec, &f->fault);
}

/* "kind container card mem core;" of each slice: 0 main, 1 init, 2 sidecar */
static void assert_slices(const Fixture *f, const char *expected) {
        _cleanup_buf_ Buf text = BUF_NULL;

        for (size_t i = 0; i < f->spec.n_slices; i++) {
                const Slice *s = &f->spec.slices[i];

                buf_appendf(&text, "%u %u %u %u %u;", s->kind, s->container, s->card, s->mem, s->core);
        }
        ASSERT_STR(buf_str(&text), str_from(expected));
}

static void reads_each_form_and_falls_back(void) {
        static const char two[] = "\"nodeName\":\"n\",\"containers\":[" MEM("a", 1) "," MEM("b", 7) "]";
        static const char seven[] = "\"nodeName\":\"n\",\"containers\":[" MEM("a", 7) "]";
        static const char plain[] = "\"nodeName\":\"n\",\"containers\":[{\"name\":\"x\"}," MEM("b", 3) "]";
        static const char with_init[] =
                "\"nodeName\":\"n\",\"initContainers\":[" MEM("i", 5) "],\"containers\":[" MEM("a", 3) "]";
        static const char core[] = "\"nodeName\":\"n\",\"containers\":[" CORE("a", 2, 30) "]";
        static const char init[] = "\"nodeName\":\"n\",\"initContainers\":[" CORE(
                "i", 5, 50) ",{\"name\":\"s\",\"restartPolicy\":\"Always\"}],\"containers\":[" CORE("a", 2,
                                                                                                    30) "]";
        static const struct {
                const char *annotations, *spec, *slices;
                uint32_t pending, pending_core;
                bool has_core;
                const char *fault;
        } cases[] = {
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":1},\\\"1\\\":{\\\"1\\\":7}}"), two, "0 0 1 1 0;0 1 1 7 0;",
                 0, 0, false, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":9},\\\"4\\\":{\\\"2\\\":3}}") "," OLD_IDX("3"), two,
                 "0 0 1 1 0;", 7, 0, false, ""}, /* the annotation says where, the limit how much */
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":5,\\\"0\\\":1,\\\"3\\\":1}}"), seven,
                 /* Evenly, the rest to the first. */
                 "0 0 0 3 0;0 0 1 2 0;0 0 3 2 0;", 0, 0, false, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"0\\\":15},\\\"1\\\":{\\\"1\\\":15}}"), plain, "0 1 1 3 0;", 0, 0,
                 false, ""}, /* a container without a limit counts nothing */
                {ALLOCATION("{\\\"0\\\":{\\\"0\\\":1,\\\"1\\\":1,\\\"2\\\":1,\\\"3\\\":1}}"),
                 "\"nodeName\":\"n\",\"containers\":[" MEM("a", 2) "]", "0 0 0 1 0;0 0 1 1 0;", 0, 0, false,
                 ""}, /* more cards than units */
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":3}}"), with_init, "0 0 1 3 0;", 5, 0, false, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":3}}") "," OLD_IDX("1"), with_init, "1 0 1 5 0;0 0 1 3 0;",
                 0, 0, false, ""},
                {INIT("{\\\"0\\\":{\\\"2\\\":5}}") "," ALLOCATION("7"), with_init, "1 0 2 5 0;", 3, 0, false,
                 "annotation scheduler.framework.gpushare.allocation: "},
                {INIT("7") "," ALLOCATION("{\\\"0\\\":{\\\"2\\\":3}}"), with_init, "0 0 2 3 0;", 5, 0, false,
                 "annotation aliquot.dev/init-allocation: "},
                {INIT("7") "," ALLOCATION("7"), with_init, "", 5, 0, false,
                 "; annotation scheduler.framework.gpushare.allocation: "}, /* both are named */
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}") "," COMPUTE("{\\\"0\\\":{\\\"1\\\":25}}"), core,
                 "0 0 1 2 30;", 0, 0, true, ""}, /* compute is written and never read */
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}"), core, "0 0 1 2 30;", 0, 0, true, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}") "," COMPUTE("30"), core, "0 0 1 2 30;", 0, 0, true,
                 ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}") "," COMPUTE("{\\\"0\\\":{\\\"3\\\":100}}"),
                 "\"nodeName\":\"n\",\"containers\":[" MEM("a", 2) "]", "0 0 1 2 0;", 0, 0, false, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}") "," COMPUTE("{\\\"0\\\":{\\\"3\\\":25}}"), core,
                 "0 0 1 2 30;", 0, 0, true, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"0\\\":2}}") "," COMPUTE("{\\\"0\\\":{\\\"0\\\":30}}") "," INIT(
                         "{\\\"0\\\":{\\\"0\\\":5},\\\"1\\\":{\\\"0\\\":1},\\\"7\\\":{\\\"0\\\":1}}"),
                 init, "1 0 0 5 50;0 0 0 2 30;", 0, 0, true, ""},
                {INIT("{\\\"0\\\":{\\\"0\\\":5}}") "," ALLOCATION("{}"), init, "1 0 0 5 50;", 2, 30, true,
                 ""},
                {OLD_IDX("3"), two, "0 0 3 1 0;0 1 3 7 0;", 0, 0, false, ""},
                {OLD_IDX("3") "," ALLOCATION("{}"), two, "0 0 3 1 0;0 1 3 7 0;", 0, 0, false, ""},
                {OLD_IDX("3") "," ALLOCATION("{\\\"0\\\":{\\\"1\\\":-2}}"), two, "0 0 3 1 0;0 1 3 7 0;", 0, 0,
                 false, "annotation scheduler.framework.gpushare.allocation: "},
                {OLD_IDX("3") "," ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}") "," INIT("[]"), two, "0 0 1 1 0;",
                 7, 0, false, "annotation aliquot.dev/init-allocation: "},
                {OLD_IDX("-1"), two, "", 8, 0, false, ""},
                {OLD_IDX("256"), two, "", 8, 0, false,
                 "annotation ALIYUN_COM_GPU_MEM_IDX is \"256\", must be a card index"},
                {"", two, "", 8, 0, false, ""},
                {"", init, "", 5, 50, true, ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                ASSERT_OK(read_grant(&f, cases[i].annotations, cases[i].spec, "\"phase\":\"Running\""));
                assert_slices(&f, cases[i].slices);
                ASSERT_INT(f.spec.pending_mem, cases[i].pending);
                ASSERT_INT(f.spec.pending_core, cases[i].pending_core);
                ASSERT_INT(f.spec.has_core, cases[i].has_core);
                ASSERT_CONTAINS(f.fault.text, cases[i].fault);
                ASSERT_TRUE(cases[i].fault[0] != '\0' || f.fault.text[0] == '\0');
                arena_done(&f.arena);
        }
}

static void a_pod_holds_from_binding_until_its_containers_end(void) {
        static const char bound[] = "\"nodeName\":\"n\",\"containers\":[" MEM("a", 1) "]";
        static const struct {
                const char *spec, *status;
                int r;
        } cases[] = {
                {"\"containers\":[" MEM("a", 1) "]", "\"phase\":\"Pending\"", POD_GRANT_E_NONE},
                {"\"nodeName\":\"n\",\"containers\":[{\"name\":\"x\"}]", "", POD_GRANT_E_NONE},
                {bound, "", 0},
                {bound, "\"phase\":\"Succeeded\"", POD_GRANT_E_NONE},
                {bound, "\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"running\":{}}}]", 0},
                {bound, "\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"terminated\":{}}}]",
                 POD_GRANT_E_NONE},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fixture f;

                ASSERT_INT(read_grant(&f, "", cases[i].spec, cases[i].status), cases[i].r);
                arena_done(&f.arena);
        }
}

/* The right to create a pod is enough to write its annotations. Without a limit they count
 * nothing. */
static void a_pod_without_limits_holds_nothing(void) {
        static const char spec[] =
                "\"nodeName\":\"n\",\"initContainers\":[{\"name\":\"i\"}],\"containers\":[{"
                "\"name\":\"a\"},{\"name\":\"b\"}]";
        static const char *const annotations[] = {
                ALLOCATION("{\\\"0\\\":{\\\"0\\\":15,\\\"1\\\":15}}"),
                INIT("{\\\"0\\\":{\\\"0\\\":15}}"),
                COMPUTE("{\\\"0\\\":{\\\"0\\\":100}}"),
                OLD_IDX("0") ",\"ALIYUN_COM_GPU_MEM_POD\":\"15\"",
        };

        for (size_t i = 0; i < ELEMENTSOF(annotations); i++) {
                Fixture f;

                ASSERT_INT(read_grant(&f, annotations[i], spec, ""), POD_GRANT_E_NONE);
                arena_done(&f.arena);
        }
}

static void names_what_differs_from_the_limits(void) {
        static const char one[] = "\"nodeName\":\"n\",\"containers\":[" MEM("a", 2) "]";
        static const char core[] = "\"nodeName\":\"n\",\"containers\":[" CORE("a", 2, 30) "]";
        static const char init[] = "\"nodeName\":\"n\",\"initContainers\":[" MEM(
                "i", 5) ",{\"name\":\"s\",\"restartPolicy\":\"Always\"}],\"containers\":[" MEM("a", 2) "]";
        static const char none[] = "\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\"}]";
#define OLD(idx, pod) OLD_IDX(idx) ",\"ALIYUN_COM_GPU_MEM_POD\":\"" pod "\""
        static const struct {
                const char *annotations, *spec, *words; /* "": no difference */
        } cases[] = {
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2}}"), one, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":1,\\\"3\\\":1}}"), one, ""},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":9}}"), one,
                 "annotation scheduler.framework.gpushare.allocation gives container 0 (\"a\") 9 of "
                 "aliyun.com/gpu-mem, its limit is 2"},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":2},\\\"4\\\":{\\\"1\\\":3}}"), one,
                 "gives container 4 (\"\") 3 of aliyun.com/gpu-mem, its limit is 0"},
                {ALLOCATION("{\\\"4\\\":{\\\"1\\\":3}}"), one,
                 "its limit is 0; and 1 more differences"}, /* container 0 has no card */
                {ALLOCATION("{\\\"0\\\":{\\\"0\\\":3,\\\"1\\\":1}}"),
                 "\"nodeName\":\"n\",\"containers\":[" MEM("a", 4) "]",
                 "3 of aliyun.com/gpu-mem on gpu0, 2 of its limit 4 count there"},
                {INIT("{\\\"0\\\":{\\\"0\\\":5}}") "," ALLOCATION("{\\\"0\\\":{\\\"0\\\":2}}"), init, ""},
                {INIT("{\\\"0\\\":{\\\"0\\\":5},\\\"1\\\":{\\\"0\\\":1}}"), init,
                 "annotation aliquot.dev/init-allocation gives init container 1 (\"s\") 1 of "},
                {INIT("{\\\"7\\\":{\\\"0\\\":5}}"), init, "init container 7"},
                {COMPUTE("{\\\"0\\\":{\\\"1\\\":30}}"), core, ""},
                {COMPUTE("{\\\"0\\\":{\\\"1\\\":25}}"), core,
                 "annotation gpushare.alibabacloud.com/core-percentage gives container 0 (\"a\") 25 of "
                 "aliyun.com/gpu-core.percentage, its limit is 30"},
                {COMPUTE("{\\\"0\\\":{\\\"3\\\":100}}"), one,
                 "100 of aliyun.com/gpu-core.percentage, its limit is 0"},
                {ALLOCATION("{\\\"0\\\":{\\\"0\\\":15}}"), none, "15 of aliyun.com/gpu-mem, its limit is 0"},
                {OLD("1", "2"), one, ""},
                {OLD("1", "2"), init, ""},
                {OLD("1", "7"), one,
                 "annotation ALIYUN_COM_GPU_MEM_POD gives the pod 7 of aliyun.com/gpu-mem, its limits are 2"},
                {OLD("1", "7"), none, "its limits are 0 together"},
                {ALLOCATION("{\\\"0\\\":{\\\"1\\\":9}}"), "\"containers\":[" MEM("a", 2) "]",
                 ""},                                   /* not bound */
                {ALLOCATION("{\\\"0\\\":9}"), one, ""}, /* does not decode: no amount */
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fault differs = FAULT_NULL;
                Fixture f;
                Pod pod;

                read_pod(&f, cases[i].annotations, cases[i].spec, "\"phase\":\"Running\"", &pod);
                ASSERT_INT(pod_grant_compare(&pod, &f.arena, &differs),
                           cases[i].words[0] ? POD_GRANT_E_DIFFERS : 0);
                ASSERT_CONTAINS(differs.text, cases[i].words);
                arena_done(&f.arena);
        }
}

static Str annotations_of(Ledger *l, const Slice *slices, size_t n, uint32_t carried, Buf *out) {
        pod_grant_write(slices, n, ledger_node_find(l, STR("n")), false, 1234567890123456789, carried, out);
        ASSERT_OK(buf_result(out));
        return buf_str(out);
}

#define WHOLE(name, n) "{\"name\":\"" name "\",\"resources\":{\"limits\":{\"aliyun.com/gpu\":\"" #n "\"}}}"

/* A pod of whole cards holds one unit of each. */
static void whole_cards_there_and_back(void) {
        static const char spec[] = "\"nodeName\":\"n\",\"containers\":[{\"name\":\"x\"}," WHOLE("a", 2) "]";
        static const Slice slices[] = {{.container = 1, .card = 3, .mem = 1},
                                       {.container = 1, .card = 0, .mem = 1}};
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault differs = FAULT_NULL;
        Fixture f;
        Pod pod;

        ASSERT_OK(read_grant(&f, ALLOCATION("{\\\"1\\\":{\\\"0\\\":1,\\\"3\\\":1}}"), spec, ""));
        assert_slices(&f, "0 1 0 1 0;0 1 3 1 0;");
        arena_done(&f.arena);
        ASSERT_OK(read_grant(&f, "", spec, ""));
        ASSERT_INT(f.spec.pending_mem, 2);
        arena_done(&f.arena);
        read_pod(&f, ALLOCATION("{\\\"1\\\":{\\\"0\\\":1}}"), spec, "\"phase\":\"Running\"", &pod);
        ASSERT_INT(pod_grant_compare(&pod, &f.arena, &differs), POD_GRANT_E_DIFFERS);
        arena_done(&f.arena);
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "topology", "", EQUAL(4, 4));
        ASSERT_STR(
                annotations_of(l, slices, 2, 0, &out),
                STR("{\"scheduler.framework.gpushare.allocation\":\"{\\\"1\\\":{\\\"0\\\":1,\\\"3\\\":1}}\","
                    "\"scheduler.framework.gpushare.assigned\":\"false\","
                    "\"scheduler.framework.gpushare.assume-time\":\"1234567890123456789\","
                    "\"topology.kubernetes.io/gpu-group\":\"0,3\","
                    "\"topology.kubernetes.io/gpu-visible\":\"0,3\"}"));
}

static void writes_both_forms_for_one_card_and_one_for_several(void) {
        static const Slice one[] = {
                {.kind = CONTAINER_INIT, .container = 0, .card = 1, .mem = 9, .core = 50},
                {.kind = CONTAINER_SIDECAR, .container = 1, .card = 1, .mem = 2, .core = 10},
                {.container = 1, .card = 1, .mem = 7, .core = 30},
                {.container = 0, .card = 1, .mem = 1, .core = 5},
        };
        static const Slice several[] = {{.container = 0, .card = 3, .mem = 2},
                                        {.container = 0, .card = 0, .mem = 2}};
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_buf_ Buf a = BUF_NULL, b = BUF_NULL;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(60, 4));
        ASSERT_STR(
                annotations_of(l, one, ELEMENTSOF(one), 0, &a),
                STR("{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":1},\\\"1\\\":{"
                    "\\\"1\\\":7}}\","
                    "\"gpushare.alibabacloud.com/"
                    "core-percentage\":\"{\\\"0\\\":{\\\"1\\\":5},\\\"1\\\":{\\\"1\\\":30}}\","
                    "\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"1\\\":9},\\\"1\\\":{\\\"1\\\":2}}\","
                    "\"scheduler.framework.gpushare.assigned\":\"false\","
                    "\"scheduler.framework.gpushare.assume-time\":\"1234567890123456789\","
                    "\"ALIYUN_COM_GPU_MEM_IDX\":\"1\",\"ALIYUN_COM_GPU_MEM_DEV\":\"15\",\"ALIYUN_COM_GPU_MEM_"
                    "POD\":\"10\","
                    "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\",\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":"
                    "\"1234567890123456789\"}"));
        ASSERT_STR(
                annotations_of(l, several, ELEMENTSOF(several), 0, &b),
                STR("{\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2,\\\"3\\\":2}}\","
                    "\"scheduler.framework.gpushare.assigned\":\"false\","
                    "\"scheduler.framework.gpushare.assume-time\":\"1234567890123456789\"}"));
}

/* A Binding and a patch cannot remove keys: a key that a user wrote and that gets no value would
 * stay. */
static void a_system_key_without_a_value_is_emptied(void) {
        static const Slice several[] = {{.container = 0, .card = 3, .mem = 2},
                                        {.container = 0, .card = 0, .mem = 2}};
        static const struct {
                const char *key;
                bool stays;
        } keys[] = {
                {"scheduler.framework.gpushare.allocation", true},
                {"scheduler.framework.gpushare.assigned", true},
                {"scheduler.framework.gpushare.assume-time", true},
                {"gpushare.alibabacloud.com/core-percentage", false},
                {"aliquot.dev/init-allocation", false},
                {"aliquot.dev/resize-status", false},
                {"ALIYUN_COM_GPU_MEM_IDX", false},
                {"ALIYUN_COM_GPU_MEM_DEV", false},
                {"ALIYUN_COM_GPU_MEM_POD", false},
                {"ALIYUN_COM_GPU_MEM_ASSIGNED", false},
                {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", false},
        };
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_buf_ Buf all = BUF_NULL, nothing = BUF_NULL, idx = BUF_NULL;

        ASSERT_INT(ELEMENTSOF(keys), POD_SYSTEM_KEYS_COUNT);
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(60, 4));
        (void) annotations_of(l, several, ELEMENTSOF(several), (1u << POD_SYSTEM_KEYS_COUNT) - 1, &all);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                char member[96];
                const char *at;

                (void) snprintf(member, sizeof member, "\"%s\":\"", keys[i].key);
                at = strstr(all.data, member);
                ASSERT_TRUE(at != NULL);
                ASSERT_INT(at[strlen(member)] != '"', keys[i].stays);
                ASSERT_TRUE(!strstr(at + 1, member)); /* once */
        }
        ASSERT_STR(annotations_of(l, NULL, 0, 0, &nothing), STR("{}"));
        ASSERT_STR(annotations_of(l, NULL, 0, 1u << 6, &idx), STR("{\"ALIYUN_COM_GPU_MEM_IDX\":\"\"}"));
}

/* ---- environment ---- */

static void write_variable(void *userdata, const char *name, Str value) {
        buf_appendf(userdata, "%s=" STR_FMT "\n", name, STR_ARG(value));
}

static void makes_the_environment(void) {
        static const CardInfo cards[] = {
                {.index = 0, .units = 15, .uuid = STR("GPU-a")},
                {.index = 1, .units = 15, .uuid = STR("GPU-b")},
                {.index = 2, .units = 16},
                {.index = 3, .units = 15, .uuid = STR("GPU-d")},
        };
        static const Slice one[] = {{.card = 2, .mem = 4}};
        static const Slice four[] = {
                {.card = 0, .mem = 2}, {.card = 1, .mem = 2}, {.card = 2, .mem = 2}, {.card = 3, .mem = 2}};
        static const Slice unknown[] = {{.card = 9, .mem = 1}};
        static const CardInfo unlike[] = {{.index = 0, .units = 15}, {.index = 1, .units = 80}};
        static const Slice both[] = {{.card = 0, .mem = 8}, {.card = 1, .mem = 8}};
        _cleanup_buf_ Buf a = BUF_NULL, b = BUF_NULL, c = BUF_NULL, d = BUF_NULL;

        ASSERT_OK(environment_make(one, 1, 4, MEMORY_UNIT_GIB, cards, ELEMENTSOF(cards), write_variable, &a));
        ASSERT_TEXT(a.data,
                    "ALIYUN_COM_GPU_MEM_CONTAINER=4\nALIYUN_COM_GPU_MEM_DEV=16\nALIYUN_COM_GPU_MEM_POD=4\n"
                    "ALIYUN_COM_GPU_MEM_IDX=2\nALIYUN_COM_GPU_MEM_UNIT=GiB\nNVIDIA_VISIBLE_DEVICES=\n");
        ASSERT_OK(environment_make(four, 4, 8, (MemoryUnit){128}, cards, ELEMENTSOF(cards), write_variable,
                                   &b));
        ASSERT_TEXT(b.data,
                    "ALIYUN_COM_GPU_MEM_CONTAINER=2\nALIYUN_COM_GPU_MEM_DEV=16\nALIYUN_COM_GPU_MEM_POD=8\n"
                    "ALIYUN_COM_GPU_MEM_IDX=0,1,2,3\nALIYUN_COM_GPU_MEM_UNIT=128MiB\n"
                    "NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-d\n");
        ASSERT_OK(environment_make(unknown, 1, 1, MEMORY_UNIT_GIB, cards, ELEMENTSOF(cards), write_variable,
                                   &c));
        ASSERT_CONTAINS(c.data, "ALIYUN_COM_GPU_MEM_DEV=0\n");
        /* 8 of 15 as a fraction would be 42 of the 80. The units of the largest card keep it within
         * its slice on both. */
        ASSERT_OK(environment_make(both, 2, 16, MEMORY_UNIT_GIB, unlike, 2, write_variable, &d));
        ASSERT_CONTAINS(d.data, "ALIYUN_COM_GPU_MEM_CONTAINER=8\nALIYUN_COM_GPU_MEM_DEV=80\n");
}

int main(void) {
        return TEST_MAIN(
                TEST(reads_each_form_and_falls_back), TEST(a_pod_holds_from_binding_until_its_containers_end),
                TEST(a_pod_without_limits_holds_nothing), TEST(names_what_differs_from_the_limits),
                TEST(a_system_key_without_a_value_is_emptied), TEST(whole_cards_there_and_back),
                TEST(writes_both_forms_for_one_card_and_one_for_several), TEST(makes_the_environment));
}
