/* SPDX-License-Identifier: Apache-2.0 */

/* The answers of the extender, without a socket. They are compared byte for byte where
 * kube-scheduler or people rely on them. */

#include "fixture.h"
#include "scheduler/extender.h"

typedef struct Fixture {
        View *view;
        Metrics metrics;
        Extender extender;
        Buf out;
        const char *type, *allow;
} Fixture;

static Fixture setup(void) {
        Fixture f = {.out = BUF_NULL};

        ASSERT_OK(view_new(&f.view));
        view_list_begin(f.view, VIEW_NODES);
        feed(f.view, VIEW_NODES, REFLECTOR_LISTED, node_json("n1", "cgpu", 30, 2, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_LISTED, node_json("n2", "cgpu", 15, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_LISTED, node_json("n3", "core_mem", 60, 4, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_LISTED, node_json("cpu", "default", 0, 0, ""));
        view_list_end(f.view, VIEW_NODES);
        view_list_begin(f.view, VIEW_PODS);
        feed(f.view, VIEW_PODS, REFLECTOR_LISTED,
             pod_json("a", .mem = "12", .node = "n2", .allocation = "{\\\"0\\\":{\\\"0\\\":12}}"));
        view_list_end(f.view, VIEW_PODS);
        return f;
}

static void teardown(Fixture *f) {
        buf_done(&f->out);
        view_free(f->view);
}

static unsigned ask(Fixture *f, const char *method, const char *path, const char *body) {
        HttpRequest request = {
                .method = method, .path = path, .content_type = "application/json", .body = str_from(body)};
        char *before = sums_of(f->view->ledger), *after;
        unsigned status;

        f->extender.view = f->view;
        f->extender.metrics = &f->metrics;
        buf_clear(&f->out);
        status = extender_answer(&f->extender, &request, &f->out, &f->type, &f->allow);
        after = sums_of(f->view->ledger);
        ASSERT_TEXT(before, after); /* whatever the request was */
        free(before);
        free(after);
        return status;
}

static unsigned post(Fixture *f, const char *verb, const char *body) {
        char path[64];

        (void) snprintf(path, sizeof path, "/gpushare-scheduler/%s", verb);
        return ask(f, "POST", path, body);
}

static const char *args(const char *pod, const char *members) {
        static char text[8192];

        (void) snprintf(text, sizeof text, "{\"Pod\":%s,%s}", pod, members);
        return text;
}

/* ---- filter ---- */

static void filters_by_name(void) {
        Fixture f = setup();

        ASSERT_INT(post(&f, "filter",
                        args(pod_json("x", .mem = "4"),
                             "\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\",\"n3\",\"cpu\",\"nn\"]")),
                   200);
        ASSERT_TEXT(f.out.data,
                    "{\"Nodes\":null,\"NodeNames\":[\"n1\",\"n3\"],\"FailedNodes\":{"
                    "\"n2\":\"no card has 4 of gpu-mem free: gpu0 3 of 15\","
                    "\"cpu\":\"the node's mode is default, gpu-mem needs share, cgpu or core_mem\","
                    "\"nn\":\"the node is not known as a GPU node\"},\"FailedAndUnresolvableNodes\":{"
                    "\"cpu\":\"the node's mode is default, gpu-mem needs share, cgpu or core_mem\","
                    "\"nn\":\"the node is not known as a GPU node\"},\"Error\":\"\"}");
        ASSERT_TEXT(f.type, "application/json");
        ASSERT_INT(f.metrics.refusals[REFUSAL_NO_ROOM], 1);
        ASSERT_INT(f.metrics.refusals[REFUSAL_NODE_UNKNOWN], 1);
        teardown(&f);
}

static void filters_whole_nodes(void) {
        Fixture f = setup();

        ASSERT_INT(
                post(&f, "filter",
                     args(pod_json("x", .mem = "4"),
                          "\"Nodes\":{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"n1\",\"labels\":{"
                          "\"a\":\"b\"}}}, "
                          "{\"metadata\":{\"name\":\"n2\"}},{\"spec\":{},\"metadata\":{\"name\":\"n3\"}}]}")),
                200);
        ASSERT_TEXT(f.out.data, "{\"NodeNames\":null,\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\","
                                "\"labels\":{\"a\":\"b\"}}},"
                                "{\"spec\":{},\"metadata\":{\"name\":\"n3\"}}]},\"FailedNodes\":{"
                                "\"n2\":\"no card has 4 of gpu-mem free: gpu0 3 of 15\"},"
                                "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        teardown(&f);
}

static void filter_takes_any_case_and_order(void) {
        Fixture f = setup();
        char body[8192];

        (void) snprintf(body, sizeof body,
                        "{ \"nodenames\" : [ \"n1\" , \"n\\u0033\" ],\"extra\":[{}],\"pod\":%s}",
                        pod_json("x", .mem = "4"));
        ASSERT_INT(post(&f, "filter", body), 200);
        ASSERT_CONTAINS(f.out.data, "\"NodeNames\":[\"n1\",\"n\\u0033\"]");
        ASSERT_INT(post(&f, "filter", args(pod_json("x", .mem = "4"), "\"NodeNames\":[]")), 200);
        ASSERT_TEXT(f.out.data, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{},"
                                "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}");
        teardown(&f);
}

static void filter_lets_other_pods_pass(void) {
        Fixture f = setup();

        ASSERT_INT(post(&f, "filter", args(pod_json("web"), "\"NodeNames\":[\"n1\",\"cpu\",\"unknown\"]")),
                   200);
        ASSERT_CONTAINS(f.out.data, "\"NodeNames\":[\"n1\",\"cpu\",\"unknown\"],\"FailedNodes\":{}");
        teardown(&f);
}

static void filter_refuses_what_can_never_be(void) {
        Fixture f = setup();

        ASSERT_INT(post(&f, "filter",
                        args(pod_json("x", .mem = "2", .core = "33"), "\"NodeNames\":[\"n1\",\"n3\"]")),
                   200);
        ASSERT_TEXT(f.out.data, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{"
                                "\"n1\":\"container \\\"main\\\": aliyun.com/gpu-core.percentage is 33, must "
                                "be a multiple of 5 from 5 to 100\","
                                "\"n3\":\"container \\\"main\\\": aliyun.com/gpu-core.percentage is 33, must "
                                "be a multiple of 5 from 5 to 100\"},"
                                "\"FailedAndUnresolvableNodes\":{"
                                "\"n1\":\"container \\\"main\\\": aliyun.com/gpu-core.percentage is 33, must "
                                "be a multiple of 5 from 5 to 100\","
                                "\"n3\":\"container \\\"main\\\": aliyun.com/gpu-core.percentage is 33, must "
                                "be a multiple of 5 from 5 to 100\"},"
                                "\"Error\":\"\"}");
        teardown(&f);
}

static void malformed_bodies_are_answered_with_the_path(void) {
        static const struct {
                const char *body, *expected;
        } cases[] = {
                {"", "at byte 0"},
                {"[]", "ExtenderArgs must be an object"},
                {"{}", "Pod is missing"},
                {"{\"Pod\":{}}", "NodeNames and Nodes are both missing"},
                {"{\"Pod\":{},\"NodeNames\":null,\"Nodes\":null}", "NodeNames and Nodes are both missing"},
                {"{\"Pod\":null,\"NodeNames\":[]}", "Pod is missing"},
                {"{\"Pod\":{\"spec\":{\"containers\":7}},\"NodeNames\":[]}",
                 "Pod: pod: spec.containers: not an array"},
                {"{\"Pod\":{},\"NodeNames\":{}}", "NodeNames: not an array"},
                {"{\"Pod\":{},\"NodeNames\":[\"n1\",7]}", "NodeNames[1]: not a string"},
                {"{\"Pod\":{},\"Nodes\":{\"items\":[7]}}", "Nodes: items[0]: not an object"},
                {"{\"Pod\":{},\"NodeNames\":[\"n1\"", "the text ends"},
                {"{\"Pod\":{},\"NodeNames\":[]}x", "something follows"},
                {"{\"Pod\":{},\"NodeNames\":[],\"nodeNames\":[]}", "NodeNames stand twice"},
        };
        Fixture f = setup();

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ASSERT_INT(post(&f, "filter", cases[i].body), 400);
                ASSERT_CONTAINS(f.out.data, cases[i].expected);
                ASSERT_TEXT(f.type, "text/plain; charset=utf-8");
                ASSERT_INT(post(&f, "prioritize", cases[i].body), 400);
                ASSERT_CONTAINS(f.out.data, cases[i].expected);
        }
        ASSERT_INT(f.metrics.errors[METRICS_HANDLER_FILTER], ELEMENTSOF(cases));
        teardown(&f);
}

/* ---- prioritize ---- */

static void the_best_get_ten_to_one(void) {
        Fixture f = setup();

        /* n2 has a card in use with room: whole cards stay whole. n1 and n3 have untouched cards;
         * n1 is smaller. */
        ASSERT_INT(
                post(&f, "prioritize",
                     args(pod_json("x", .mem = "3"), "\"NodeNames\":[\"n3\",\"nn\",\"n2\",\"n1\",\"cpu\"]")),
                200);
        ASSERT_TEXT(
                f.out.data,
                "[{\"Host\":\"n3\",\"Score\":8},{\"Host\":\"nn\",\"Score\":0},{\"Host\":\"n2\",\"Score\":10},"
                "{\"Host\":\"n1\",\"Score\":9},{\"Host\":\"cpu\",\"Score\":0}]");
        /* No room on n2 any more, and no points. */
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = "4"), "\"NodeNames\":[\"n2\",\"n1\"]")),
                   200);
        ASSERT_TEXT(f.out.data, "[{\"Host\":\"n2\",\"Score\":0},{\"Host\":\"n1\",\"Score\":10}]");
        ASSERT_INT(
                post(&f, "prioritize",
                     args(pod_json("web"), "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n\\\"1\"}}]}")),
                200);
        ASSERT_TEXT(f.out.data, "[{\"Host\":\"n\\\"1\",\"Score\":0}]");
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = "3"), "\"NodeNames\":[]")), 200);
        ASSERT_TEXT(f.out.data, "[]");
        teardown(&f);
}

