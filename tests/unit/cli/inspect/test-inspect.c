/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/inspect.h"
#include "test.h"

/* Each test has its cluster as a JSON list and its expected report in full. */

#define NODE(name, ip, mem, count, more)                                                                     \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"" more "},\"status\":{\"allocatable\":{"      \
        "\"aliyun.com/gpu-mem\":\"" mem "\",\"aliyun.com/gpu-count\":\"" count "\"},\"addresses\":["         \
        "{\"type\":\"Hostname\",\"address\":\"h\"},{\"type\":\"InternalIP\",\"address\":\"" ip "\"}]}}"
#define CORE_NODE(name, ip, mem, count, core)                                                                \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"},\"status\":{\"allocatable\":{"              \
        "\"aliyun.com/gpu-mem\":\"" mem "\",\"aliyun.com/gpu-count\":\"" count                               \
        "\",\"aliyun.com/gpu-core.percentage\":\"" core                                                      \
        "\"},\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"" ip "\"}]}}"
#define ANNOTATED(text)  ",\"annotations\":{" text "}"
#define UNIT(u)          ANNOTATED("\"aliquot.dev/gpu-mem-unit\":\"" u "\"")
#define ALLOCATION(text) ANNOTATED("\"scheduler.framework.gpushare.allocation\":\"" text "\"")
#define OLD(idx)         ANNOTATED("\"ALIYUN_COM_GPU_MEM_IDX\":\"" idx "\"")
#define CONTAINER(mem)   "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem "\"}}}"
#define CORE_CONTAINER(m, c)                                                                                 \
        "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" m                                            \
        "\",\"aliyun.com/gpu-core.percentage\":\"" c "\"}}}"
#define POD_(ns, name, node, phase, more, spec)                                                              \
        "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\"" more                \
        "},\"spec\":{\"nodeName\":\"" node "\"," spec "},\"status\":{\"phase\":\"" phase "\"}}"
#define POD(ns, name, node, more, containers)                                                                \
        POD_(ns, name, node, "Running", more, "\"containers\":[" containers "]")

typedef int (*Print)(Inspect *i, Str node, Buf *out, Fault *fault);

/* The objects end with NULL. */
static Inspect *cluster(const char *const *objects) {
        Inspect *i = NULL;

        ASSERT_OK(inspect_new(&i));
        for (; *objects; objects++) {
                Fault fault = FAULT_NULL;
                int r = inspect_add(i, STR(""), str_from(*objects), &fault);

                if (r != 0)
                        TEST_FAIL_("%s: %s", *objects, fault.text);
        }
        return i;
}

static void check_node(Print print, const char *const *objects, const char *node, const char *expected) {
        _cleanup_(inspect_freep) Inspect *i = cluster(objects);
        _cleanup_buf_ Buf out = BUF_NULL, again = BUF_NULL;

        ASSERT_OK(print(i, str_from(node), &out, NULL));
        ASSERT_STR(buf_str(&out), str_from(expected));
        ASSERT_OK(print(i, str_from(node), &again, NULL));
        ASSERT_STR(buf_str(&again), buf_str(&out));
}

#define CHECK(print, expected, ...) check_node(print, (const char *const[]){__VA_ARGS__, NULL}, "", expected)

/* ---- the published examples ---- */

static void summary_of_one_card(void) {
        CHECK(inspect_print_summary,
              "NAME                           IPADDRESS       GPU0(Allocated/Total)  GPU Memory(GiB)\n"
              "cn-zhangjiakou.192.168.66.139  192.168.66.139  3/15                   3/15\n"
              "---------------------------------------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "3/15 (20%)\n",
              NODE("cn-zhangjiakou.192.168.66.139", "192.168.66.139", "15", "1", ""),
              POD("default", "a", "cn-zhangjiakou.192.168.66.139", ALLOCATION("{\\\"0\\\":{\\\"0\\\":3}}"),
                  CONTAINER("3")));
}

static void summary_of_two_empty_cards(void) {
        CHECK(inspect_print_summary,
              "NAME                     IPADDRESS    GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU "
              "Memory(GiB)\n"
              "cn-shanghai.192.168.0.4  192.168.0.4  0/7                    0/7                    0/14\n"
              "---------------------------------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "0/14 (0%)\n",
              NODE("cn-shanghai.192.168.0.4", "192.168.0.4", "14", "2", ""));
}

static void details_of_two_pods(void) {
        CHECK(inspect_print_details,
              "\n"
              "NAME:       cn-hangzhou.192.168.2.167\n"
              "IPADDRESS:  192.168.2.167\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)\n"
              "app-3g-v1-0  default    4\n"
              "app-3g-v1-1  default    4\n"
              "Allocated :  8 (53%)\n"
              "Total :      15\n"
              "--------------------------------------------------------\n"
              "\n"
              "Allocated/Total GPU Memory In Cluster:  8/15 (53%)\n",
              POD("default", "app-3g-v1-1", "cn-hangzhou.192.168.2.167", OLD("0"), CONTAINER("4")),
              NODE("cn-hangzhou.192.168.2.167", "192.168.2.167", "15", "1", ""),
              POD("default", "app-3g-v1-0", "cn-hangzhou.192.168.2.167",
                  ALLOCATION("{\\\"0\\\":{\\\"0\\\":4}}"), CONTAINER("4")));
}

