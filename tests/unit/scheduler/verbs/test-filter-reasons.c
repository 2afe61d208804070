/* SPDX-License-Identifier: Apache-2.0 */

/* The Event of a pending pod in random clusters with mixed modes. The reason of the nearest node is
 * in it word for word, whatever the order and the number of the other reasons. */

#include "fake_api.h"
#include "fixture.h"
#include "random.h"
#include "scheduler/extender.h"
#include "scheduler/question/reason_tally.h"
#include "share/card_lack.h"
#include "share/placement.h"

enum { NODES_MAX = 40, CLUSTERS = 1000, TEXT_MAX = 128 };

/* The order of the kinds of refusals, the nearest first. */
static const RefusalCode order[][2] = {
        {REFUSAL_NO_ROOM, REFUSAL_PODS_PER_CARD},        {REFUSAL_UNHEALTHY, REFUSAL_UNHEALTHY},
        {REFUSAL_NODE_MIXED, REFUSAL_NODE_MIXED},        {REFUSAL_NODE_CHANGING, REFUSAL_NODE_NOT_READY},
        {REFUSAL_CARD_TOO_SMALL, REFUSAL_CARDS_TOO_FEW}, {REFUSAL_NODE_MODE, REFUSAL_NODE_MODE},
        {REFUSAL_NODE_UNKNOWN, REFUSAL_NODE_UNKNOWN},
};

typedef struct Judged {
        char name[8], reason[TEXT_MAX];
        size_t step;
        uint64_t cards; /* what its cards lack, where they count */
        bool fits;
} Judged;

typedef struct Cluster {
        Random random;
        View *view;
        Metrics metrics;
        SchedulerContext context;
        Extender extender;
        RequestContainer container;
        Request request;
        char pod[4096];
        Judged nodes[NODES_MAX + 1];
        uint32_t n; /* the last one has no object */
        Buf answer;
} Cluster;

static uint32_t pick(Cluster *c, uint32_t below) {
        return random_below(&c->random, below);
}

/* ---- a cluster ---- */

static void add_node(Cluster *c, const char *name) {
        static const char *const modes[] = {"cgpu", "share",    "core_mem", "core_mem",
                                            "cgpu", "topology", "mig",      "no-mode"},
                                 *const settings[] = {
                                         "",
                                         "",
                                         "",
                                         "",
                                         "\"aliquot.dev/change-pending\":\"mode share -> cgpu\"",
                                         "\"aliquot.dev/gpu-mem-unit\":\"128MiB\"",
                                         "\"aliquot.dev/gpu-mem-unit\":\"2GiB\"",
                                         "\"aliquot.dev/max-pods-per-card\":\"1\"",
                                         "\"aliquot.dev/max-pods-per-card\":\"2\"",
                                         "\"aliquot.dev/cordon-cards\":\"0\"",
                                         "\"aliquot.dev/cordon-cards\":\"0,1,2,3\"",
                                 };
        const char *mode = modes[pick(c, ELEMENTSOF(modes))];
        uint32_t cards = pick(c, 5), size = 1 + pick(c, 30);
        char members[160], pod[24], mem[12], core[12], allocation[64];

        (void) snprintf(members, sizeof members, ",\"annotations\":{%s}",
                        settings[pick(c, ELEMENTSOF(settings))]);
        feed(c->view, VIEW_NODES, REFLECTOR_ADDED, node_json(name, mode, cards * size, cards, members));
        for (uint32_t card = 0; card < cards; card++) {
                uint32_t units = pick(c, size + 1),
                         percent = strcmp(mode, "core_mem") == 0 ? pick(c, 21) * 5 : 0;

                if (units == 0)
                        continue;
                (void) snprintf(pod, sizeof pod, "%s-%u", name, card);
                (void) snprintf(mem, sizeof mem, "%u", units);
                (void) snprintf(core, sizeof core, "%u", percent);
                (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", card, units);
                feed(c->view, VIEW_PODS, REFLECTOR_ADDED,
                     pod_json(pod, .mem = mem, .core = percent > 0 ? core : NULL, .node = name,
                              .allocation = allocation));
        }
}

static void make_request(Cluster *c) {
        uint32_t cards = 1, percent = 0, units = 1 + pick(c, 32);
        char mem[12], core[12], labels[48];

        if (pick(c, 4) == 0)
                cards = 2 + pick(c, 2);
        else if (pick(c, 2) == 0)
                percent = 5 + 5 * pick(c, 20);
        c->container = (RequestContainer){.kind = CONTAINER_MAIN, .mem = units, .core = percent};
        c->request = (Request){.mem = units,
                               .core = percent,
                               .cards = cards,
                               .containers = &c->container,
                               .n_containers = 1};
        (void) snprintf(mem, sizeof mem, "%u", units * cards);
        (void) snprintf(core, sizeof core, "%u", percent);
        (void) snprintf(labels, sizeof labels, "\"aliyun.com/gpu-count\":\"%u\"", cards);
        (void) snprintf(c->pod, sizeof c->pod, "%s",
                        pod_json("x", .mem = mem, .core = percent > 0 ? core : NULL,
                                 .labels = cards > 1 ? labels : NULL, .phase = "Pending"));
        feed(c->view, VIEW_PODS, REFLECTOR_ADDED, c->pod);
}

static void make_cluster(Cluster *c) {
        ASSERT_OK(view_new(&c->view));
        for (ViewKind k = VIEW_NODES; k <= VIEW_PODS; k++) {
                view_list_begin(c->view, k);
                view_list_end(c->view, k);
        }
        c->n = 1 + pick(c, NODES_MAX);
        for (uint32_t i = 0; i <= c->n; i++) {
                (void) snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "n%02u", i);
                if (i < c->n)
                        add_node(c, c->nodes[i].name);
        }
        make_request(c);
}