static void ties_go_by_name_and_all_others_get_nothing(void) {
        Fixture f = setup();
        _cleanup_buf_ Buf names = BUF_NULL;
        char expected[64];

        for (unsigned i = 0; i < 15; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "e%02u", 14 - i);
                feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json(name, "cgpu", 15, 1, ""));
                buf_appendf(&names, "%s\"%s\"", i > 0 ? "," : "\"NodeNames\":[", name);
        }
        buf_append_char(&names, ']');
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = "3"), names.data)), 200);
        for (unsigned i = 0; i < 15; i++) {
                (void) snprintf(expected, sizeof expected, "{\"Host\":\"e%02u\",\"Score\":%u}", i,
                                i < 10 ? 10 - i : 0);
                ASSERT_CONTAINS(f.out.data, expected);
        }
        teardown(&f);
}

/* ---- preempt ---- */

static void preempt_keeps_nodes_that_would_fit(void) {
        Fixture f = setup();

        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "12", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":12}}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("c", .mem = "14", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":14}}"));
        /* On n2 the victim frees enough. On n1 the same one, named twice, frees 12 and not 24. Pods
         * without a grant free nothing. */
        ASSERT_INT(
                post(&f, "preempt",
                     args(pod_json("x", .mem = "15"),
                          "\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{"
                          "\"n2\":{\"Pods\":[{\"UID\":\"uid-a\"}],\"NumPDBViolations\":1},"
                          "\"n1\":{\"Pods\":[{\"UID\":\"uid-a\"},{\"UID\":\"who\"}],\"NumPDBViolations\":0},"
                          "\"gone\":{\"Pods\":[]}}")),
                200);
        ASSERT_TEXT(f.out.data, "{\"NodeNameToMetaVictims\":{\"n2\":{\"Pods\":[{\"UID\":\"uid-a\"}],"
                                "\"NumPDBViolations\":1}}}");
        ASSERT_INT(post(&f, "preempt",
                        args(pod_json("x", .mem = "15"),
                             "\"NodeNameToVictims\":{\"n1\":{\"pods\":[{\"metadata\":{\"uid\":\"uid-b\","
                             "\"name\":\"b\"},\"spec\":{}},"
                             "{\"metadata\":{\"uid\":\"uid-b\"}}],\"numPDBViolations\":0},\"n2\":{\"Pods\":"
                             "null}}")),
                   200);
        ASSERT_TEXT(f.out.data, "{\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[{\"UID\":\"uid-b\"}],"
                                "\"NumPDBViolations\":0}}}");
        ASSERT_INT(
                post(&f, "preempt",
                     args(pod_json("x", .mem = "1", .core = "7"), "\"NodeNameToMetaVictims\":{\"n1\":{}}")),
                200);
        ASSERT_TEXT(f.out.data, "{\"NodeNameToMetaVictims\":{}}");
        ASSERT_INT(post(&f, "preempt", args(pod_json("web"), "\"NodeNameToMetaVictims\":{\"cpu\":{}}")), 200);
        ASSERT_CONTAINS(f.out.data, "\"cpu\":{");
        /* A name with an escape is the same name. */
        ASSERT_INT(post(&f, "preempt",
                        args(pod_json("x", .mem = "1"), "\"NodeNameToMetaVictims\":{\"\\u006e1\":{}}")),
                   200);
        ASSERT_INT(post(&f, "preempt", args(pod_json("web"), "\"NodeNameToMetaVictims\":{\"a\\\"b\":{}}")),
                   200);
        ASSERT_CONTAINS(f.out.data, "\"a\\\"b\":{");
        ASSERT_INT(post(&f, "preempt",
                        args(pod_json("x", .mem = "1"), "\"NodeNameToMetaVictims\":{\"n1\":{\"Pods\":[7]}}")),
                   400);
        ASSERT_CONTAINS(f.out.data, "victims: n1.Pods[0]: not an object");
        teardown(&f);
}

