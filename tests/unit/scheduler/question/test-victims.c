/* SPDX-License-Identifier: Apache-2.0 */

/* The choice of victims against an oracle that tries every set of pods that may go. */

#include "fixture.h"
#include "random.h"
#include "scheduler/question/victims.h"

enum { ROUNDS = 3000, PODS_MAX = 10 };

static Random random_state = {20261121};

static unsigned any(unsigned below) {
        return random_below(&random_state, below);
}

typedef struct Pods {
        const Profile *known[PODS_MAX];
        const Grant *grants[PODS_MAX];
        size_t n;
} Pods;

/* ---- a random node ---- */

static void add_budget(View *v, unsigned i) {
        char text[512];

        (void) snprintf(
                text, sizeof text,
                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"b%u\"},\"spec\":{\"selector\":{"
                "\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"%u\",\"%u\"]}]}},"
                "\"status\":{\"disruptionsAllowed\":%u}}",
                i, any(4), any(4), any(3));
        feed(v, VIEW_BUDGETS, REFLECTOR_ADDED, text);
}

static void add_pod(View *v, unsigned i, unsigned cards, bool core_mem) {
        char name[16], allocation[128], mem[16], labels[64], start[32], core[16];
        unsigned first = any(cards), second = any(cards), units = 1 + any(8);
        bool two = second != first && any(4) == 0, pending = any(8) == 0;

        (void) snprintf(name, sizeof name, "p%u", i);
        (void) snprintf(mem, sizeof mem, "%u", two ? 2 * units : units);
        (void) snprintf(core, sizeof core, "%u", 5 * (1 + any(10)));
        (void) snprintf(labels, sizeof labels, "\"app\":\"%u\"%s", any(4),
                        two ? ",\"aliyun.com/gpu-count\":\"2\"" : "");
        (void) snprintf(start, sizeof start, "2026-11-21T10:00:%02uZ", any(6));
        if (two)
                (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u,\\\"%u\\\":%u}}",
                                first, units, second, units);
        else
                (void) snprintf(allocation, sizeof allocation, "{\\\"0\\\":{\\\"%u\\\":%u}}", first, units);
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = name, .node = "n1", .mem = mem, .core = core_mem && !two ? core : NULL,
                      .allocation = pending ? NULL : allocation, .labels = labels, .start = start,
                      .priority = (int) (10 * any(5)), .terminating = any(10) == 0));
}

/* Annotations of a node with these cards: "GPU-0", "GPU-1" and so on, of 15 units each. */
static const char *node_members(unsigned cards) {
        static char text[512];
        size_t n = 0;

        n += (size_t) snprintf(text, sizeof text, ",\"annotations\":{%s\"aliquot.dev/cards\":\"[",
                               any(3) == 0 ? "\"aliquot.dev/max-pods-per-card\":\"3\"," : "");
        for (unsigned i = 0; i < cards; i++)
                n += (size_t) snprintf(text + n, sizeof text - n,
                                       "%s{\\\"index\\\":%u,\\\"units\\\":15,\\\"uuid\\\":\\\"GPU-%u\\\"}",
                                       i > 0 ? "," : "", i, i);
        (void) snprintf(text + n, sizeof text - n, "]\"}");
        return text;
}

static View *random_view(unsigned cards, bool core_mem) {
        unsigned n = 1 + any(PODS_MAX);
        View *v;

        ASSERT_OK(view_new(&v));
        feed(v, VIEW_NODES, REFLECTOR_ADDED,
             node_json("n1", core_mem ? "core_mem" : "cgpu", 15 * cards, cards, node_members(cards)));
        for (unsigned i = 0; i < 3; i++)
                add_budget(v, i);
        for (unsigned i = 0; i < n; i++)
                add_pod(v, i, cards, core_mem);
        return v;
}

/* ---- the oracle ---- */