/* ---- what is expected ---- */

static int compare_u64(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static uint64_t lack_of(const Cluster *c, const LedgerNode *node) {
        uint64_t all[CARD_INDEX_MAX + 1];
        size_t n = 0;

        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                CardLack lack = card_lack_of(node, &ledger_node_cards(node)[i], &c->request);

                if (ledger_node_cards(node)[i].units > 0)
                        all[n++] = card_lack_distance(&lack, &c->request);
        }
        qsort(all, n, sizeof *all, compare_u64);
        return all[(n < c->request.cards ? n : c->request.cards) - 1];
}

static void judge(Cluster *c, Judged *j) {
        const LedgerNode *node = ledger_node_find(c->view->ledger, str_from(j->name));
        Refusal refusal = {.code = REFUSAL_NODE_UNKNOWN};
        RefusalReason reason;

        j->fits = node && placement_check(node, &c->request, &refusal) == 0;
        if (j->fits)
                return;
        refusal_reason(&refusal, &reason);
        (void) snprintf(j->reason, sizeof j->reason, "%s", reason.text);
        j->cards = node && refusal_has_cards(refusal.code) ? lack_of(c, node) : 0;
        for (j->step = 0; order[j->step][0] != refusal.code && order[j->step][1] != refusal.code; j->step++)
                ASSERT_TRUE(j->step < ELEMENTSOF(order));
}

static bool is_nearer(const Judged *a, const Judged *b) {
        if (a->step != b->step)
                return a->step < b->step;
        return a->cards != b->cards ? a->cards < b->cards : strcmp(a->name, b->name) < 0;
}

/* NULL: a node takes the pod. */
static const Judged *expected(Cluster *c) {
        const Judged *nearest = NULL;

        for (uint32_t i = 0; i <= c->n; i++) {
                judge(c, &c->nodes[i]);
                if (c->nodes[i].fits)
                        return NULL;
                if (!nearest || is_nearer(&c->nodes[i], nearest))
                        nearest = &c->nodes[i];
        }
        return nearest;
}

/* ---- what is said ---- */

static void ask(Cluster *c, const char *method, const char *path, const char *body) {
        HttpRequest request = {
                .method = method, .path = path, .content_type = "application/json", .body = str_from(body)};
        const char *type, *allow;

        buf_clear(&c->answer);
        ASSERT_INT(extender_answer(&c->extender, &request, &c->answer, &type, &allow), 200);
}

/* The nodes in a random order, as kube-scheduler begins each cycle with another node. */
static void ask_filter(Cluster *c) {
        _cleanup_buf_ Buf body = BUF_NULL;
        uint32_t at[NODES_MAX + 1] = {0};

        for (uint32_t i = 0; i <= c->n; i++) {
                uint32_t k = pick(c, i + 1);

                at[i] = at[k];
                at[k] = i;
        }
        buf_appendf(&body, "{\"Pod\":%s,\"NodeNames\":[", c->pod);
        for (uint32_t i = 0; i <= c->n; i++)
                buf_appendf(&body, "%s\"%s\"", i > 0 ? "," : "", c->nodes[at[i]].name);
        buf_append_str(&body, STR("]}"));
        ask(c, "POST", "/gpushare-scheduler/filter", body.data);
}

typedef struct Line {
        char reason[TEXT_MAX], text[TEXT_MAX + 8];
        unsigned nodes;
} Line;

static int compare_lines(const void *a, const void *b) {
        return strcmp(((const Line *) a)->text, ((const Line *) b)->text);
}

/* The reasons as kube-scheduler writes them: counted, sorted as texts, joined (framework/types.go,
 * FitError.Error). Returns the first node of FailedNodes. */