/* ---- the rest ---- */

static void inspects(void) {
        Fixture f = setup();

        feed(f.view, VIEW_PODS, REFLECTOR_ADDED, pod_json("p", .mem = "2", .node = "n1"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("k", .mem = "2", .core = "30", .node = "n3",
                      .allocation = "{\\\"0\\\":{\\\"1\\\":2}}"));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/inspect", ""), 200);
        ASSERT_TEXT(
                f.out.data,
                "{\"nodes\":["
                "{\"name\":\"n1\",\"totalGPU\":30,\"usedGPU\":2,\"pending\":{\"usedGPU\":2,\"pods\":["
                "{\"name\":\"p\",\"namespace\":\"default\",\"usedGPU\":2}]},\"devs\":["
                "{\"id\":0,\"totalGPU\":15,\"usedGPU\":0,\"pods\":[]},{\"id\":1,\"totalGPU\":15,\"usedGPU\":"
                "0,\"pods\":[]}]},"
                "{\"name\":\"n2\",\"totalGPU\":15,\"usedGPU\":12,\"devs\":[{\"id\":0,\"totalGPU\":15,"
                "\"usedGPU\":12,\"pods\":["
                "{\"name\":\"a\",\"namespace\":\"default\",\"usedGPU\":12}]}]},"
                "{\"name\":\"n3\",\"totalGPU\":60,\"usedGPU\":2,\"totalCore\":400,\"usedCore\":30,\"devs\":["
                "{\"id\":0,\"totalGPU\":15,\"usedGPU\":0,\"totalCore\":100,\"usedCore\":0,\"pods\":[]},"
                "{\"id\":1,\"totalGPU\":15,\"usedGPU\":2,\"totalCore\":100,\"usedCore\":30,\"pods\":["
                "{\"name\":\"k\",\"namespace\":\"default\",\"usedGPU\":2,\"usedCore\":30}]},"
                "{\"id\":2,\"totalGPU\":15,\"usedGPU\":0,\"totalCore\":100,\"usedCore\":0,\"pods\":[]},"
                "{\"id\":3,\"totalGPU\":15,\"usedGPU\":0,\"totalCore\":100,\"usedCore\":0,\"pods\":[]}]}]}");
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/inspect/n2", ""), 200);
        ASSERT_CONTAINS(f.out.data, "{\"nodes\":[{\"name\":\"n2\"");
        ASSERT_FALSE(strstr(f.out.data, "\"n1\""));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/inspect/cpu", ""), 404);
        ASSERT_CONTAINS(f.out.data, "node \"cpu\" shares no GPU");
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/inspect/nowhere", ""), 404);
        teardown(&f);
}

static void routes(void) {
        Fixture f = setup();

        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/version", ""), 200);
        ASSERT_TEXT(f.out.data, "{\"version\":\"" ALIQUOT_VERSION "\"}");
        ASSERT_INT(ask(&f, "GET", "/healthz", ""), 200);
        ASSERT_INT(ask(&f, "GET", "/readyz", ""), 200);
        ASSERT_INT(ask(&f, "GET", "/filter", ""), 404);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler", ""), 404);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/filters", ""), 404);
        ASSERT_CONTAINS(f.out.data, "no such path: /gpushare-scheduler/filters");
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/filter", ""), 405);
        ASSERT_TEXT(f.allow, "POST");
        ASSERT_INT(ask(&f, "POST", "/gpushare-scheduler/metrics", ""), 405);
        ASSERT_TEXT(f.allow, "GET");
        teardown(&f);
}