static VictimCost oracle_cost(const View *v, const Pods *pods, unsigned set) {
        VictimCost cost = {.highest = INT64_MIN, .start = INT64_MAX};
        const Profile *members[PODS_MAX];
        const Budget *spent[PODS_MAX * BUDGETS_OF_A_POD_MAX], *of[BUDGETS_OF_A_POD_MAX];
        size_t n = 0, n_spent = 0;

        for (size_t i = 0; i < pods->n; i++)
                if (set >> i & 1)
                        members[n++] = pods->known[i];
        qsort(members, n, sizeof *members, victim_compare);
        for (size_t i = 0; i < n; i++) {
                size_t n_of = budgets_of(&v->budgets, members[i], of);
                bool violates = false;

                for (size_t k = 0; k < n_of; k++) {
                        int64_t used = 1;

                        for (size_t j = 0; j < n_spent; j++)
                                used += spent[j] == of[k];
                        violates |= used > budget_allowed(of[k]);
                        spent[n_spent++] = of[k];
                }
                cost.violations += violates;
                cost.number++;
                cost.sum += members[i]->is.priority + (INT64_C(1) << 31);
        }
        for (size_t i = 0; i < n; i++)
                cost.highest =
                        members[i]->is.priority > cost.highest ? members[i]->is.priority : cost.highest;
        for (size_t i = 0; i < n; i++)
                if (members[i]->is.priority == cost.highest && members[i]->is.start < cost.start)
                        cost.start = members[i]->is.start;
        return cost;
}

/* Bit i of set: pod i is gone. Pods that are being deleted always are. */
static bool oracle_fits(const LedgerNode *node, const Request *request, const Pods *pods, unsigned set) {
        const Grant *gone[PODS_MAX];
        size_t n = 0;
        Refusal refusal;

        for (size_t i = 0; i < pods->n; i++)
                if (set >> i & 1 || pods->known[i]->ending)
                        gone[n++] = pods->grants[i];
        return placement_check_without(node, request, gone, n, &refusal) == 0;
}

static bool oracle(const View *v, const LedgerNode *node, const Request *request, const Pods *pods,
                   int64_t priority, VictimCost *ret) {
        bool found = false;

        for (unsigned set = 0; set < 1u << pods->n; set++) {
                bool may = true;
                VictimCost cost;

                for (size_t i = 0; i < pods->n; i++)
                        may &= !(set >> i & 1) ||
                               (!pods->known[i]->ending && pods->known[i]->is.priority < priority);
                if (!may || !oracle_fits(node, request, pods, set))
                        continue;
                cost = oracle_cost(v, pods, set);
                if (!found || victim_cost_compare(&cost, ret) < 0)
                        *ret = cost;
                found = true;
        }
        return found;
}

static Pods pods_of(const View *v, const LedgerNode *node) {
        Pods pods = {.n = 0};

        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                pods.grants[pods.n] = g;
                pods.known[pods.n] = profiles_find(&v->profiles, grant_uid(g));
                ASSERT_TRUE(pods.known[pods.n] != NULL);
                pods.n++;
        }
        return pods;
}

/* The set makes room; no pod of it can be spared; its cost is as it says. */
static void check_choice(const View *v, const VictimQuestion *q, const Pods *pods, const VictimChoice *c) {
        unsigned set = 0;
        VictimCost cost;

        for (size_t i = 0; i < c->n; i++)
                for (size_t k = 0; k < pods->n; k++)
                        set |= (unsigned) (pods->known[k] == c->pods[i]) << k;
        ASSERT_INT(__builtin_popcount(set), c->n);
        ASSERT_TRUE(oracle_fits(q->node, q->request, pods, set));
        for (size_t k = 0; k < pods->n; k++)
                ASSERT_FALSE((set >> k & 1) && oracle_fits(q->node, q->request, pods, set & ~(1u << k)));
        cost = oracle_cost(v, pods, set);
        ASSERT_INT(victim_cost_compare(&cost, &c->cost), 0);
        ASSERT_INT(c->placement.n_slices, q->request->cards);
        for (size_t i = 0; i < c->placement.n_slices && q->request->choice; i++)
                ASSERT_INT(c->placement.slices[i].card, 0);
        /* A victim on another card would not help. */
        for (size_t k = 0; k < pods->n && q->request->choice; k++)
                if (set >> k & 1)
                        ASSERT_TRUE(grant_mem_on_card(pods->grants[k], 0) > 0 ||
                                    grant_pending(pods->grants[k]) > 0 ||
                                    placement_is_mixed_out_by(q->node, q->request, pods->grants[k]));
}