/* ---- columns and rows ---- */

static void cards_a_node_lacks_and_pending(void) {
        /* first line "a\t10.0.0.1\t0/8\t0/8\t\t0/16\n": 25 bytes, 45 dashes */
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  PENDING(Allocated)  GPU "
              "Memory(GiB)\n"
              "a     10.0.0.1   0/8                    0/8                                        0/16\n"
              "b     unknown    2/15                   0/0                    4                   6/15\n"
              "---------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "6/31 (19%)\n",
              "{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"},\"status\":{\"allocatable\":{"
              "\"aliyun.com/gpu-mem\":15,\"aliyun.com/gpu-count\":1}}}",
              NODE("a", "10.0.0.1", "16", "2", ""), NODE("cpu-only", "10.0.0.9", "0", "0", ""),
              POD("default", "placed", "b", OLD("0"), CONTAINER("2")),
              POD("default", "waits", "b", "", CONTAINER("4")),
              POD("default", "elsewhere", "cpu-only", OLD("0"), CONTAINER("4")));
}

static void details_of_several_nodes(void) {
        /* the first node's pod lines, "p\tns\t2\t4\t0\t\n" and "q\tdefault\t0\t0\t3\t\n": 12 + 17
         * bytes, 39 dashes */
        CHECK(inspect_print_details,
              "\n"
              "NAME:       a\n"
              "IPADDRESS:  10.0.0.1\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  Pending(Allocated)\n"
              "q            default    0                0                3\n"
              "p            ns         3                3                0\n"
              "Allocated :  9 (56%)\n"
              "Total :      16\n"
              "---------------------------------------\n"
              "ns/p: annotation scheduler.framework.gpushare.allocation gives container 0 (\"\") 2 of "
              "aliyun.com/gpu-mem on gpu0, 3 of its limit 6 count there\n"
              "\n"
              "NAME:       b\n"
              "IPADDRESS:  10.0.0.2\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)\n"
              "Allocated :  0 (0%)\n"
              "Total :      7\n"
              "---------------------------------------\n"
              "\n"
              "Allocated/Total GPU Memory In Cluster:  9/23 (39%)\n",
              NODE("b", "10.0.0.2", "7", "1", ""), NODE("a", "10.0.0.1", "16", "2", ""),
              POD("ns", "p", "a", ALLOCATION("{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":4}}"), CONTAINER("6")),
              POD("default", "q", "a", "", CONTAINER("3")));
}

static void one_node_only(void) {
        const char *const objects[] = {NODE("a", "10.0.0.1", "16", "4", ""),
                                       NODE("b", "10.0.0.2", "7", "1", ""),
                                       POD("default", "p", "a", "", CONTAINER("3")),
                                       POD("default", "q", "b", OLD("0"), CONTAINER("1")), NULL};
        _cleanup_(inspect_freep) Inspect *i = cluster(objects);
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;

        check_node(inspect_print_summary, objects, "b",
                   "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)\n"
                   "b     10.0.0.2   1/7                    1/7\n"
                   "---------------------------------------\n"
                   "Allocated/Total GPU Memory In Cluster:\n"
                   "1/7 (14%)\n");
        ASSERT_INT(inspect_print_summary(i, STR("c"), &out, &fault), INSPECT_E_NO_NODE);
        ASSERT_CONTAINS(fault.text, "node \"c\"");
        ASSERT_INT(out.len, 0);
        ASSERT_INT(inspect_print_details(i, STR("c"), &out, NULL), INSPECT_E_NO_NODE);
        ASSERT_INT(inspect_print_json(i, STR("c"), &out, NULL), INSPECT_E_NO_NODE);
}

static void no_nodes_at_all(void) {
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  GPU Memory(GiB)\n"
              "--------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "0/0 (0%)\n",
              NODE("cpu", "10.0.0.1", "0", "0", ""));
        CHECK(inspect_print_details, "\nAllocated/Total GPU Memory In Cluster:  0/0 (0%)\n",
              NODE("cpu", "10.0.0.1", "0", "0", ""));
        CHECK(inspect_print_json, "{\"nodes\":[]}\n", NODE("cpu", "10.0.0.1", "0", "0", ""));
}

static void percent_is_truncated_and_not_capped(void) {
        /* 29/100 is 28.999... in binary floating point */
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)\n"
              "a     10.0.0.1   29/100                 29/100\n"
              "---------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "29/100 (29%)\n",
              NODE("a", "10.0.0.1", "100", "1", ""), POD("default", "p", "a", OLD("0"), CONTAINER("29")));
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)\n"
              "a     10.0.0.1   23/15                  23/15\n"
              "-------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "23/15 (153%)\n",
              NODE("a", "10.0.0.1", "15", "1", ""), POD("default", "p", "a", OLD("0"), CONTAINER("23")));
}

/* ---- one number out of a cluster of one node: who counts, and where ---- */