static void is_not_ready_before_the_view_is(void) {
        Fixture f = {.out = BUF_NULL};

        ASSERT_OK(view_new(&f.view));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/readyz", ""), 503);
        ASSERT_CONTAINS(f.out.data, "nodes have not been listed");
        view_list_begin(f.view, VIEW_NODES);
        view_list_end(f.view, VIEW_NODES);
        ASSERT_INT(post(&f, "filter", "{}"), 503);
        ASSERT_CONTAINS(f.out.data, "pods have not been listed");
        ASSERT_INT(post(&f, "prioritize", "{}"), 503);
        ASSERT_INT(post(&f, "bind", "{}"), 503);
        ASSERT_INT(post(&f, "preempt", "{}"), 503);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/inspect", ""), 503);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/healthz", ""), 200);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_in_sync 0\n");
        teardown(&f);
}

static void only_the_leader_binds(void) {
        Extender e = {.leading = false};
        bool fresh = false;

        ASSERT_CONTAINS(extender_may_not_bind(&e), "not the leader");
        e.leading = true;
        ASSERT_FALSE(extender_may_not_bind(&e));
        e.fresh = &fresh;
        ASSERT_CONTAINS(extender_may_not_bind(&e), "lists the pods before it binds");
        fresh = true;
        ASSERT_FALSE(extender_may_not_bind(&e));
}

