/* SPDX-License-Identifier: Apache-2.0 */

/* filter with --filter-best: which nodes it answers, beside its answer without the option, and
 * which pods get all nodes. */

#include "fixture.h"
#include "random.h"
#include "scheduler/extender.h"
#include "scheduler/question/best.h"

enum { NODES = 90, ROUNDS = 300 };

typedef struct Fixture {
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Extender extender;
        Random random;
} Fixture;

static uint32_t pick(Fixture *f, uint32_t below) {
        return random_below(&f->random, below);
}

static Fixture setup(void) {
        Fixture f = {.random = {7}};

        ASSERT_OK(view_new(&f.view));
        for (ViewKind k = VIEW_NODES; k <= VIEW_PODS; k++) {
                view_list_begin(f.view, k);
                view_list_end(f.view, k);
        }
        return f;
}

static void teardown(Fixture *f) {
        extender_done(&f->extender);
        view_free(f->view);
}

/* The answer of one verb; the caller frees it. best: --filter-best. */
static char *ask(Fixture *f, const char *verb, uint32_t best, const char *pod, const char *members) {
        _cleanup_buf_ Buf body = BUF_NULL;
        const char *type, *allow;
        char path[64];
        Buf out = BUF_NULL;

        (void) snprintf(path, sizeof path, "/gpushare-scheduler/%s", verb);
        buf_appendf(&body, "{\"Pod\":%s,%s}", pod, members);
        f->extender.context = &f->context;
        f->context.view = f->view;
        f->context.metrics = &f->metrics;
        f->context.filter_best = best;
        f->context.promises = (Promises){0};
        HttpRequest request = {
                .method = "POST", .path = path, .content_type = "application/json", .body = buf_str(&body)};
        ASSERT_INT(extender_answer(&f->extender, &request, &out, &type, &allow), 200);
        return buf_take(&out);
}

/* `"NodeNames":[...]` of an answer, as a member of the next request. */
static char *names_of(const char *answer) {
        const char *begin = strstr(answer, "\"NodeNames\":["), *end = begin ? strchr(begin, ']') : NULL;
        char *text;

        ASSERT_TRUE(begin && end);
        text = strndup(begin, (size_t) (end + 1 - begin));
        ASSERT_TRUE(text);
        return text;
}

/* ---- the oracle: a full ranking ---- */

typedef struct Place {
        char name[16];
        uint64_t rank;
        bool chosen;
} Place;

static bool is_before(const Place *a, const Place *b) {
        return a->rank != b->rank ? a->rank < b->rank : strcmp(a->name, b->name) < 0;
}

/* The answer that is expected, made from the names that all fit: each stays that has fewer than
 * `best` others before it. */
static char *oracle(const Fixture *f, const char *names, const Request *request, uint32_t best) {
        static Place places[NODES];
        size_t n = 0;
        Buf out = BUF_NULL;

        for (const char *p = strchr(names, '[') + 1; *p == '"'; p += *p == ',') {
                const char *end = strchr(p + 1, '"');
                const LedgerNode *node =
                        ledger_node_find(f->view->ledger, (Str){p + 1, (size_t) (end - p - 1)});

                ASSERT_TRUE(node && n < NODES);
                (void) snprintf(places[n].name, sizeof places[n].name, "%.*s", (int) (end - p - 1), p + 1);
                places[n++].rank = placement_rank(node, request);
                p = end + 1;
        }
        buf_append_str(&out, STR("\"NodeNames\":["));
        for (size_t i = 0, written = 0; i < n; i++) {
                size_t before = 0;

                for (size_t k = 0; k < n; k++)
                        before += is_before(&places[k], &places[i]);
                if (before < best)
                        buf_appendf(&out, "%s\"%s\"", written++ > 0 ? "," : "", places[i].name);
        }
        buf_append_char(&out, ']');
        return buf_take(&out);
}

static void random_cluster(Fixture *f) {
        char name[16], allocation[64], mem[8];

        for (uint32_t i = 0; i < NODES; i++) {
                uint32_t cards = 1 + pick(f, 4);

                (void) snprintf(name, sizeof name, "n%02u", i);
                feed(f->view, VIEW_NODES, REFLECTOR_ADDED, node_json(name, "cgpu", 16 * cards, cards, ""));
                for (uint32_t k = 0; k < cards; k++) {
                        char pod[32];
                        uint32_t units = pick(f, 17);

                        if (units == 0)
                                continue;
                        (void) snprintf(pod, sizeof pod, "p%u-%u", i, k);
                        (void) snprintf(mem, sizeof mem, "%u", units);
                        (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", k,
                                        units);
                        feed(f->view, VIEW_PODS, REFLECTOR_ADDED,
                             pod_json(pod, .mem = mem, .node = name, .allocation = allocation));
                }
        }
}