/* The line of node n, without its name and address. */
static void check_line(const char *const *objects, const char *expected) {
        _cleanup_(inspect_freep) Inspect *i = cluster(objects);
        _cleanup_buf_ Buf out = BUF_NULL, cells = BUF_NULL;
        Str rest, line;

        ASSERT_OK(inspect_print_summary(i, STR("n"), &out, NULL));
        rest = buf_str(&out);
        (void) str_split(&rest, '\n');
        line = str_split(&rest, '\n');
        for (int cell = 0; line.len > 0;) {
                Str s = str_split(&line, ' ');

                if (s.len > 0 && cell++ >= 2)
                        buf_appendf(&cells, "%s" STR_FMT, cells.len > 0 ? " " : "", STR_ARG(s));
        }
        ASSERT_STR(buf_str(&cells), str_from(expected));
}

#define N                                     NODE("n", "10.0.0.1", "30", "2", "")
#define CHECK_LINE(expected, ...)             check_line((const char *const[]){N, __VA_ARGS__, NULL}, expected)
#define CHECK_POD(expected, more, containers) CHECK_LINE(expected, POD("default", "p", "n", more, containers))

static void which_pods_count(void) {
        CHECK_LINE("0/15 0/15 0/30",
                   POD_("d", "p", "n", "Succeeded", OLD("0"), "\"containers\":[" CONTAINER("3") "]"));
        CHECK_LINE("0/15 0/15 0/30",
                   POD_("d", "p", "n", "Failed", OLD("0"), "\"containers\":[" CONTAINER("3") "]"));
        CHECK_LINE("3/15 0/15 3/30",
                   POD_("d", "p", "n", "Unknown", OLD("0"), "\"containers\":[" CONTAINER("3") "]"));
        CHECK_LINE("3/15 0/15 3/30",
                   POD_("d", "p", "n", "Pending", OLD("0"), "\"containers\":[" CONTAINER("3") "]"));
        CHECK_LINE("3/15 0/15 3/30",
                   POD_("d", "p", "n", "Running", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" OLD("0"),
                        "\"containers\":[" CONTAINER("3") "]"));
        CHECK_LINE("0/15 0/15 0/30", POD("d", "p", "", OLD("0"), CONTAINER("3")));
        CHECK_LINE("0/15 0/15 0/30", POD("d", "p", "other", OLD("0"), CONTAINER("3")));
        CHECK_LINE("0/15 0/15 0/30", POD("d", "p", "n", OLD("0"), "{\"name\":\"no-gpu\"}"));
}

static void current_annotation_names_the_cards(void) {
        CHECK_POD("0/15 3/15 3/30", ALLOCATION("{\\\"0\\\":{\\\"1\\\":5}}"), CONTAINER("3"));
        CHECK_POD("0/15 3/15 3/30",
                  ANNOTATED("\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"scheduler.framework.gpushare.allocation\":"
                            "\"{\\\"0\\\":{\\\"1\\\":5}}\""),
                  CONTAINER("3"));
        CHECK_POD("0/15 8/15 8/30", ALLOCATION("{\\\"0\\\":{\\\"1\\\":1},\\\"1\\\":{\\\"1\\\":7}}"),
                  CONTAINER("1") "," CONTAINER("7"));
        CHECK_POD("4/15 4/15 8/30", ALLOCATION("{\\\"0\\\":{\\\"0\\\":4,\\\"1\\\":4}}"), CONTAINER("8"));
        /* annotations do not count: a pod without limits holds nothing */
        CHECK_POD("0/15 0/15 0/30", ALLOCATION("{\\\"0\\\":{\\\"0\\\":2}}"), "{\"name\":\"no-limits\"}");
        CHECK_POD("0/15 0/15 0/30",
                  ANNOTATED("\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}\""),
                  "{\"name\":\"no-limits\"}");
        /* each key by itself */
        CHECK_POD(
                "0/15 3/15 3/30",
                ANNOTATED(
                        "\"aliquot.dev/init-allocation\":\"[]\",\"scheduler.framework.gpushare.allocation\":"
                        "\"{\\\"0\\\":{\\\"1\\\":3}}\""),
                CONTAINER("3"));
}

static void older_form_and_pending(void) {
        CHECK_POD("0/15 8/15 8/30", OLD("1"), CONTAINER("1") "," CONTAINER("7"));
        CHECK_POD("0/15 3/15 3/30",
                  ANNOTATED("\"ALIYUN_COM_GPU_MEM_IDX\":\"1\","
                            "\"scheduler.framework.gpushare.allocation\":\"{}\""),
                  CONTAINER("3"));
        CHECK_POD("0/15 3/15 3/30",
                  ANNOTATED("\"ALIYUN_COM_GPU_MEM_IDX\":\"1\","
                            "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":\""),
                  CONTAINER("3"));
        CHECK_POD("0/15 0/15 3 3/30", ALLOCATION("nonsense"), CONTAINER("3"));
        CHECK_POD("0/15 0/15 3 3/30", ALLOCATION("{\\\"0\\\":{\\\"0\\\":0}}"), CONTAINER("3"));
        CHECK_POD("0/15 0/15 3 3/30", OLD("-1"), CONTAINER("3"));
        CHECK_POD("0/15 0/15 3 3/30", OLD("4294967296"), CONTAINER("3"));
        CHECK_POD("0/15 0/15 8 8/30", "", CONTAINER("1") "," CONTAINER("7"));
}