/* ---- metrics ---- */

static const char golden_head[] =
        "# HELP aliquot_scheduler_nodes Node objects known.\n"
        "# TYPE aliquot_scheduler_nodes gauge\n"
        "aliquot_scheduler_nodes 4\n"
        "# HELP aliquot_scheduler_cards Cards that nodes share.\n"
        "# TYPE aliquot_scheduler_cards gauge\n"
        "aliquot_scheduler_cards 7\n"
        "# HELP aliquot_scheduler_cards_unhealthy Cards that are out of service.\n"
        "# TYPE aliquot_scheduler_cards_unhealthy gauge\n"
        "aliquot_scheduler_cards_unhealthy 0\n"
        "# HELP aliquot_scheduler_memory_bytes GPU memory on all cards, in whole units of their nodes.\n"
        "# TYPE aliquot_scheduler_memory_bytes gauge\n"
        "aliquot_scheduler_memory_bytes 112742891520\n"
        "# HELP aliquot_scheduler_memory_bytes_used GPU memory that pods hold on cards.\n"
        "# TYPE aliquot_scheduler_memory_bytes_used gauge\n"
        "aliquot_scheduler_memory_bytes_used 12884901888\n"
        "# HELP aliquot_scheduler_memory_bytes_pending GPU memory of bound pods that have no card yet.\n"
        "# TYPE aliquot_scheduler_memory_bytes_pending gauge\n"
        "aliquot_scheduler_memory_bytes_pending 0\n"
        "# HELP aliquot_scheduler_core_percent Percent of compute on all cards.\n"
        "# TYPE aliquot_scheduler_core_percent gauge\n"
        "aliquot_scheduler_core_percent 400\n"
        "# HELP aliquot_scheduler_core_percent_used Percent of compute that pods hold.\n"
        "# TYPE aliquot_scheduler_core_percent_used gauge\n"
        "aliquot_scheduler_core_percent_used 0\n"
        "# HELP aliquot_scheduler_grants Pods that hold a slice, reservations included.\n"
        "# TYPE aliquot_scheduler_grants gauge\n"
        "aliquot_scheduler_grants 1\n"
        "# HELP aliquot_scheduler_pods_waiting Pods that ask for a slice and are not bound.\n"
        "# TYPE aliquot_scheduler_pods_waiting gauge\n"
        "aliquot_scheduler_pods_waiting 0\n"
        "# HELP aliquot_scheduler_binds_open Bindings whose outcome is not known yet.\n"
        "# TYPE aliquot_scheduler_binds_open gauge\n"
        "aliquot_scheduler_binds_open 0\n"
        "# HELP aliquot_scheduler_in_sync 1 when nodes and pods have been listed.\n"
        "# TYPE aliquot_scheduler_in_sync gauge\n"
        "aliquot_scheduler_in_sync 1\n"
        "# HELP aliquot_scheduler_leading 1 when this replica may bind.\n"
        "# TYPE aliquot_scheduler_leading gauge\n"
        "aliquot_scheduler_leading 1\n"
        "# HELP aliquot_scheduler_memory_units Units of GPU memory on all cards of nodes with this unit.\n"
        "# TYPE aliquot_scheduler_memory_units gauge\n"
        "aliquot_scheduler_memory_units{unit=\"GiB\"} 105\n"
        "# HELP aliquot_scheduler_memory_units_used Units of GPU memory that pods hold on cards of nodes "
        "with "
        "this unit.\n"
        "# TYPE aliquot_scheduler_memory_units_used gauge\n"
        "aliquot_scheduler_memory_units_used{unit=\"GiB\"} 12\n"
        "# HELP aliquot_scheduler_memory_units_pending Units of bound pods that have no card yet, on nodes "
        "with this unit.\n"
        "# TYPE aliquot_scheduler_memory_units_pending gauge\n"
        "aliquot_scheduler_memory_units_pending{unit=\"GiB\"} 0\n"
        "# HELP aliquot_scheduler_refusals_total Nodes that filter refused, and pods that bind refused, by "
        "reason.\n"
        "# TYPE aliquot_scheduler_refusals_total counter\n"
        "aliquot_scheduler_refusals_total{reason=\"core_step\"} 0\n";