/* Some of the nodes, in a random order. */
static void random_names(Fixture *f, Buf *out) {
        uint32_t order[NODES] = {0};

        for (uint32_t i = 0; i < NODES; i++) {
                uint32_t at = pick(f, i + 1);

                order[i] = order[at];
                order[at] = i;
        }
        buf_clear(out);
        buf_append_str(out, STR("\"NodeNames\":["));
        for (uint32_t i = 0, n = 1 + pick(f, NODES); i < n; i++)
                buf_appendf(out, "%s\"n%02u\"", i > 0 ? "," : "", order[i]);
        buf_append_char(out, ']');
}

static Request request_of(uint32_t units, RequestContainer *c) {
        *c = (RequestContainer){.mem = units};
        return (Request){.containers = c, .n_containers = 1, .mem = units, .cards = 1};
}

static void the_best_are_the_first_of_the_full_ranking(void) {
        Fixture f = setup();
        _cleanup_buf_ Buf names = BUF_NULL;
        RequestContainer container;
        size_t cut = 0;

        random_cluster(&f);
        for (unsigned round = 0; round < ROUNDS; round++) {
                uint32_t units = 1 + pick(&f, 16), best = 1 + pick(&f, 40);
                char mem[8];
                Request request = request_of(units, &container);

                (void) snprintf(mem, sizeof mem, "%u", units);
                random_names(&f, &names);
                _cleanup_free_ char *pod = strdup(pod_json("x", .mem = mem));
                _cleanup_free_ char *all = ask(&f, "filter", 0, pod, names.data);
                _cleanup_free_ char *some = ask(&f, "filter", best, pod, names.data);
                _cleanup_free_ char *fit = names_of(all), *answered = names_of(some);
                _cleanup_free_ char *expected = oracle(&f, fit, &request, best);

                ASSERT_TEXT(answered, expected);
                /* Nodes that are left out stand in neither list of failures. */
                ASSERT_TEXT(strstr(some, "\"FailedNodes\""), strstr(all, "\"FailedNodes\""));
                cut += strlen(answered) < strlen(fit);
        }
        ASSERT_TRUE(cut > ROUNDS / 4);
        teardown(&f);
}

/* With as many nodes as prioritize keeps, the same ten get the same points. */
static void prioritize_chooses_as_among_all(void) {
        Fixture f = setup();
        _cleanup_buf_ Buf names = BUF_NULL;

        random_cluster(&f);
        for (unsigned round = 0; round < ROUNDS; round++) {
                char mem[8];

                (void) snprintf(mem, sizeof mem, "%u", 1 + pick(&f, 8));
                random_names(&f, &names);
                _cleanup_free_ char *pod = strdup(pod_json("x", .mem = mem));
                _cleanup_free_ char *some = ask(&f, "filter", BEST_KEPT, pod, names.data);
                _cleanup_free_ char *answered = names_of(some);
                _cleanup_free_ char *of_all = ask(&f, "prioritize", 0, pod, names.data);
                _cleanup_free_ char *of_some = ask(&f, "prioritize", 0, pod, answered);

                for (const char *p = of_all; (p = strstr(p, "{\"Host\"")); p++) {
                        _cleanup_free_ char *host = strndup(p, strcspn(p, "}") + 1);

                        ASSERT_TRUE(strstr(host, ":0}") || strstr(of_some, host));
                }
        }
        teardown(&f);
}

/* ---- which pods get all nodes ---- */

#define ALL     "\"NodeNames\":[\"a\",\"b\",\"c\"]"
#define ONE     "\"NodeNames\":[\"b\"]"
#define TERM    "{\"topologyKey\":\"x\"}"
#define SECTION "DuringSchedulingIgnoredDuringExecution\":["
#define CONDITION(status, reason)                                                                            \
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"},{\"type\":\"PodScheduled\",\"status\":"   \
        "\"" status "\",\"reason\":\"" reason "\"}],"