static void a_card_the_node_does_not_have(void) {
        CHECK_POD("0/15 0/15 0/0 3/0 3/30", OLD("3"), CONTAINER("3"));
}

#define INIT(containers, list)                                                                               \
        POD_("default", "p", "n", "Running", OLD("0"),                                                       \
             "\"initContainers\":[" containers "],\"containers\":[" list "]")
#define SIDECAR(mem)                                                                                         \
        "{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"" mem "\"}}}"

static void init_containers_count_by_maximum(void) {
        CHECK_LINE("6/15 0/15 6/30", INIT(CONTAINER("6") "," CONTAINER("5"), CONTAINER("2")));
        CHECK_LINE("7/15 0/15 7/30", INIT(CONTAINER("6"), CONTAINER("3") "," CONTAINER("4")));
        CHECK_LINE("5/15 0/15 5/30", INIT(SIDECAR("3"), CONTAINER("2")));
        CHECK_LINE("9/15 0/15 9/30", INIT(SIDECAR("3") "," CONTAINER("6"), CONTAINER("2")));
        CHECK_LINE("6/15 0/15 6/30", INIT(CONTAINER("6") "," SIDECAR("3"), CONTAINER("2")));
}

static void init_grants_count_by_maximum(void) {
        CHECK_LINE(
                "2/15 6/15 8/30",
                POD_("default", "p", "n", "Running",
                     ANNOTATED("\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"1\\\":6}}\","
                               "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}\""),
                     "\"initContainers\":[" CONTAINER("6") "],\"containers\":[" CONTAINER("2") "]"));
        CHECK_LINE(
                "9/15 0/15 9/30",
                POD_("default", "p", "n", "Running",
                     ANNOTATED("\"aliquot.dev/"
                               "init-allocation\":\"{\\\"0\\\":{\\\"0\\\":3},\\\"1\\\":{\\\"0\\\":6}}\","
                               "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}\""),
                     "\"initContainers\":[" SIDECAR("3") "," CONTAINER("6") "],\"containers\":[" CONTAINER(
                             "2") "]"));
        CHECK_LINE("4/15 0/15 4/30",
                   POD_("default", "p", "n", "Running",
                        ANNOTATED("\"aliquot.dev/init-allocation\":\"{\\\"0\\\":{\\\"0\\\":4}}\""),
                        "\"initContainers\":[" CONTAINER("4") "],\"containers\":[{\"name\":\"cpu\"}]"));
}

static void an_object_that_comes_again_replaces_itself(void) {
        CHECK_LINE("0/20 4/20 4/40", POD("default", "p", "n", OLD("0"), CONTAINER("3")),
                   NODE("n", "10.0.0.1", "40", "2", ""), POD("default", "p", "n", OLD("1"), CONTAINER("4")));
}

/* ---- what nodes say of their cards ---- */

#define CARDS(list) ANNOTATED("\"aliquot.dev/cards\":\"" list "\"")

static void cards_differ(void) {
        check_line((const char *const[]){NODE("n", "1.1.1.1", "37", "2",
                                              CARDS("[{\\\"index\\\":0,\\\"units\\\":15},{\\\"index\\\":1,"
                                                    "\\\"units\\\":22}]")),
                                         POD("d", "p", "n", OLD("1"), CONTAINER("3")), NULL},
                   "0/15 3/22 3/37");
        /* a card in the middle that is not described */
        check_line((const char *const[]){NODE("n", "1.1.1.1", "37", "2",
                                              CARDS("[{\\\"index\\\":2,\\\"units\\\":15},{\\\"index\\\":0,"
                                                    "\\\"units\\\":22}]")),
                                         NULL},
                   "0/22 0/0 0/15 0/37");
        /* malformed: equal shares, rounded down */
        check_line((const char *const[]){NODE("n", "1.1.1.1", "37", "2", CARDS("[{]")), NULL},
                   "0/18 0/18 0/37");
        /* no count: one card */
        check_line((const char *const[]){NODE("n", "1.1.1.1", "37", "0", ""), NULL}, "0/37 0/37");
}

static void check_header(const char *const *objects, const char *needle) {
        _cleanup_(inspect_freep) Inspect *i = cluster(objects);
        _cleanup_buf_ Buf out = BUF_NULL;

        ASSERT_OK(inspect_print_summary(i, STR(""), &out, NULL));
        ASSERT_CONTAINS(out.data, needle);
}

static void unit_text(void) {
        check_header((const char *const[]){NODE("n", "1.1.1.1", "200", "2", ""), NULL}, "GPU Memory(GiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "202", "2", ""), NULL}, "GPU Memory(MiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "282", "2", UNIT("GiB")), NULL},
                     "GPU Memory(GiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "126", "1", UNIT("128MiB")), NULL},
                     "GPU Memory(128MiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "15", "1", UNIT("furlongs")), NULL},
                     "GPU Memory(GiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "15", "1", UNIT("0MiB")), NULL},
                     "GPU Memory(GiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "15", "1", UNIT("4194304GiB")), NULL},
                     "GPU Memory(GiB)\n");
        /* the same unit by two names does not differ */
        check_header((const char *const[]){NODE("m", "1.1.1.1", "15", "1", UNIT("1024MiB")),
                                           NODE("n", "1.1.1.1", "15", "1", UNIT("GiB")), NULL},
                     "GPU Memory(1024MiB)\n");
}