static const char golden_histogram[] =
        "# HELP aliquot_scheduler_handler_seconds Time from request to answer; bind includes the API "
        "server's.\n"
        "# TYPE aliquot_scheduler_handler_seconds histogram\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.00005\"} 1\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.0001\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.00025\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.0005\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.001\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.0025\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.005\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.01\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.05\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.1\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"0.5\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"1\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"5\"} 2\n"
        "aliquot_scheduler_handler_seconds_bucket{handler=\"filter\",le=\"+Inf\"} 3\n"
        "aliquot_scheduler_handler_seconds_sum{handler=\"filter\"} 7.000101\n"
        "aliquot_scheduler_handler_seconds_count{handler=\"filter\"} 3\n";

static void metrics_are_as_dashboards_know_them(void) {
        Fixture f = setup();

        metrics_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 50);
        metrics_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 51);
        metrics_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 7 * USEC_PER_SEC);
        f.metrics.binds[METRICS_BIND_UNKNOWN] = 3;
        f.extender.leading = true;
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_TEXT(f.type, "text/plain; version=0.0.4; charset=utf-8");
        ASSERT_STR(((Str){f.out.data, sizeof golden_head - 1}), ((Str){golden_head, sizeof golden_head - 1}));
        ASSERT_CONTAINS(f.out.data, golden_histogram);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_binds_total{outcome=\"unknown\"} 3\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_view_objects_total{kind=\"nodes\"} 4\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_view_lists_total{kind=\"pods\"} 1\n");
        teardown(&f);
}