static Str event_text(const Cluster *c, Buf *out) {
        Str rest = str_from(strstr(c->answer.data, "\"FailedNodes\":{\"") + sizeof "\"FailedNodes\":{" - 1),
            first = {0};
        Line lines[NODES_MAX + 1] = {0};
        size_t n = 0;

        while (rest.data[0] == '"') {
                Str name, reason;
                size_t i = 0;

                (void) str_split(&rest, '"');
                name = str_split(&rest, '"');
                first = first.data ? first : name;
                (void) str_split(&rest, '"');
                reason = str_split(&rest, '"');
                while (i < n && !str_eq(str_from(lines[i].reason), reason))
                        i++;
                n += i == n;
                (void) snprintf(lines[i].reason, TEXT_MAX, STR_FMT, STR_ARG(reason));
                lines[i].nodes++;
                rest = rest.data[0] == ',' ? (Str){rest.data + 1, rest.len - 1} : rest;
        }
        for (size_t i = 0; i < n; i++)
                (void) snprintf(lines[i].text, sizeof lines[i].text, "%u %.120s", lines[i].nodes,
                                lines[i].reason);
        qsort(lines, n, sizeof *lines, compare_lines);
        for (size_t i = 0; i < n; i++)
                buf_appendf(out, "%s%s", i > 0 ? ", " : "", lines[i].text);
        return first;
}

static void check_event(Cluster *c, const Judged *nearest, bool *ret_folded) {
        _cleanup_buf_ Buf text = BUF_NULL, alone = BUF_NULL;
        Str first;

        ask_filter(c);
        first = event_text(c, &text);
        if (!str_eq(first, str_from(nearest->name)))
                TEST_FAIL_("first is " STR_FMT ", expected %s: %s", STR_ARG(first), nearest->name,
                           nearest->reason);
        buf_appendf(&alone, " %s", nearest->reason);
        if (!strstr(text.data, alone.data))
                TEST_FAIL_("no \"%s\" in \"%s\"", nearest->reason, text.data);
        if (text.len > REASON_TEXT_MAX)
                TEST_FAIL_("%zu bytes: %s", text.len, text.data);
        *ret_folded = strstr(text.data, REASON_OTHER) != NULL;
}

/* The Event of the pod, and `--why`, name the same node. */
static void check_nearest(Cluster *c, const Judged *nearest, unsigned events) {
        _cleanup_buf_ Buf begins = BUF_NULL;

        buf_appendf(&begins, "nearest node %s: %s; nearest cards: gpu", nearest->name, nearest->reason);
        if (fake_n_events() > events && strncmp(fake_last_note(), begins.data, begins.len) != 0)
                TEST_FAIL_("\"%s\" does not begin \"%s\"", fake_last_note(), begins.data);
        if (nearest == &c->nodes[c->n])
                return; /* --why knows no node without an object */
        ask(c, "GET", "/gpushare-scheduler/why/uid-x", "");
        buf_clear(&begins);
        buf_appendf(&begins, "\n%s: ", nearest->name);
        if (strstr(c->answer.data, begins.data) != strchr(c->answer.data, '\n') + 1)
                TEST_FAIL_("not first: %s in %s", nearest->name, c->answer.data);
}

static void the_reason_of_the_nearest_node_is_in_the_event(void) {
        unsigned events = fake_n_events(), n = 0, folded = 0;
        static Cluster c;

        c.random = (Random){31};
        while (n < CLUSTERS) {
                const Judged *nearest;
                unsigned before = fake_n_events();
                bool is_folded;

                make_cluster(&c);
                nearest = expected(&c);
                c.context = (SchedulerContext){.view = c.view,
                                               .metrics = &c.metrics,
                                               .recorder = (KubeEventRecorder *) &c, /* never dereferenced */
                                               .leading = true};
                c.extender = (Extender){.context = &c.context};
                if (nearest) {
                        check_event(&c, nearest, &is_folded);
                        check_nearest(&c, nearest, before);
                        folded += is_folded;
                        n++;
                }
                extender_done(&c.extender);
                pending_done(&c.context.pending);
                c.view = view_free(c.view);
        }
        buf_done(&c.answer);
        ASSERT_TRUE(folded > CLUSTERS / 20);
        ASSERT_TRUE(fake_n_events() - events > CLUSTERS / 4);
}

/* The reason of the nearest node is kept where it has no place among the counted ones. */
static void a_reason_beyond_the_tally_is_kept(void) {
        ReasonTally tally = {0};
        unsigned last = 0;
        size_t sum = 0;
        char rule[32];

        for (unsigned i = 0; i <= REASON_TALLY_MAX; i++) {
                (void) snprintf(rule, sizeof rule, "policy p%u", i);
                last = reason_tally_count(&tally, &(Refusal){.code = REFUSAL_POLICY, .rule = rule});
        }
        ASSERT_INT(last, REASON_TALLY_MAX);
        reason_tally_fold(&tally, str_from(rule));
        for (unsigned i = 0; i < REASON_TALLY_MAX; i++)
                sum += tally.items[i].folded ? 0 : sizeof "1 , " - 1 + tally.items[i].reason.len;
        ASSERT_TRUE(sum + strlen(rule) + sizeof "1 " REASON_OTHER ", 1 , " <= REASON_TEXT_MAX);
        ASSERT_STR(reason_tally_text(&tally, last), STR(REASON_OTHER));
}

int main(void) {
        return TEST_MAIN(TEST(the_reason_of_the_nearest_node_is_in_the_event),
                         TEST(a_reason_beyond_the_tally_is_kept));
}
