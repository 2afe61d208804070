/* SPDX-License-Identifier: Apache-2.0 */

/* The answers of the extender, without a socket. They are compared byte for byte where
 * kube-scheduler or people rely on them. */

#include "fake_api.h"
#include "fixture.h"
#include "scheduler/extender.h"
#include "scheduler/question/reason_tally.h"

typedef struct Fixture {
        View *view;
        Metrics metrics;
        SchedulerContext context;
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
        extender_done(&f->extender);
        pending_done(&f->context.pending);
        buf_done(&f->out);
        view_free(f->view);
}

static unsigned ask(Fixture *f, const char *method, const char *path, const char *body) {
        HttpRequest request = {
                .method = method, .path = path, .content_type = "application/json", .body = str_from(body)};
        char *before = sums_of(f->view->ledger), *after;
        unsigned status;

        f->extender.context = &f->context;
        f->context.view = f->view;
        f->context.metrics = &f->metrics;
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
                             "\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\",\"n3\",\"nn\"]")),
                   200);
        ASSERT_TEXT(f.out.data,
                    "{\"Nodes\":null,\"NodeNames\":[\"n1\",\"n3\"],\"FailedNodes\":{"
                    "\"n2\":\"no card has 4 GiB of gpu-mem free\","
                    "\"nn\":\"node(s) are not known as GPU nodes\"},\"FailedAndUnresolvableNodes\":{"
                    "\"nn\":\"node(s) are not known as GPU nodes\"},\"Error\":\"\"}");
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
                                "\"n2\":\"no card has 4 GiB of gpu-mem free\"},"
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
#define REASON "container main: gpu-core.percentage is 33, must be a multiple of 5 from 5 to 100"
        ASSERT_TEXT(f.out.data, "{\"Nodes\":null,\"NodeNames\":[],\"FailedNodes\":{"
                                "\"n1\":\"" REASON "\",\"n3\":\"" REASON "\"},"
                                "\"FailedAndUnresolvableNodes\":{"
                                "\"n1\":\"" REASON "\",\"n3\":\"" REASON "\"},\"Error\":\"\"}");
#undef REASON
        teardown(&f);
}

/* Nodes with different cards, and cards with different amounts, for the same rule. */
static void equal_cases_have_one_reason(void) {
        Fixture f = setup();

        ASSERT_INT(
                post(&f, "filter", args(pod_json("x", .mem = "60"), "\"NodeNames\":[\"n1\",\"n2\",\"n3\"]")),
                200);
#define REASON "no card is large enough for 60 GiB of gpu-mem"
        ASSERT_CONTAINS(f.out.data, "\"FailedNodes\":{\"n1\":\"" REASON "\",\"n2\":\"" REASON
                                    "\",\"n3\":\"" REASON "\"}");
#undef REASON
        teardown(&f);
}

/* The reasons of few nodes share one text, whichever node comes first. That of the nearest, which
 * has only to report its cards, is kept. */
static void many_reasons_become_few(void) {
        static const char *const orders[] = {
                "\"NodeNames\":[\"m1\",\"m2\",\"m3\",\"n1\",\"n2\",\"n3\",\"u1\",\"u2\",\"u3\",\"u4\"]",
                "\"NodeNames\":[\"u4\",\"m3\",\"n3\",\"u2\",\"m2\",\"m1\",\"u1\",\"n2\",\"n1\",\"u3\"]"};
        static const char *const units[] = {"128MiB", "256MiB", "512MiB", "2GiB"};
        Fixture f = setup();

        f.context.leading = true;
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("m1", "mig", 30, 2, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("m2", "cgpu", 0, 0, ""));
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                char name[8], members[64];

                (void) snprintf(name, sizeof name, "u%zu", i + 1);
                (void) snprintf(members, sizeof members,
                                ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"%s\"}", units[i]);
                feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json(name, "cgpu", 15, 1, members));
        }
        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                ASSERT_INT(post(&f, "filter", args(pod_json("x", .mem = "16"), orders[i])), 200);
                ASSERT_CONTAINS(f.out.data, "\"n1\":\"no card is large enough for 16 GiB of gpu-mem\"");
                ASSERT_CONTAINS(f.out.data, "\"m1\":\"" REASON_OTHER "\"");
                ASSERT_CONTAINS(f.out.data,
                                "\"FailedNodes\":{\"m2\":\"node(s) have not reported their cards yet\"");
                ASSERT_CONTAINS(f.out.data, "\"m3\":\"" REASON_OTHER "\"");
        }
        teardown(&f);
}