#define UNITS(in_force, asked)                                                                               \
        ANNOTATED("\"aliquot.dev/gpu-mem-unit-in-force\":\"" in_force                                        \
                  "\",\"aliquot.dev/gpu-mem-unit\":\"" asked "\"")

/* While a change of the unit waits the numbers are still in the old one. */
static void the_unit_in_force_is_shown(void) {
        check_header((const char *const[]){NODE("n", "1.1.1.1", "15", "1", UNITS("GiB", "128MiB")), NULL},
                     "GPU Memory(GiB)\n");
        check_header((const char *const[]){NODE("n", "1.1.1.1", "126", "1", UNITS("128MiB", "GiB")), NULL},
                     "GPU Memory(128MiB)\n");
        check_header(
                (const char *const[]){NODE("n", "1.1.1.1", "126", "1", UNITS("furlongs", "128MiB")), NULL},
                "GPU Memory(128MiB)\n");
        check_header(
                (const char *const[]){NODE("n", "1.1.1.1", "126", "1", UNITS("furlongs", "miles")), NULL},
                "GPU Memory(MiB)\n");
}

static void units_that_differ_are_summed_in_mib(void) {
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  UNIT    GPU0(Allocated/Total)  GPU Memory(MiB)\n"
              "a     10.0.0.1   GiB     3/15                   3072/15360\n"
              "b     10.0.0.2   128MiB  16/126                 2048/16128\n"
              "---------------------------------------------------\n"
              "Memory units differ between nodes: cards are counted in the node's UNIT, sums in MiB.\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "5120/31488 (16%)\n",
              NODE("a", "10.0.0.1", "15", "1", ""), NODE("b", "10.0.0.2", "126", "1", UNIT("128MiB")),
              POD("default", "p", "a", OLD("0"), CONTAINER("3")),
              POD("default", "q", "b", OLD("0"), CONTAINER("16")));
        CHECK(inspect_print_details,
              "\n"
              "NAME:       a\n"
              "IPADDRESS:  10.0.0.1\n"
              "UNIT:       GiB\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)\n"
              "Allocated :  0 (0%)\n"
              "Total :      15\n"
              "----------\n"
              "\n"
              "NAME:       b\n"
              "IPADDRESS:  10.0.0.2\n"
              "UNIT:       128MiB\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)\n"
              "Allocated :  0 (0%)\n"
              "Total :      126\n"
              "----------\n"
              "\n"
              "Memory units differ between nodes: each is counted in its UNIT, sums in MiB.\n"
              "Allocated/Total GPU Memory In Cluster:  0/31488 (0%)\n",
              NODE("a", "10.0.0.1", "15", "1", ""), NODE("b", "10.0.0.2", "126", "1", UNIT("128MiB")));
}

/* ---- compute ---- */