static void the_cheapest_set_is_found(void) {
        unsigned found = 0, none = 0;

        for (unsigned round = 0; round < ROUNDS; round++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                unsigned cards = 1 + any(3);
                bool core_mem = any(3) == 0, several = !core_mem && cards > 1 && any(3) == 0;
                _cleanup_(view_freep) View *v = random_view(cards, core_mem);
                RequestContainer container = {
                        .kind = CONTAINER_MAIN, .mem = 1 + any(15), .core = core_mem && any(2) ? 50 : 0};
                Request request = {.mem = container.mem,
                                   .core = container.core,
                                   .cards = several ? 2 : 1,
                                   .containers = &container,
                                   .n_containers = 1};
                bool chooses = !several && any(3) == 0; /* the first card */
                LedgerNode *node = ledger_node_find(v->ledger, STR("n1"));
                Pods pods = pods_of(v, node);
                uint64_t steps = 1 << 20;
                CardChoiceFault fault;
                VictimQuestion q = {.node = node,
                                    .profiles = &v->profiles,
                                    .budgets = &v->budgets,
                                    .request = &request,
                                    .priority = 10 * any(6),
                                    .steps = &steps};
                VictimChoice choice, greedy;
                VictimCost best;
                bool possible;
                int r;

                if (chooses)
                        ASSERT_OK(card_choice_read(&(PodAnnotations){.gpu_uuid = STR("GPU-0")}, &arena,
                                                   &request.choice, &fault));
                possible = oracle(v, node, &request, &pods, q.priority, &best);
                r = victims_choose(&q, &arena, &choice);

                ASSERT_INT(r, possible ? 0 : VICTIMS_E_NONE);
                steps = 0;
                ASSERT_INT(victims_choose(&q, &arena, &greedy), r);
                if (!possible) {
                        none++;
                        continue;
                }
                found++;
                check_choice(v, &q, &pods, &choice);
                if (victim_cost_compare(&choice.cost, &best) != 0)
                        TEST_FAIL_("round %u: a cheaper set was not found", round);
                check_choice(v, &q, &pods, &greedy);
                ASSERT_TRUE(victim_cost_compare(&choice.cost, &greedy.cost) <= 0);
                ASSERT_TRUE(ledger_check(v->ledger));
        }
        ASSERT_TRUE(found > ROUNDS / 4 && none > ROUNDS / 20);
}

/* Many pods on one card: the search ends by its steps, with a set of which no pod can be spared. */
static void many_pods_end_by_steps(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_(view_freep) View *v = NULL;
        RequestContainer container = {.kind = CONTAINER_MAIN, .mem = 60};
        Request request = {.mem = 60, .cards = 1, .containers = &container, .n_containers = 1};
        uint64_t steps = 1 << 20;
        VictimQuestion q = {.request = &request, .priority = 1000, .steps = &steps};
        VictimChoice choice;

        ASSERT_OK(view_new(&v));
        feed(v, VIEW_NODES, REFLECTOR_ADDED,
             node_json("n1", "cgpu", 126, 1, ",\"annotations\":{\"aliquot.dev/max-pods-per-card\":\"0\"}"));
        for (unsigned i = 0; i < 60; i++) {
                char name[16];

                (void) snprintf(name, sizeof name, "p%u", i);
                feed(v, VIEW_PODS, REFLECTOR_ADDED,
                     pod_json(.name = name, .node = "n1", .mem = i % 2 ? "3" : "1",
                              .allocation = i % 2 ? "{\\\"0\\\":{\\\"0\\\":3}}" : "{\\\"0\\\":{\\\"0\\\":1}}",
                              .priority = (int) (i % 7)));
        }
        q.node = ledger_node_find(v->ledger, STR("n1"));
        q.profiles = &v->profiles;
        q.budgets = &v->budgets;
        ASSERT_OK(victims_choose(&q, &arena, &choice));
        ASSERT_INT((1 << 20) - steps, VICTIMS_STEPS);
        ASSERT_TRUE(choice.n > 0 && choice.cost.highest < 6);
}