/* ---- the nearest cards ---- */

static unsigned nearest_events(Fixture *f, const char *pod, const char *nodes) {
        unsigned before = fake_n_events();

        ASSERT_INT(post(f, "filter", args(pod, nodes)), 200);
        return fake_n_events() - before;
}

static void see_waiting(Fixture *f, const char *pod) {
        feed(f->view, VIEW_PODS, REFLECTOR_ADDED, pod);
}

static void the_nearest_cards_stand_in_an_event(void) {
        Fixture f = setup();
        const char *pod = pod_json("x", .mem = "14", .phase = "Pending"),
                   *all = "\"NodeNames\":[\"n2\",\"n1\"]";
        PendingPod *known;

        f.context.recorder = (KubeEventRecorder *) &f; /* never dereferenced */
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "2", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":2}}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("c", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":5}}"));
        ASSERT_INT(nearest_events(&f, pod, all), 0); /* another replica leads */
        f.context.leading = true;
        ASSERT_INT(nearest_events(&f, pod, all), 0); /* the watch does not know the pod */
        see_waiting(&f, pod);
        ASSERT_INT(nearest_events(&f, pod, "\"NodeNames\":[\"n2\",\"n3\"]"), 0); /* n3 takes it */
        ASSERT_INT(nearest_events(&f, pod, all), 1);
        ASSERT_TEXT(fake_last_note(), "nearest node n1: no card has 14 GiB of gpu-mem free; "
                                      "nearest cards: gpu1 of n1: 13 of 15 GiB free (memory: 1 GiB missing), "
                                      "gpu0 of n1: 10 of 15 GiB free (memory: 4 GiB missing), "
                                      "gpu0 of n2: 3 of 15 GiB free (memory: 11 GiB missing). "
                                      "All cards: kubectl inspect cgpu --why default/x");
        known = pending_find(&f.context.pending, STR("uid-x"));
        known->told_at -= PENDING_EVENT_REST;
        ASSERT_INT(nearest_events(&f, pod, "\"NodeNames\":[\"n1\",\"n2\"]"), 0); /* nothing has changed */
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED,
             pod_json("c", .mem = "5", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":5}}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("c", .mem = "4", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":4}}"));
        ASSERT_INT(nearest_events(&f, pod, all), 1);
        ASSERT_CONTAINS(fake_last_note(), "gpu0 of n1: 11 of 15 GiB free (memory: 3 GiB missing)");
        feed(f.view, VIEW_PODS, REFLECTOR_DELETED,
             pod_json("b", .mem = "2", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":2}}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "3", .node = "n1", .allocation = "{\\\"0\\\":{\\\"1\\\":3}}"));
        ASSERT_INT(nearest_events(&f, pod, all), 0); /* changed, but too soon */
        known->told_at -= PENDING_EVENT_REST;
        ASSERT_INT(nearest_events(&f, pod, all), 1);
        teardown(&f);
}

static void all_pods_together_get_so_many_events(void) {
        Fixture f = setup();
        unsigned told = 0;

        f.context.recorder = (KubeEventRecorder *) &f;
        f.context.leading = true;
        for (unsigned i = 0; i < PENDING_EVENTS_PER_MINUTE + 10; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "w%u", i);
                see_waiting(&f, pod_json(name, .mem = "14", .phase = "Pending"));
                told += nearest_events(&f, pod_json(name, .mem = "14", .phase = "Pending"),
                                       "\"NodeNames\":[\"n2\"]");
        }
        ASSERT_INT(told, PENDING_EVENTS_PER_MINUTE);
        f.context.pending.minute -= 60 * USEC_PER_SEC;
        ASSERT_INT(nearest_events(&f, pod_json("w125", .mem = "14", .phase = "Pending"),
                                  "\"NodeNames\":[\"n2\"]"),
                   1);
        teardown(&f);
}