#define CORE_POD                                                                                             \
        POD("default", "p", "c",                                                                             \
            ANNOTATED("\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":{\\\"1\\\":2}}\","           \
                      "\"gpushare.alibabacloud.com/core-percentage\":\"{\\\"0\\\":{\\\"1\\\":30}}\""),       \
            CORE_CONTAINER("2", "30"))

static void compute_adds_columns(void) {
        CHECK(inspect_print_summary,
              "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU1(Allocated/Total)  GPU Memory(GiB)  GPU0 Core(%)  "
              "GPU1 Core(%)  GPU Core(%)\n"
              "c     10.0.0.1   0/15                   2/15                   2/30             0/100         "
              "30/100        30/200\n"
              "m     10.0.0.2   0/15                   0/0                    0/15             0/0           "
              "0/0           0/0\n"
              "------------------------------------------------------------------\n"
              "Allocated/Total GPU Memory In Cluster:\n"
              "2/45 (4%)\n"
              "Allocated/Total GPU Core In Cluster:\n"
              "30/200 (15%)\n",
              CORE_NODE("c", "10.0.0.1", "30", "2", "200"), NODE("m", "10.0.0.2", "15", "1", ""), CORE_POD);
}

static void compute_in_details(void) {
        CHECK(inspect_print_details,
              "\n"
              "NAME:       c\n"
              "IPADDRESS:  10.0.0.1\n"
              "\n"
              "NAME              NAMESPACE  GPU0(Allocated)  GPU1(Allocated)  Pending(Allocated)  GPU0 "
              "Core(%)  "
              "GPU1 Core(%)  Pending Core(%)\n"
              "old               default    3                0                0                   20         "
              "   "
              "0             0\n"
              "p                 default    0                2                0                   0          "
              "   "
              "30            0\n"
              "w                 default    0                0                4                   0          "
              "   "
              "0             25\n"
              "Allocated :       9 (30%)\n"
              "Total :           30\n"
              "Core Allocated :  75 (37%)\n"
              "Core Total :      200\n"
              "------------------------------------------------------------------------------------\n"
              "\n"
              "Allocated/Total GPU Memory In Cluster:  9/30 (30%)\n"
              "Allocated/Total GPU Core In Cluster:  75/200 (37%)\n",
              CORE_NODE("c", "10.0.0.1", "30", "2", "200"), CORE_POD,
              POD("default", "old", "c", OLD("0"), CORE_CONTAINER("3", "20")),
              POD("default", "w", "c", "", CORE_CONTAINER("4", "25")));
}

static void compute_without_its_annotation_follows_the_memory(void) {
        CHECK(inspect_print_json,
              "{\"nodes\":[{\"name\":\"c\",\"totalGPU\":30,\"usedGPU\":5,\"totalCore\":200,\"usedCore\":55,"
              "\"devs\":["
              "{\"id\":0,\"totalGPU\":15,\"usedGPU\":0,\"totalCore\":100,\"usedCore\":0,\"pods\":[]},"
              "{\"id\":1,\"totalGPU\":15,\"usedGPU\":5,\"totalCore\":100,\"usedCore\":55,\"pods\":["
              "{\"name\":\"p\",\"namespace\":\"default\",\"usedGPU\":5,\"usedCore\":55}]}]}]}\n",
              CORE_NODE("c", "10.0.0.1", "30", "2", "200"),
              POD("default", "p", "c", ALLOCATION("{\\\"0\\\":{\\\"1\\\":2},\\\"1\\\":{\\\"1\\\":3}}"),
                  CORE_CONTAINER("2", "30") "," CORE_CONTAINER("3", "25")));
}

/* ---- JSON ---- */

static void json_of_the_extender(void) {
        CHECK(inspect_print_json,
              "{\"nodes\":[{\"name\":\"a\",\"totalGPU\":16,\"usedGPU\":6,\"devs\":["
              "{\"id\":0,\"totalGPU\":8,\"usedGPU\":2,\"pods\":[{\"name\":\"p\",\"namespace\":\"ns\","
              "\"usedGPU\":2}]},"
              "{\"id\":1,\"totalGPU\":8,\"usedGPU\":4,\"pods\":[{\"name\":\"p\",\"namespace\":\"ns\","
              "\"usedGPU\":4}]}"
              "]}]}\n",
              NODE("a", "10.0.0.1", "16", "2", ""),
              POD("ns", "p", "a", ALLOCATION("{\\\"0\\\":{\\\"0\\\":2},\\\"1\\\":{\\\"1\\\":4}}"),
                  CONTAINER("2") "," CONTAINER("4")));
        CHECK(inspect_print_json,
              "{\"nodes\":[{\"name\":\"a\",\"totalGPU\":8,\"usedGPU\":3,"
              "\"pending\":{\"usedGPU\":3,\"pods\":[{\"name\":\"p\",\"namespace\":\"ns\",\"usedGPU\":3}]},"
              "\"devs\":[{\"id\":0,\"totalGPU\":8,\"usedGPU\":0,\"pods\":[]}]}]}\n",
              NODE("a", "10.0.0.1", "8", "1", ""), POD("ns", "p", "a", "", CONTAINER("3")));
}

/* ---- annotations that differ from the limits ---- */

#define LYING                                                                                                \
        NODE("a", "10.0.0.1", "15", "1", ""),                                                                \
                POD("ns", "less", "a", ALLOCATION("{\\\"0\\\":{\\\"0\\\":2}}"), CONTAINER("5")),             \
                POD("ns", "dos", "a", ALLOCATION("{\\\"0\\\":{\\\"0\\\":15}}"), "{\"name\":\"x\"}"),         \
                POD("ns", "honest", "a", ALLOCATION("{\\\"0\\\":{\\\"0\\\":3}}"), CONTAINER("3"))

static void differences_are_named_under_the_table(void) {
        const char *const objects[] = {LYING, NULL};
        _cleanup_(inspect_freep) Inspect *i = cluster(objects);
        size_t n = 0;

        CHECK(inspect_print_details,
              "\n"
              "NAME:       a\n"
              "IPADDRESS:  10.0.0.1\n"
              "\n"
              "NAME         NAMESPACE  GPU0(Allocated)\n"
              "honest       ns         3\n"
              "less         ns         5\n"
              "Allocated :  8 (53%)\n"
              "Total :      15\n"
              "----------------------------------\n"
              "ns/dos: annotation scheduler.framework.gpushare.allocation gives container 0 (\"x\") 15 of "
              "aliyun.com/gpu-mem, its limit is 0\n"
              "ns/less: annotation scheduler.framework.gpushare.allocation gives container 0 (\"\") 2 of "
              "aliyun.com/gpu-mem, its limit is 5\n"
              "\n"
              "Allocated/Total GPU Memory In Cluster:  8/15 (53%)\n",
              LYING);
        CHECK(inspect_print_json,
              "{\"nodes\":[{\"name\":\"a\",\"totalGPU\":15,\"usedGPU\":8,\"devs\":[{\"id\":0,\"totalGPU\":15,"
              "\"usedGPU\":8,\"pods\":[{\"name\":\"honest\",\"namespace\":\"ns\",\"usedGPU\":3},"
              "{\"name\":\"less\",\"namespace\":\"ns\",\"usedGPU\":5}]}],\"differences\":["
              "{\"name\":\"dos\",\"namespace\":\"ns\",\"message\":\"annotation scheduler.framework.gpushare."
              "allocation gives container 0 (\\\"x\\\") 15 of aliyun.com/gpu-mem, its limit is 0\"},"
              "{\"name\":\"less\",\"namespace\":\"ns\",\"message\":\"annotation scheduler.framework.gpushare."
              "allocation gives container 0 (\\\"\\\") 2 of aliyun.com/gpu-mem, its limit is 5\"}]}]}\n",
              LYING);
        ASSERT_OK(inspect_count_differences(i, STR(""), &n, NULL));
        ASSERT_INT(n, 2);
        ASSERT_INT(inspect_count_differences(i, STR("b"), &n, NULL), INSPECT_E_NO_NODE);
}

/* ---- slices of deleted pods ---- */

#define HELD(entries)                                                                                        \
        NODE("n", "10.0.0.1", "30", "2", ANNOTATED("\"aliquot.dev/held-slices\":\"[" entries "]\""))
#define ENTRY(pod, uid, card, mem)                                                                           \
        "{\\\"pod\\\":\\\"" pod "\\\",\\\"uid\\\":\\\"" uid "\\\",\\\"allocation\\\":{\\\"0\\\":{\\\"" card  \
        "\\\":" mem "}}}"
#define WITH_UID(uid, idx) ",\"uid\":\"" uid "\"" OLD(idx)

/* They count as in the ledger, and not beside a grant of the same pod. */
static void slices_of_deleted_pods_count(void) {
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10")), NULL}, "10/15 0/15 10/30");
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10") "," ENTRY("d/gone", "u2", "1",
                                                                                         "2")),
                                         POD("d", "gone", "n", WITH_UID("u3", "1"), CONTAINER("3")), NULL},
                   "10/15 5/15 15/30");
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10")),
                                         POD("d", "gone", "n", WITH_UID("u1", "0"), CONTAINER("10")), NULL},
                   "10/15 0/15 10/30");
        /* the pod of this UID holds nothing, or is elsewhere */
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10")),
                                         POD_("d", "gone", "n", "Succeeded", WITH_UID("u1", "0"),
                                              "\"containers\":[" CONTAINER("10") "]"),
                                         NULL},
                   "10/15 0/15 10/30");
        check_line((const char *const[]){POD("d", "gone", "m", WITH_UID("u1", "0"), CONTAINER("10")),
                                         HELD(ENTRY("d/gone", "u1", "0", "10")), NULL},
                   "10/15 0/15 10/30");
        /* a later description of the node */
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10")), N, NULL}, "0/15 0/15 0/30");
        check_line((const char *const[]){N, HELD(ENTRY("d/gone", "u1", "1", "1")), NULL}, "0/15 1/15 1/30");
        check_line((const char *const[]){HELD(ENTRY("d/gone", "u1", "0", "10")),
                                         HELD(ENTRY("d/gone", "u1", "0", "4")), NULL},
                   "4/15 0/15 4/30");
}