/* The kept parts of a pod, and that they are freed with it. */
static void profiles_come_and_go(void) {
        _cleanup_(view_freep) View *v = NULL;

        ASSERT_OK(view_new(&v));
        feed(v, VIEW_NODES, REFLECTOR_ADDED, node_json("n1", "cgpu", 15, 1, ""));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json(.name = "web", .node = "n1"));
        feed(v, VIEW_PODS, REFLECTOR_ADDED, pod_json(.name = "waits", .mem = "2"));
        ASSERT_INT(HASH_COUNT(v->profiles.holding) + HASH_COUNT(v->profiles.nominated), 0);
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = "a", .node = "n1", .mem = "2", .labels = "\"app\":\"a\"",
                      .requests = "\"cpu\":\"1\",\"memory\":\"1Gi\",\"aliyun.com/gpu-mem\":\"2\""));
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, pod_json(.name = "waits", .mem = "2", .nominated = "n1"));
        ASSERT_INT(HASH_COUNT(v->profiles.holding), 1);
        ASSERT_INT(HASH_COUNT(v->profiles.nominated), 1);
        ASSERT_TRUE(profile_size(profiles_find(&v->profiles, STR("uid-a"))) < 512);
        feed(v, VIEW_PODS, REFLECTOR_MODIFIED, pod_json(.name = "waits", .mem = "2", .node = "n1"));
        ASSERT_INT(HASH_COUNT(v->profiles.holding), 2);
        ASSERT_INT(HASH_COUNT(v->profiles.nominated), 0);
        feed(v, VIEW_PODS, REFLECTOR_DELETED, pod_json(.name = "a", .node = "n1", .mem = "2"));
        ASSERT_INT(HASH_COUNT(v->profiles.holding), 1);
        view_list_begin(v, VIEW_PODS);
        view_list_end(v, VIEW_PODS);
        ASSERT_INT(HASH_COUNT(v->profiles.holding), 0);
}

static void budgets_select_as_kubernetes_does(void) {
        static const struct {
                const char *selector;
                bool selects;
        } cases[] = {
                {"null", false},
                {"{}", true},
                {"{\"matchLabels\":{\"app\":\"a\"}}", true},
                {"{\"matchLabels\":{\"app\":\"b\"}}", false},
                {"{\"matchLabels\":{\"app\":\"a\",\"tier\":\"x\"}}", false},
                {"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"In\",\"values\":[\"b\",\"a\"]}]}",
                 true},
                {"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"NotIn\",\"values\":[\"a\"]}]}",
                 false},
                {"{\"matchExpressions\":[{\"key\":\"no\",\"operator\":\"NotIn\",\"values\":[\"a\"]}]}", true},
                {"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}", true},
                {"{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"DoesNotExist\"}]}", false},
                {"{\"matchExpressions\":[{\"key\":\"no\",\"operator\":\"DoesNotExist\"}]}", true},
        };
        const Budget *of[BUDGETS_OF_A_POD_MAX];
        _cleanup_(view_freep) View *v = NULL;
        const Profile *a;

        ASSERT_OK(view_new(&v));
        feed(v, VIEW_PODS, REFLECTOR_ADDED,
             pod_json(.name = "a", .node = "n1", .mem = "2", .labels = "\"app\":\"a\""));
        a = profiles_find(&v->profiles, STR("uid-a"));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                char text[512];

                (void) snprintf(text, sizeof text,
                                "{\"metadata\":{\"namespace\":\"default\",\"name\":\"b\"},\"spec\":{"
                                "\"selector\":%s}}",
                                cases[i].selector);
                feed(v, VIEW_BUDGETS, REFLECTOR_MODIFIED, text);
                ASSERT_INT(budgets_of(&v->budgets, a, of), cases[i].selects);
        }
        feed(v, VIEW_BUDGETS, REFLECTOR_MODIFIED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"b\"},\"spec\":{\"selector\":{}},\"status\":"
             "{"
             "\"disruptedPods\":{\"a\":\"2026-11-21T10:00:00Z\"}}}");
        ASSERT_INT(budgets_of(&v->budgets, a, of), 0); /* counted by the API server already */
        feed(v, VIEW_BUDGETS, REFLECTOR_ADDED,
             "{\"metadata\":{\"namespace\":\"other\",\"name\":\"b\"},\"spec\":{\"selector\":{}}}");
        ASSERT_INT(budgets_of(&v->budgets, a, of), 0);
        /* A budget that cannot be read keeps its earlier state. */
        feed(v, VIEW_BUDGETS, REFLECTOR_MODIFIED,
             "{\"metadata\":{\"namespace\":\"default\",\"name\":\"b\"},\"spec\":{\"selector\":{"
             "\"matchExpressions\":[{"
             "\"key\":\"a\",\"operator\":\"in\"}]}}}");
        ASSERT_INT(v->stats.malformed[VIEW_BUDGETS], 1);
        view_list_begin(v, VIEW_BUDGETS);
        view_list_end(v, VIEW_BUDGETS);
        ASSERT_INT(v->stats.differences[VIEW_BUDGETS], 2); /* it dropped both */
        ASSERT_FALSE(v->budgets.by_name);
}

int main(void) {
        return TEST_MAIN(TEST(the_cheapest_set_is_found), TEST(many_pods_end_by_steps),
                         TEST(profiles_come_and_go), TEST(budgets_select_as_kubernetes_does));
}
