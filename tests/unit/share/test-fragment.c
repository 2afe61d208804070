/* SPDX-License-Identifier: Apache-2.0 */

/* The order of nodes by their expected fragment, beside an oracle that follows the definition. The
 * oracle lists all grants, puts the pod on its cards, and adds up the node shape by shape. It knows
 * the cpu of nodes and of other pods from its own lists. */

#include <math.h>

#include "making.h"
#include "random.h"
#include "share/fragment.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"

/* Below 64 grants the typical shapes follow each change. */
enum { NODES = 8, FEW = 60, MANY = 200, ROUNDS = 4000 };

/* Allocatable cpu by shape of node; 0: the node does not say. */
static const double cores[] = {16, 96, 0, 6};
#define WITH_CPU(mem, count, cpu)                                                                            \
        "},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"" #mem                                      \
        "\",\"aliyun.com/gpu-count\":\"" #count "\",\"cpu\":\"" cpu "\"}}}"

/* Pods without a grant: their thousandths of a core by node. */
static uint32_t others[NODES];

static Random random_state = {1};

static uint32_t pick(uint32_t below) {
        return random_below(&random_state, below);
}

/* ---- the oracle ---- */

typedef struct Kind {
        uint32_t cards, mem;
        size_t count;
} Kind;

typedef struct Kinds {
        Kind list[MANY];
        size_t n, grants;
} Kinds;

static Kind kind_of(const Grant *g) {
        Kind k = {.count = 1};
        size_t n;
        const Slice *slices = grant_slices(g, &n);

        for (size_t i = 0; i < n; i++) {
                uint32_t mem = grant_mem_on_card(g, slices[i].card);

                k.cards += i == 0 || slices[i].card != slices[i - 1].card;
                k.mem = mem > k.mem ? mem : k.mem;
        }
        return k;
}

static void add_kind(Kinds *kinds, Kind k) {
        for (size_t i = 0; i < kinds->n; i++)
                if (kinds->list[i].cards == k.cards && kinds->list[i].mem == k.mem) {
                        kinds->list[i].count++;
                        return;
                }
        ASSERT_TRUE(kinds->n < ELEMENTSOF(kinds->list));
        kinds->list[kinds->n++] = k;
}

static int by_count(const void *a, const void *b) {
        const Kind *x = a, *y = b;

        if (x->count != y->count)
                return x->count > y->count ? -1 : 1;
        if (x->cards != y->cards)
                return x->cards < y->cards ? -1 : 1;
        return x->mem < y->mem ? -1 : 1;
}

/* The most frequent shapes that make up 95 percent. */
static Kinds typical(const Ledger *l) {
        Kinds kinds = {0};
        size_t all = 0;

        for (size_t i = 0; i < ledger_n_nodes(l); i++)
                for (const Grant *g = ledger_node_grants(ledger_node_at(l, i)); g; g = grant_next(g)) {
                        add_kind(&kinds, kind_of(g));
                        all++;
                }
        qsort(kinds.list, kinds.n, sizeof *kinds.list, by_count);
        for (size_t i = 0; i < kinds.n; i++) {
                if ((double) kinds.grants >= 0.95 * (double) all)
                        kinds.n = i;
                else
                        kinds.grants += kinds.list[i].count;
        }
        return kinds;
}

static double fragment_for(const LedgerNode *n, const Kind *k) {
        double small = 0, all = 0;
        uint32_t enough = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                double left = c->units > 0 ? (double) ledger_card_free(n, c) / c->units : 0;

                all += left;
                if (c->units > 0 && ledger_card_free(n, c) >= k->mem)
                        enough++;
                else
                        small += left;
        }
        return enough >= k->cards ? small : all;
}

/* The mean of what pods with a grant request for a whole card. */
static double cores_per_card(const Ledger *l) {
        double cpu = 0, parts = 0;

        for (size_t i = 0; i < ledger_n_nodes(l); i++) {
                const LedgerNode *n = ledger_node_at(l, i);

                for (const Grant *g = ledger_node_grants(n); g; g = grant_next(g))
                        cpu += grant_cpu(g) / 1000.0;
                for (size_t k = 0; k < n->n_cards; k++)
                        parts += (double) n->cards[k].used / n->cards[k].units;
        }
        return parts > 0 ? cpu / parts : 0;
}