static void deleted_pods_have_rows(void) {
        CHECK(inspect_print_details,
              "\n"
              "NAME:       n\n"
              "IPADDRESS:  10.0.0.1\n"
              "\n"
              "NAME            NAMESPACE  GPU0(Allocated)  GPU1(Allocated)\n"
              "gone (deleted)  d          10               0\n"
              "Allocated :     10 (33%)\n"
              "Total :         30\n"
              "---------------------------------\n"
              "\n"
              "Allocated/Total GPU Memory In Cluster:  10/30 (33%)\n",
              HELD(ENTRY("d/gone", "u1", "0", "10")));
        CHECK(inspect_print_json,
              "{\"nodes\":[{\"name\":\"n\",\"totalGPU\":30,\"usedGPU\":10,\"devs\":[{\"id\":0,\"totalGPU\":"
              "15,"
              "\"usedGPU\":10,\"pods\":[{\"name\":\"gone\",\"namespace\":\"d\",\"usedGPU\":10,\"deleted\":"
              "true}]},"
              "{\"id\":1,\"totalGPU\":15,\"usedGPU\":0,\"pods\":[]}]}]}\n",
              HELD(ENTRY("d/gone", "u1", "0", "10")));
}

static void a_malformed_list_of_held_slices_counts_nothing(void) {
        _cleanup_(inspect_freep) Inspect *i = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(inspect_new(&i));
        ASSERT_OK(inspect_add(i, STR(""), STR(HELD(ENTRY("d/gone", "u1", "0", "10") ",{}")), &fault));
        ASSERT_CONTAINS(fault.text, "aliquot.dev/held-slices: an entry has no uid");
        ASSERT_OK(inspect_print_json(i, STR(""), &out, NULL));
        ASSERT_CONTAINS(out.data, "\"usedGPU\":0");
}