/* One node in GiB and one in 128 MiB: no series adds the two. */
static void units_of_different_sizes_are_not_added(void) {
        Fixture f = setup();

        feed(f.view, VIEW_NODES, REFLECTOR_MODIFIED,
             node_json("n1", "cgpu", 240, 2, ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "16", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":16}}"));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_units{unit=\"GiB\"} 75\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_units{unit=\"128MiB\"} 240\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_units_used{unit=\"GiB\"} 12\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_units_used{unit=\"128MiB\"} 16\n");
        /* 105 GiB. */
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_bytes 112742891520\n");
        /* 14 GiB. */
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_bytes_used 15032385536\n");
        teardown(&f);
}

static void filter_refuses_a_node_with_a_change_that_waits(void) {
        static const char changing[] = ",\"annotations\":{\"aliquot.dev/mode-in-force\":\"core_mem\","
                                       "\"aliquot.dev/change-pending\":\"mode core_mem -> cgpu\"}";
        Fixture f = setup();

        feed(f.view, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 30, 2, changing));
        ASSERT_INT(post(&f, "filter", args(pod_json("x", .mem = "4"), "\"NodeNames\":[\"n1\",\"n3\"]")), 200);
        ASSERT_TEXT(
                f.out.data,
                "{\"Nodes\":null,\"NodeNames\":[\"n3\"],\"FailedNodes\":{"
                "\"n1\":\"the node takes no new slice while a change waits: mode core_mem -> cgpu\"},"
                "\"FailedAndUnresolvableNodes\":{\"n1\":\"the node takes no new slice while a change waits: "
                "mode core_mem -> cgpu\"},\"Error\":\"\"}");
        ASSERT_INT(f.metrics.refusals[REFUSAL_NODE_CHANGING], 1);
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(filters_by_name), TEST(filters_whole_nodes), TEST(filter_takes_any_case_and_order),
                TEST(filter_lets_other_pods_pass), TEST(filter_refuses_what_can_never_be),
                TEST(malformed_bodies_are_answered_with_the_path), TEST(the_best_get_ten_to_one),
                TEST(ties_go_by_name_and_all_others_get_nothing), TEST(preempt_keeps_nodes_that_would_fit),
                TEST(inspects), TEST(routes), TEST(is_not_ready_before_the_view_is),
                TEST(only_the_leader_binds), TEST(metrics_are_as_dashboards_know_them),
                TEST(units_of_different_sizes_are_not_added),
                TEST(filter_refuses_a_node_with_a_change_that_waits));
}