/* Parts of cards that are free, but for which the cpu left is not enough. */
static double without_cpu(const LedgerNode *n, double per_card) {
        size_t number = (size_t) (n->name[1] - '0');
        double cpu = cores[number % ELEMENTSOF(cores)], parts = 0;

        if (cpu <= 0 || per_card <= 0)
                return 0;
        cpu -= others[number] / 1000.0;
        for (const Grant *g = ledger_node_grants(n); g; g = grant_next(g))
                cpu -= grant_cpu(g) / 1000.0;
        for (size_t i = 0; i < n->n_cards; i++)
                parts += (double) ledger_card_free(n, &n->cards[i]) / n->cards[i].units;
        parts -= cpu > 0 ? cpu / per_card : 0;
        return parts > 0 ? parts : 0;
}

static double fragment_of(const LedgerNode *n, const Kinds *kinds) {
        double sum = 0;

        for (size_t i = 0; i < kinds->n; i++)
                sum += fragment_for(n, &kinds->list[i]) * (double) kinds->list[i].count /
                       (double) kinds->grants;
        return sum;
}

/* ---- random ledgers ---- */

static void make_nodes(Ledger *l) {
        static const char *const shapes[] = {WITH_CPU(60, 4, "16"), WITH_CPU(640, 8, "96000m"), EQUAL(640, 8),
                                             WITH_CPU(16, 1, "6")};

        for (uint32_t i = 0; i < NODES; i++) {
                char name[8];

                (void) snprintf(name, sizeof name, "n%u", i);
                set_node(l, name, "share", i == NODES - 1 ? "spread" : "", shapes[i % ELEMENTSOF(shapes)]);
        }
}

static Request random_request(RequestContainer *c) {
        static const uint32_t sizes[] = {1, 2, 3, 5, 8, 15, 16, 40, 80}, cards[] = {1, 1, 1, 1, 2, 4};
        Request r = simple(c, sizes[pick(ELEMENTSOF(sizes))], 0);

        r.cards = cards[pick(ELEMENTSOF(cards))];
        r.cpu = r.mem * r.cards * 100 + pick(8) * 1500;
        return r;
}

static void change_others(Ledger *l) {
        uint32_t node = pick(NODES), cpu = others[node] > 0 ? 0 : 1 + pick(60000);
        char name[8];

        (void) snprintf(name, sizeof name, "n%u", node);
        if (cpu > 0)
                ASSERT_TRUE(ledger_node_add_cpu(l, str_from(name), cpu) ==
                            ledger_node_find(l, str_from(name)));
        else
                ledger_node_subtract_cpu(ledger_node_find(l, str_from(name)), others[node]);
        others[node] = cpu;
        ASSERT_TRUE(ledger_check(l));
}

/* FragmentGrowth by the oracle: of the node as it is, and as it is with the grant. */
typedef struct FragmentGrowth {
        double fragment, cpu;
} FragmentGrowth;

static FragmentGrowth true_growth(Ledger *l, LedgerNode *n, const Request *r, const Kinds *kinds,
                                  const LedgerCard **cards) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        double per_card = cores_per_card(l);
        FragmentGrowth growth = {-fragment_of(n, kinds), -without_cpu(n, per_card)};
        Placement p;
        Refusal refusal;
        Grant *g;

        ASSERT_OK(placement_choose_cards(n, r, &arena, &p, &refusal));
        for (uint32_t i = 0; i < r->cards; i++)
                cards[i] = ledger_card_find(n, p.slices[i].card);
        g = give(l, n, &p, r);
        growth.fragment += fragment_of(n, kinds);
        growth.cpu += without_cpu(n, per_card);
        (void) grant_free(g);
        return growth;
}

static uint32_t level_of_rank(const LedgerNode *n, const Request *r) {
        return placement_rank(n, r) >> 32 & 0xffff;
}

static void compare_levels(const Ledger *l, const LedgerNode *n, const Request *r,
                           const LedgerCard *const *cards) {
        ASSERT_INT(level_of_rank(n, r), fragment_level(fragment_growth(&l->fragment, n, r, cards), 40));
        ASSERT_INT(placement_rank(n, r) >> 16 & 0xffff,
                   fragment_level(fragment_cpu_growth(&l->fragment, n, r, cards), 200));
}

static size_t n_cpu_grows, n_cpu_shrinks;