static void held_slices_of_a_namespace(void) {
        _cleanup_(inspect_freep) Inspect *i = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;

        ASSERT_OK(inspect_new(&i));
        inspect_set_namespace(i, STR("d"));
        ASSERT_OK(inspect_add(i, STR(""),
                              STR(HELD(ENTRY("d/gone", "u1", "0", "3") "," ENTRY("e/gone", "u2", "0", "4"))),
                              NULL));
        ASSERT_OK(inspect_print_summary(i, STR(""), &out, NULL));
        ASSERT_CONTAINS(out.data, "3/15");
}

/* ---- bad input ---- */

static void refuse(const char *object, const char *needle) {
        _cleanup_(inspect_freep) Inspect *i = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(inspect_new(&i));
        ASSERT_INT(inspect_add(i, STR(""), str_from(object), &fault), INSPECT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, needle);
        ASSERT_OK(inspect_print_json(i, STR(""), &out, NULL));
        ASSERT_STR(buf_str(&out), STR("{\"nodes\":[]}\n"));
}

static void malformed_objects_are_left_out(void) {
        refuse(NODE("n", "1.1.1.1", "-3", "1", ""), "node n: aliyun.com/gpu-mem is \"-3\"");
        refuse(NODE("n", "1.1.1.1", "4294967296", "1", ""), "4294967296");
        refuse(NODE("n", "1.1.1.1", "15", "257", ""), "aliyun.com/gpu-count is 257, must be at most 256");
        refuse(NODE("n", "1.1.1.1", "15", "1.5", ""), "gpu-count");
        refuse("{\"kind\":\"Node\",\"metadata\":[]}", "metadata");
        refuse("{\"kind\":\"Pod\",\"spec\":{\"containers\":7}}", "spec.containers");
        refuse("{\"metadata\":{}}", "without kind");
        refuse("[]", "");
        refuse("{\"kind\":\"Pod\"", "");
}

static void says_what_it_passes_over(void) {
        _cleanup_(inspect_freep) Inspect *i = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(inspect_new(&i));
        ASSERT_OK(inspect_add(i, STR(""), STR(POD("ns", "p", "n", ALLOCATION("{"), CONTAINER("3"))), &fault));
        ASSERT_CONTAINS(fault.text, "pod ns/p: annotation scheduler.framework.gpushare.allocation: ");
        fault = FAULT_NULL;
        ASSERT_OK(inspect_add(i, STR(""), STR(POD("ns", "p", "n", OLD("x"), CONTAINER("3"))), &fault));
        ASSERT_CONTAINS(fault.text, "ALIYUN_COM_GPU_MEM_IDX is \"x\"");
        fault = FAULT_NULL;
        ASSERT_OK(inspect_add(i, STR(""), STR(POD("ns", "p", "n", "", CONTAINER("1.5"))), &fault));
        ASSERT_CONTAINS(fault.text, "aliyun.com/gpu-mem is \"1.5\"");
        fault = FAULT_NULL;
        ASSERT_OK(inspect_add(i, STR(""), STR(NODE("n", "1.1.1.1", "3", "1", UNIT("x"))), &fault));
        ASSERT_CONTAINS(fault.text, "node n: annotation aliquot.dev/gpu-mem-unit is \"x\"");
}

static void typed_lists_say_the_kind(void) {
        _cleanup_(inspect_freep) Inspect *i = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;

        ASSERT_OK(inspect_new(&i));
        ASSERT_OK(inspect_add(
                i, STR("Node"),
                STR("{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":"
                    "\"2k\",\"aliyun.com/gpu-count\":\"1\"}}}"),
                NULL));
        ASSERT_OK(inspect_add(i, STR("Service"), STR("{}"), NULL));
        ASSERT_OK(inspect_print_json(i, STR(""), &out, NULL));
        ASSERT_CONTAINS(out.data, "\"totalGPU\":2000");
}

int main(void) {
        return TEST_MAIN(TEST(summary_of_one_card), TEST(summary_of_two_empty_cards),
                         TEST(details_of_two_pods), TEST(cards_a_node_lacks_and_pending),
                         TEST(details_of_several_nodes), TEST(one_node_only), TEST(no_nodes_at_all),
                         TEST(percent_is_truncated_and_not_capped), TEST(which_pods_count),
                         TEST(current_annotation_names_the_cards), TEST(older_form_and_pending),
                         TEST(a_card_the_node_does_not_have), TEST(init_containers_count_by_maximum),
                         TEST(init_grants_count_by_maximum), TEST(an_object_that_comes_again_replaces_itself),
                         TEST(cards_differ), TEST(unit_text), TEST(the_unit_in_force_is_shown),
                         TEST(differences_are_named_under_the_table),
                         TEST(units_that_differ_are_summed_in_mib), TEST(compute_adds_columns),
                         TEST(compute_in_details), TEST(compute_without_its_annotation_follows_the_memory),
                         TEST(json_of_the_extender), TEST(slices_of_deleted_pods_count),
                         TEST(deleted_pods_have_rows), TEST(a_malformed_list_of_held_slices_counts_nothing),
                         TEST(held_slices_of_a_namespace), TEST(malformed_objects_are_left_out),
                         TEST(says_what_it_passes_over), TEST(typed_lists_say_the_kind));
}