static Fixture three_nodes(void) {
        Fixture f = setup();

        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("a", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("b", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_NODES, REFLECTOR_ADDED, node_json("c", "cgpu", 16, 1, ""));
        feed(f.view, VIEW_PODS, REFLECTOR_ADDED,
             pod_json("y", .mem = "8", .node = "b", .allocation = "{\\\"0\\\":{\\\"0\\\":8}}"));
        return f;
}

static void pods_with_a_preference_or_a_failed_attempt_get_all(void) {
        static const struct {
                const char *spec, *status, *expected;
        } cases[] = {
                {NULL, NULL, ONE},
                {"\"affinity\":{\"nodeAffinity\":{\"preferred" SECTION "{\"weight\":1}]}},", NULL, ALL},
                {"\"affinity\":{\"podAffinity\":{\"preferred" SECTION "{\"weight\":1}]}},", NULL, ALL},
                {"\"affinity\":{\"podAntiAffinity\":{\"preferred" SECTION "{\"weight\":1}]}},", NULL, ALL},
                {"\"affinity\":{\"podAntiAffinity\":{\"preferred" SECTION "]}},", NULL, ONE},
                {"\"affinity\":{\"podAntiAffinity\":{\"required" SECTION TERM "]}},", NULL, ONE},
                {"\"affinity\":{\"nodeAffinity\":null,\"podAffinity\":{}},", NULL, ONE},
                {"\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"DoNotSchedule\"}],", NULL, ONE},
                {"\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"DoNotSchedule\"},"
                 "{\"whenUnsatisfiable\":\"ScheduleAnyway\"}],",
                 NULL, ALL},
                {"\"affinity\":[],", NULL, ALL}, /* cannot be read */
                {NULL, CONDITION("False", "Unschedulable"), ALL},
                {NULL, CONDITION("False", "SchedulerError"), ALL},
                {NULL, CONDITION("False", "SchedulingGated"), ONE},
                {NULL, CONDITION("True", ""), ONE},
        };
        Fixture f = three_nodes();

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const char *pod = pod_json("x", .mem = "4", .phase = "Pending", .spec = cases[i].spec,
                                           .status = cases[i].status);
                _cleanup_free_ char *answer = ask(&f, "filter", 1, pod, ALL);
                _cleanup_free_ char *names = names_of(answer);

                ASSERT_TEXT(names, cases[i].expected);
        }
        teardown(&f);
}

static void pods_that_ask_for_nothing_get_all(void) {
        Fixture f = three_nodes();
        _cleanup_free_ char *answer =
                ask(&f, "filter", 1, pod_json("web"), "\"NodeNames\":[\"a\",\"unknown\",\"c\"]");

        ASSERT_CONTAINS(answer, "\"NodeNames\":[\"a\",\"unknown\",\"c\"],\"FailedNodes\":{}");
        teardown(&f);
}

static void fewer_that_fit_are_answered_as_without_the_option(void) {
        static const char names[] = "\"NodeNames\":[\"c\" , \"nn\",\"b\",\"a\"]";
        Fixture f = three_nodes();
        _cleanup_free_ char *pod = strdup(pod_json("x", .mem = "9"));
        _cleanup_free_ char *all = ask(&f, "filter", 0, pod, names);
        _cleanup_free_ char *some = ask(&f, "filter", BEST_MAX, pod, names);
        _cleanup_free_ char *none = ask(&f, "filter", BEST_MAX, pod_json("x", .mem = "17"), names);

        ASSERT_TEXT(some, all);
        ASSERT_CONTAINS(some, "\"NodeNames\":[\"c\",\"a\"]");
        /* the nearest first: of equal ones the first by name */
        ASSERT_CONTAINS(none, "\"NodeNames\":[],\"FailedNodes\":{\"a\":");
        teardown(&f);
}

static void whole_nodes_are_answered_whole(void) {
        Fixture f = three_nodes();
        _cleanup_free_ char *answer =
                ask(&f, "filter", 1, pod_json("x", .mem = "4"),
                    "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\","
                    "\"labels\":{}}}]}");

        ASSERT_CONTAINS(answer, "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"b\",\"labels\":{}}}]}");
        teardown(&f);
}

int main(void) {
        return TEST_MAIN(TEST(the_best_are_the_first_of_the_full_ranking),
                         TEST(prioritize_chooses_as_among_all),
                         TEST(pods_with_a_preference_or_a_failed_attempt_get_all),
                         TEST(pods_that_ask_for_nothing_get_all),
                         TEST(fewer_that_fit_are_answered_as_without_the_option),
                         TEST(whole_nodes_are_answered_whole));
}