static void compare_growth(Ledger *l, const Request *r) {
        Kinds kinds = typical(l);

        for (size_t i = 0; i < ledger_n_nodes(l); i++) {
                LedgerNode *n = ledger_node_at(l, i);
                const LedgerCard *cards[CARD_INDEX_MAX + 1];
                Refusal refusal;
                FragmentGrowth expected;
                double seen, cpu;

                if (placement_check(n, r, &refusal) != 0)
                        continue;
                expected = true_growth(l, n, r, &kinds, cards);
                fragment_refresh(&l->fragment, &l->tally, &l->load);
                seen = (double) fragment_growth(&l->fragment, n, r, cards) / FRAGMENT_ONE / FRAGMENT_ONE;
                cpu = (double) fragment_cpu_growth(&l->fragment, n, r, cards) / FRAGMENT_ONE / FRAGMENT_ONE;
                ASSERT_TRUE(fabs(seen - expected.fragment) < 0.002);
                ASSERT_TRUE(fabs(cpu - expected.cpu) < 0.02);
                n_cpu_grows += cpu > 0.2;
                n_cpu_shrinks += cpu < -0.2;
                if (ledger_node_policy(n) == PLACEMENT_BINPACK)
                        compare_levels(l, n, r, cards);
        }
}

/* A rank that is kept is that of the node as it is now. */
static void compare_kept(Ledger *l, const Request *r) {
        for (size_t i = 0; i < ledger_n_nodes(l); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                LedgerNode *n = ledger_node_at(l, i);
                const LedgerCard *cards[CARD_INDEX_MAX + 1];
                Refusal refusal;
                Placement p;

                if (ledger_node_policy(n) != PLACEMENT_BINPACK ||
                    placement_choose_cards(n, r, &arena, &p, &refusal) != 0)
                        continue;
                for (uint32_t k = 0; k < r->cards; k++)
                        cards[k] = ledger_card_find(n, p.slices[k].card);
                compare_levels(l, n, r, cards);
        }
}

static void random_grants(size_t most, void (*compare)(Ledger *l, const Request *r)) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Grant *grants[MANY];
        size_t n = 0;

        memset(others, 0, sizeof others);
        ASSERT_OK(ledger_new(&l));
        ledger_set_order(l, NODE_ORDER_FRAGMENTATION);
        make_nodes(l);
        for (int round = 0; round < ROUNDS; round++) {
                RequestContainer c;
                Request r = random_request(&c);
                LedgerNode *chosen = pick(5) < 2 || n == most ? NULL : placement_choose_node(l, &r);
                char words[512];

                if (chosen)
                        grants[n++] = place(l, ledger_node_name(chosen).data, &r, words);
                else if (n > 0) {
                        size_t at = pick((uint32_t) n);

                        (void) grant_free(grants[at]);
                        grants[at] = grants[--n];
                }
                if (round % 3 == 0)
                        change_others(l);
                if (round % 4 == 0)
                        compare(l, &r);
        }
        ASSERT_TRUE(n > most / 4);
        while (n > 0)
                (void) grant_free(grants[--n]);
        ASSERT_TRUE(!l->tally.table);
}

static void growth_is_that_of_the_definition(void) {
        random_grants(FEW, compare_growth);
        ASSERT_TRUE(n_cpu_grows > ROUNDS / 100 && n_cpu_shrinks > ROUNDS / 100);
}

static void kept_ranks_follow_the_nodes(void) {
        random_grants(MANY, compare_kept);
}

/* ---- single rules ---- */

static void a_level_is_40_thousandths_of_a_card(void) {
        const int64_t card = (int64_t) FRAGMENT_ONE * FRAGMENT_ONE;

        ASSERT_INT(fragment_level(0, 40), FRAGMENT_LEVEL_SAME);
        ASSERT_INT(fragment_level(card / 50, 40), FRAGMENT_LEVEL_SAME + 1);
        ASSERT_INT(fragment_level(card / 20, 40), FRAGMENT_LEVEL_SAME + 2);
        ASSERT_INT(fragment_level(-card / 50, 40), FRAGMENT_LEVEL_SAME);
        ASSERT_INT(fragment_level(-card / 20, 40), FRAGMENT_LEVEL_SAME - 1);
        ASSERT_INT(fragment_level(1000 * card, 40), FRAGMENT_LEVELS - 1);
        ASSERT_INT(fragment_level(-1000 * card, 40), 0);
}

/* A pod of 5 goes where it leaves room for the usual pods of 10, not to the fuller node. */
static void what_is_left_counts_not_what_is_used(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request ten = simple(&c, 10, 0), five;
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "fuller", "share", "", EQUAL(15, 1));
        set_node(l, "emptier", "share", "", EQUAL(25, 1));
        set_node(l, "full", "share", "", EQUAL(100, 1));
        for (int i = 0; i < 10; i++)
                ASSERT_TRUE(place(l, "full", &ten, words) != NULL);
        five = simple(&c, 5, 0);
        ASSERT_TRUE(place(l, "fuller", &five, words) != NULL);
        ASSERT_TRUE(place(l, "emptier", &five, words) != NULL);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &five)), STR("fuller"));
        ledger_set_order(l, NODE_ORDER_FRAGMENTATION);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &five)), STR("emptier"));
}