/* ---- why ---- */

static void why_tells_each_card(void) {
        static const uint32_t fenced[] = {2};
        Fixture f = setup();

        f.context.leading = true;
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("m1", "mig", 30, 2, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED,
             node_json("full", "core_mem", 15, 1,
                       ",\"annotations\":{\"aliquot.dev/max-pods-per-card\":\"1\"}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "2", .core = "80", .node = "n3",
                      .allocation = "{\\\"0\\\":{\\\"0\\\":2}}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("c", .mem = "1", .core = "5", .node = "full",
                      .allocation = "{\\\"0\\\":{\\\"0\\\":1}}"));
        ASSERT_OK(ledger_node_set_fenced(f.view->ledger, STR("n3"), fenced, ELEMENTSOF(fenced)));
        see_waiting(&f, pod_json("x", .mem = "14", .core = "30", .phase = "Pending"));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/why/uid-x", ""), 200);
        ASSERT_TEXT(f.type, "text/plain; charset=utf-8");
        ASSERT_TEXT(f.out.data,
                    "asks for 14 of gpu-mem and 30 percent of compute on one card; 1 of 6 GPU nodes can "
                    "take it now, by their cards\n"
                    "\nn3: fits\n"
                    "  gpu0  13 of 15 GiB and 20 of 100 percent free, 1 pod  memory: 1 GiB missing; "
                    "percent: 10 missing\n"
                    "  gpu1  15 of 15 GiB and 100 of 100 percent free, 0 pods\n"
                    "  gpu2  0 of 15 GiB and 0 of 100 percent free, 0 pods  fence: a ConfigMap takes the "
                    "card out of service\n"
                    "  gpu3  15 of 15 GiB and 100 of 100 percent free, 0 pods\n"
                    "\nfull: the cards with room hold 1 pod each, aliquot.dev/max-pods-per-card\n"
                    "  gpu0  14 of 15 GiB and 95 of 100 percent free, 1 pod  max-pods-per-card: 1 reached\n"
                    "\ncpu: the node's mode is default, compute percent needs core_mem\n"
                    "\nm1: the node's mode is mig, compute percent needs core_mem\n"
                    "\nn1: the node's mode is cgpu, compute percent needs core_mem\n"
                    "\nn2: the node's mode is cgpu, compute percent needs core_mem\n");
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/why/uid-b", ""), 404); /* it is bound */
        ASSERT_CONTAINS(f.out.data, "no pending pod with a share has the UID \"uid-b\"");
        f.context.leading = false;
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/why/uid-b", ""), 404);
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/why/uid-x", ""), 200);
        ASSERT_CONTAINS(f.out.data, "needs core_mem\n\nthis replica does not lead: what the leader holds");
        teardown(&f);
}

static void why_counts_the_nodes_of_a_large_cluster(void) {
        Fixture f = setup();

        for (unsigned i = 0; i < 100; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "k%02u", i);
                feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json(name, "cgpu", 30, 2, ""));
        }
        see_waiting(&f, pod_json("x", .mem = "16", .phase = "Pending"));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/why/uid-x", ""), 200);
        ASSERT_CONTAINS(f.out.data,
                        "\nk00: no card is large enough for 16 GiB of gpu-mem\n  gpu0  15 of 15 GiB free, 0 "
                        "pods  memory: 1 GiB missing, the card is too small\n");
        ASSERT_CONTAINS(f.out.data,
                        "\nand 84 more nodes:\n  83 no card is large enough for 16 GiB of gpu-mem\n"
                        "  1 node(s) are not in mode share, cgpu or core_mem\n");
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
        ASSERT_TEXT(f.out.data, "[{\"Host\":\"n2\",\"Score\":10},{\"Host\":\"n1\",\"Score\":9},"
                                "{\"Host\":\"n3\",\"Score\":8}]");
        /* No room on n2 any more, and no points. */
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = "4"), "\"NodeNames\":[\"n2\",\"n1\"]")),
                   200);
        ASSERT_TEXT(f.out.data, "[{\"Host\":\"n1\",\"Score\":10}]");
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = "3"), "\"NodeNames\":[]")), 200);
        ASSERT_TEXT(f.out.data, "[]");
        teardown(&f);
}