/* Nodes of one level: the pod goes where cpu for the other cards stays. */
static void cpu_decides_between_nodes_of_one_level(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 10, 0);
        LedgerNode *larger;
        char words[512];

        ASSERT_OK(ledger_new(&l));
        ledger_set_order(l, NODE_ORDER_FRAGMENTATION);
        set_node(l, "full", "share", "", EQUAL(10, 1));
        r.cpu = 10000;
        ASSERT_TRUE(place(l, "full", &r, words) != NULL);
        set_node(l, "a", "share", "", WITH_CPU(40, 4, "40"));
        set_node(l, "b", "share", "", WITH_CPU(40, 4, "80"));
        r.cpu = 20000;
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        larger = ledger_node_add_cpu(l, STR("b"), 60000); /* 20 cores are left there for four cards */
        ASSERT_TRUE(larger == ledger_node_find(l, STR("b")));
        r.cpu = 0;
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        ledger_node_subtract_cpu(larger, 60000);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("a"));
}

/* Whole cards are no shares of one unit: neither their shape nor their cpu counts. */
static void whole_cards_are_not_among_the_shapes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        Grant *g;
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "topology", "", EQUAL(4, 4));
        r.whole = true;
        r.cards = 2;
        r.cpu = 8000;
        g = place(l, "n", &r, words);
        ASSERT_TEXT(words, "");
        ASSERT_INT(l->tally.grants, 0);
        ASSERT_INT(l->load.cpu, 0);
        ASSERT_INT(l->load.parts, 0);
        ASSERT_INT(ledger_node_cpu(ledger_node_find(l, STR("n"))), 8000);
        (void) grant_free(g);
        ASSERT_INT(ledger_node_cpu(ledger_node_find(l, STR("n"))), 0);
}

/* Of a node whose object is gone, or that has no cards now, the cards of its pods are not known. */
static void cpu_counts_together_with_its_cards(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 10, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        r.cpu = 8000;
        set_node(l, "n", "share", "", EQUAL(10, 1));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_INT(l->load.cpu, 8000);
        ASSERT_INT(l->load.parts, FRAGMENT_ONE);
        ledger_node_remove(l, STR("n"));
        ASSERT_INT(l->load.cpu, 0);
        ASSERT_INT(l->load.parts, 0);
        set_node(l, "n", "share", "", EQUAL(10, 1));
        ASSERT_INT(l->load.cpu, 8000);
        ASSERT_TRUE(ledger_check(l));
}

/* A kubelet writes the status of its node, so any quantity may stand there. */
static void more_cpu_than_a_machine_has_is_cut(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 10, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        ledger_set_order(l, NODE_ORDER_FRAGMENTATION);
        set_node(l, "full", "share", "", EQUAL(10, 1));
        r.cpu = 1;
        ASSERT_TRUE(place(l, "full", &r, words) != NULL);
        set_node(l, "odd", "share", "", WITH_CPU(10, 1, "9P"));
        ASSERT_INT(ledger_node_find(l, STR("odd"))->now.cpu, UINT32_MAX);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("odd"));
}

/* The cpu of a pod keeps its node as a grant does. */
static void cpu_keeps_a_node_without_an_object(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        LedgerNode *n;

        ASSERT_OK(ledger_new(&l));
        n = ledger_node_add_cpu(l, STR("n"), 500);
        set_node(l, "n", "share", "", EQUAL(10, 1));
        ASSERT_TRUE(ledger_node_find(l, STR("n")) == n);
        ledger_node_remove(l, STR("n"));
        ASSERT_INT(ledger_node_cpu(ledger_node_find(l, STR("n"))), 500);
        ledger_node_subtract_cpu(n, 500);
        ASSERT_TRUE(!ledger_node_find(l, STR("n")));
}

int main(void) {
        return TEST_MAIN(TEST(growth_is_that_of_the_definition), TEST(kept_ranks_follow_the_nodes),
                         TEST(a_level_is_40_thousandths_of_a_card),
                         TEST(what_is_left_counts_not_what_is_used),
                         TEST(cpu_decides_between_nodes_of_one_level),
                         TEST(whole_cards_are_not_among_the_shapes), TEST(cpu_counts_together_with_its_cards),
                         TEST(more_cpu_than_a_machine_has_is_cut), TEST(cpu_keeps_a_node_without_an_object));
}