/* n1 and n3 have idle cards, the card of n2 holds a pod, and the others share none. */
static void pods_that_ask_for_nothing_spare_idle_cards(void) {
        static const struct {
                bool spare;
                const char *mem, *nodes, *expected;
        } cases[] = {
                {false, NULL, "\"NodeNames\":[\"n1\",\"n2\",\"cpu\"]", "[]"},
                {false, NULL, "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n2\"}}]}", "[]"},
                {true, NULL, "\"NodeNames\":[\"n1\",\"n2\",\"cpu\",\"n3\",\"nn\"]",
                 "[{\"Host\":\"n2\",\"Score\":1},{\"Host\":\"cpu\",\"Score\":1},{\"Host\":\"nn\",\"Score\":1}"
                 "]"},
                {true, NULL,
                 "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\"}},{\"metadata\":{\"name\":\"n\\\"2\"}}"
                 "]}",
                 "[{\"Host\":\"n\\\"2\",\"Score\":1}]"},
                {true, NULL, "\"NodeNames\":[\"n1\",\"n3\"]", "[]"},
                {true, NULL, "\"NodeNames\":[\"n2\",\"cpu\"]", "[]"}, /* one class alone */
                {true, NULL, "\"NodeNames\":[]", "[]"},
                {true, "3", "\"NodeNames\":[\"n1\",\"cpu\"]", "[{\"Host\":\"n1\",\"Score\":10}]"},
                {true, "x", "\"NodeNames\":[\"n1\",\"cpu\"]", "[]"}, /* asks for something */
        };
        Fixture f = setup();

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                f.context.spare_idle_cards = cases[i].spare;
                ASSERT_INT(post(&f, "prioritize", args(pod_json("x", .mem = cases[i].mem), cases[i].nodes)),
                           200);
                ASSERT_TEXT(f.out.data, cases[i].expected);
        }
        /* A fenced card is no idle card. */
        feed(f.view, VIEW_CONFIGMAPS, REFLECTOR_ADDED,
             "{\"metadata\":{\"name\":\"unhealthy-gpu-n1\"},\"data\":{\"gpus\":\"0,1,2,3\"}}");
        f.context.spare_idle_cards = true;
        ASSERT_INT(post(&f, "prioritize", args(pod_json("x"), "\"NodeNames\":[\"n1\",\"n3\"]")), 200);
        ASSERT_TEXT(f.out.data, "[{\"Host\":\"n1\",\"Score\":1}]");
        teardown(&f);
}

/* The names come back as they stand in the request, in either order of its members. */
static void filter_answers_all_nodes_to_a_pod_that_asks_for_nothing(void) {
        static const char *const names[] = {"[]", "[ ]", "[\"n1\", \"nn\",\"n\\u0031\"]"};
        Fixture f = setup();
        char text[256];

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                for (int first = 0; first < 2; first++) {
                        (void) snprintf(text, sizeof text,
                                        first ? "{\"NodeNames\":%s,\"Pod\":{}}"
                                              : "{\"Pod\":{},\"NodeNames\":%s}",
                                        names[i]);
                        ASSERT_INT(post(&f, "filter", text), 200);
                        (void) snprintf(text, sizeof text,
                                        "{\"Nodes\":null,\"NodeNames\":%s,\"FailedNodes\":{},"
                                        "\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}",
                                        names[i]);
                        ASSERT_TEXT(f.out.data, text);
                }
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
                (void) snprintf(expected, sizeof expected, "{\"Host\":\"e%02u\",\"Score\":%u}", i, 10 - i);
                if (i < 10)
                        ASSERT_CONTAINS(f.out.data, expected);
                else
                        ASSERT_FALSE(strstr(f.out.data, "\"e10\"") || strstr(f.out.data, "\"e14\""));
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
        SchedulerContext context = {.leading = false};
        Extender e = {.context = &context};
        bool fresh = false;

        ASSERT_CONTAINS(extender_may_not_bind(&e), "not the leader");
        context.leading = true;
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
        "# HELP aliquot_scheduler_memory_bytes GPU memory on all cards, in whole units.\n"
        "# TYPE aliquot_scheduler_memory_bytes gauge\n"
        "aliquot_scheduler_memory_bytes 112742891520\n"
        "# HELP aliquot_scheduler_memory_used_bytes GPU memory that pods hold.\n"
        "# TYPE aliquot_scheduler_memory_used_bytes gauge\n"
        "aliquot_scheduler_memory_used_bytes 12884901888\n"
        "# HELP aliquot_scheduler_memory_pending_bytes GPU memory of bound pods that have no card yet.\n"
        "# TYPE aliquot_scheduler_memory_pending_bytes gauge\n"
        "aliquot_scheduler_memory_pending_bytes 0\n"
        "# HELP aliquot_scheduler_compute_cards Cards whose time is given out in shares.\n"
        "# TYPE aliquot_scheduler_compute_cards gauge\n"
        "aliquot_scheduler_compute_cards 4.00\n"
        "# HELP aliquot_scheduler_compute_used_cards Shares of time that pods hold, in cards.\n"
        "# TYPE aliquot_scheduler_compute_used_cards gauge\n"
        "aliquot_scheduler_compute_used_cards 0.00\n"
        "# HELP aliquot_scheduler_grants Pods with a slice or a reservation.\n"
        "# TYPE aliquot_scheduler_grants gauge\n"
        "aliquot_scheduler_grants 1\n"
        "# HELP aliquot_scheduler_pods_waiting Pods that wait for a slice.\n"
        "# TYPE aliquot_scheduler_pods_waiting gauge\n"
        "aliquot_scheduler_pods_waiting 0\n"
        "# HELP aliquot_scheduler_binds_open Bindings without a known outcome.\n"
        "# TYPE aliquot_scheduler_binds_open gauge\n"
        "aliquot_scheduler_binds_open 0\n"
        "# HELP aliquot_scheduler_in_sync 1 when nodes and pods have been listed.\n"
        "# TYPE aliquot_scheduler_in_sync gauge\n"
        "aliquot_scheduler_in_sync 1\n"
        "# HELP aliquot_scheduler_leading 1 when this replica may bind.\n"
        "# TYPE aliquot_scheduler_leading gauge\n"
        "aliquot_scheduler_leading 1\n"
        "# HELP aliquot_scheduler_node_cards Cards that the node shares.\n"
        "# TYPE aliquot_scheduler_node_cards gauge\n"
        "aliquot_scheduler_node_cards{node=\"n1\"} 2\n";

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

        histogram_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 50);
        histogram_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 51);
        histogram_observe(&f.metrics.handlers[METRICS_HANDLER_FILTER], 7 * USEC_PER_SEC);
        f.metrics.binds[METRICS_BIND_UNKNOWN] = 3;
        f.view->policies->notes_expired = 7;
        f.context.leading = true;
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_TEXT(f.type, "text/plain; version=0.0.4; charset=utf-8");
        ASSERT_STR(((Str){f.out.data, sizeof golden_head - 1}), ((Str){golden_head, sizeof golden_head - 1}));
        ASSERT_CONTAINS(f.out.data, golden_histogram);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_binds_total{outcome=\"unknown\"} 3\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_view_objects_total{kind=\"nodes\"} 4\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_view_lists_total{kind=\"pods\"} 1\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_policy_notes_expired_total 7\n");
        teardown(&f);
}

/* One node in GiB and one in 128 MiB: the sums are bytes. */
static void units_of_different_sizes_are_added_as_bytes(void) {
        Fixture f = setup();

        feed(f.view, VIEW_NODES, REFLECTOR_MODIFIED,
             node_json("n1", "cgpu", 240, 2, ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}"));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("b", .mem = "16", .node = "n1", .allocation = "{\\\"0\\\":{\\\"0\\\":16}}"));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_node_memory_bytes{node=\"n1\"} 32212254720\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_node_memory_used_bytes{node=\"n1\"} 2147483648\n");
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_node_cards{node=\"n1\"} 2\n");
        /* 105 GiB. */
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_bytes 112742891520\n");
        /* 14 GiB. */
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_used_bytes 15032385536\n");
        /* Whole cards are counted as cards: their unit is one, and no memory. */
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED,
             "{\"metadata\":{\"name\":\"w\",\"labels\":{\"ack.node.gpu.schedule\":\"topology\"},"
             "\"annotations\":{"
             "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":1,\\\"mib\\\":81920},"
             "{\\\"index\\\":1,\\\"units\\\":1,\\\"mib\\\":81920}]\"}}}");
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_node_cards{node=\"w\"} 2\n");
        ASSERT_TRUE(!strstr(f.out.data, "memory_bytes{node=\"w\"}") &&
                    !strstr(f.out.data, "memory_used_bytes{node=\"w\"}"));
        ASSERT_CONTAINS(f.out.data, "\naliquot_scheduler_memory_bytes 112742891520\n");
        feed(f.view, VIEW_NODES, REFLECTOR_DELETED, node_json("n1", "cgpu", 240, 2, ""));
        ASSERT_INT(ask(&f, "GET", "/gpushare-scheduler/metrics", ""), 200);
        ASSERT_TRUE(!strstr(f.out.data, "node=\"n1\""));
        teardown(&f);
}

static void filter_refuses_a_node_with_a_change_that_waits(void) {
        static const char changing[] = ",\"annotations\":{\"aliquot.dev/mode-in-force\":\"core_mem\","
                                       "\"aliquot.dev/change-pending\":\"mode core_mem -> cgpu\"}";
        Fixture f = setup();

        feed(f.view, VIEW_NODES, REFLECTOR_MODIFIED, node_json("n1", "cgpu", 30, 2, changing));
        ASSERT_INT(post(&f, "filter", args(pod_json("x", .mem = "4"), "\"NodeNames\":[\"n1\",\"n3\"]")), 200);
        ASSERT_TEXT(f.out.data,
                    "{\"Nodes\":null,\"NodeNames\":[\"n3\"],\"FailedNodes\":{"
                    "\"n1\":\"node(s) take no new slice while a change of mode or unit waits\"},"
                    "\"FailedAndUnresolvableNodes\":{\"n1\":\"node(s) take no new slice while a change of "
                    "mode or unit waits\"},\"Error\":\"\"}");
        ASSERT_INT(f.metrics.refusals[REFUSAL_NODE_CHANGING], 1);
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(
                TEST(filters_by_name), TEST(filters_whole_nodes), TEST(filter_takes_any_case_and_order),
                TEST(filter_lets_other_pods_pass), TEST(filter_refuses_what_can_never_be),
                TEST(equal_cases_have_one_reason), TEST(many_reasons_become_few),
                TEST(the_nearest_cards_stand_in_an_event), TEST(all_pods_together_get_so_many_events),
                TEST(why_tells_each_card), TEST(why_counts_the_nodes_of_a_large_cluster),
                TEST(malformed_bodies_are_answered_with_the_path), TEST(the_best_get_ten_to_one),
                TEST(pods_that_ask_for_nothing_spare_idle_cards),
                TEST(filter_answers_all_nodes_to_a_pod_that_asks_for_nothing),
                TEST(ties_go_by_name_and_all_others_get_nothing), TEST(preempt_keeps_nodes_that_would_fit),
                TEST(inspects), TEST(routes), TEST(is_not_ready_before_the_view_is),
                TEST(only_the_leader_binds), TEST(metrics_are_as_dashboards_know_them),
                TEST(units_of_different_sizes_are_added_as_bytes),
                TEST(filter_refuses_a_node_with_a_change_that_waits));
}
