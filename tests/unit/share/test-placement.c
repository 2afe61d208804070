/* SPDX-License-Identifier: Apache-2.0 */

/* The choice of node and cards: the documented examples, and the boundary of each rule. */

#include "making.h"
#include "random.h"
#include "share/ledger_summary.h"

static uint64_t used(const Ledger *l, const char *node, size_t card) {
        return card_at(l, node, card)->used;
}

static void binpack_fills_a_card_and_spread_takes_another(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c2, c3;
        Request two = simple(&c2, 2, 0), three = simple(&c3, 3, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "bin", "share", "", EQUAL(30, 2));
        set_node(l, "spr", "share", "spread", EQUAL(30, 2));
        (void) place(l, "bin", &two, words);
        (void) place(l, "bin", &three, words);
        (void) place(l, "spr", &two, words);
        (void) place(l, "spr", &three, words);
        ASSERT_INT(used(l, "bin", 0), 5);
        ASSERT_INT(used(l, "bin", 1), 0);
        ASSERT_INT(used(l, "spr", 0), 2);
        ASSERT_INT(used(l, "spr", 1), 3);
}

static void the_last_unit_fits_and_one_more_does_not(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 14, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        g = place(l, "n", &r, words);
        r = simple(&c, 2, 0);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 2 of gpu-mem free: gpu0 1 of 15");
        r = simple(&c, 1, 0);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "n", &r, words));
        (void) grant_free(g);
        ASSERT_INT(used(l, "n", 0), 1);
        r = simple(&c, 16, 0);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "16 of gpu-mem is more than any card of the node has, the largest has 15");
}

static void compute_needs_its_mode_and_never_mixes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c, cc;
        Request mem = simple(&c, 2, 0), core = simple(&cc, 2, 30);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "cgpu", "cgpu", "", EQUAL(60, 4));
        set_node(l, "cm", "core_mem", "", EQUAL(15, 1));
        ASSERT_TRUE(!place(l, "cgpu", &core, words));
        ASSERT_TEXT(words, "the node's mode is cgpu, compute percent needs core_mem");
        for (int i = 0; i < 3; i++)
                ASSERT_TRUE(place(l, "cm", &core, words) != NULL);
        ASSERT_TRUE(!place(l, "cm", &core, words));
        ASSERT_TEXT(words, "no card has 2 of gpu-mem and 30 % of compute free: gpu0 9 of 15 and 10 %");
        ASSERT_TRUE(!place(l, "cm", &mem, words));
        ASSERT_CONTAINS(words, "takes none with memory alone");
        while ((g = ledger_node_grants(ledger_node_find(l, STR("cm")))))
                (void) grant_free(g);
        ASSERT_TRUE(place(l, "cm", &mem, words) != NULL);
        ASSERT_TRUE(!place(l, "cm", &core, words));
        ASSERT_CONTAINS(words, "takes none with compute percent");
}

static void cards_of_different_sizes_are_each_counted(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 20, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "",
                 ",\"annotations\":{\"aliquot.dev/"
                 "cards\":\"[{\\\"index\\\":0,\\\"units\\\":15},{\\\"index\\\":1,\\\"units\\\":22},"
                 "{\\\"index\\\":2,\\\"units\\\":80,\\\"healthy\\\":false}]\"}}}");
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_INT(used(l, "n", 1), 20);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 20 of gpu-mem free: gpu0 15 of 15, gpu1 2 of 22, gpu2 unhealthy");
        r = simple(&c, 3, 0);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL); /* on the untouched card */
        ASSERT_INT(used(l, "n", 0), 3);
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){0, 1}, 2));
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "every card of the node is unhealthy");
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), NULL, 0));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

static void several_cards_take_the_same_each(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 2, 0);
        char words[512];
        size_t n;
        Grant *g;

        r.cards = 4;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(60, 4));
        g = place(l, "n", &r, words);
        ASSERT_TRUE(g != NULL);
        (void) grant_slices(g, &n);
        ASSERT_INT(n, 4);
        for (size_t i = 0; i < 4; i++)
                ASSERT_INT(used(l, "n", i), 2);
        r.cards = 5;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the pod wants 5 cards, the node has 4 healthy cards");
        r.cards = 4;
        r.mem = c.mem = 14;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "fewer than 4 cards have 14 of gpu-mem free: gpu0 13 of 15, gpu1 13 of 15, gpu2 "
                           "13 of 15, gpu3 13 of 15");
}

#define CARD(i, units, healthy) "{\\\"index\\\":" #i ",\\\"units\\\":" #units ",\\\"healthy\\\":" #healthy "}"

static void says_when_cards_can_never_be_enough(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 16, 0);
        char words[512];

        r.cards = 2;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "",
                 ANNOTATIONS("\"aliquot.dev/cards\":\"[" CARD(0, 15, true) "," CARD(1, 40, true) "," CARD(
                         2, 22, false) "," CARD(3, 12, true) "]\"") "}}");
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "16 of gpu-mem on each of 2 cards is more than the node has, the smallest of its "
                           "largest has 15");
        r.mem = c.mem = 15;
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        r.mem = c.mem = 1;
        r.cards = 4;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the pod wants 4 cards, the node has 3 healthy cards");
}

/* Even cards are joined by NVLink, and odd cards. */
#define PEERS(i, units, peers) "{\\\"index\\\":" #i ",\\\"units\\\":" #units ",\\\"peers\\\":[" peers "]}"
#define TWO_PAIRS(u)                                                                                         \
        PEERS(0, u, "0,8,50,8")                                                                              \
        "," PEERS(1, u, "8,0,8,50") "," PEERS(2, u, "50,8,0,8") "," PEERS(3, u, "8,50,8,0")

static void cards_of(const Grant *g, uint32_t ret[static 4], size_t *ret_n) {
        const Slice *slices = grant_slices(g, ret_n);

        for (size_t i = 0; i < *ret_n && i < 4; i++)
                ret[i] = slices[i].card;
}

static void several_cards_are_joined_ones(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 15, 0);
        char words[512];
        uint32_t cards[4];
        size_t n;

        ASSERT_OK(ledger_new(&l));
        r.cards = 2;
        set_node(l, "n", "share", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[" TWO_PAIRS(15) "]\"") "}}");
        cards_of(place(l, "n", &r, words), cards, &n);
        ASSERT_INT(cards[0] + 10 * cards[1] + 100 * n, 220);
        cards_of(place(l, "n", &r, words), cards, &n);
        ASSERT_INT(cards[0] + 10 * cards[1] + 100 * n, 231);
        ASSERT_TRUE(!place(l, "n", &r, words));
}

/* The policy comes first: links decide between cards that are alike by it. */
static void links_decide_after_the_policy(void) {
        static const char *const policies[] = {"binpack", "spread"};

        for (size_t i = 0; i < ELEMENTSOF(policies); i++) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                RequestContainer c, cc;
                Request one = simple(&c, 3, 0), two = simple(&cc, 2, 0);
                char words[512];
                uint32_t cards[4] = {0};
                size_t n;

                ASSERT_OK(ledger_new(&l));
                two.cards = 2;
                set_node(l, "n", "share", policies[i],
                         ANNOTATIONS("\"aliquot.dev/cards\":\"[" TWO_PAIRS(15) "]\"") "}}");
                (void) place(l, "n", &one, words); /* on card 0 */
                cards_of(place(l, "n", &two, words), cards, &n);
                ASSERT_INT(n, 2);
                /* binpack: the used card and its peer; spread: the pair without card 0 */
                ASSERT_INT(cards[0] + 10 * cards[1], i == 0 ? 20 : 31);
        }
}

/* Mode topology: a card is one unit, and only pods of whole cards are placed there. */
static void whole_cards_of_topology_nodes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c, cc;
        Request two = simple(&c, 1, 0), memory = simple(&cc, 1, 0);
        char words[512];
        uint32_t cards[4];
        size_t n;

        ASSERT_OK(ledger_new(&l));
        two.cards = 2;
        two.whole = true;
        set_node(l, "n", "topology", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[" TWO_PAIRS(1) "]\"") "}}");
        set_node(l, "s", "share", "", EQUAL(60, 4));
        ASSERT_TRUE(!place(l, "s", &two, words));
        ASSERT_TEXT(words, "the node's mode is share, aliyun.com/gpu needs topology");
        ASSERT_TRUE(!place(l, "n", &memory, words));
        ASSERT_TEXT(words, "the node's mode is topology, gpu-mem needs share, cgpu or core_mem");
        ASSERT_TRUE(placement_choose_node(l, &two) == ledger_node_find(l, STR("n")));
        ASSERT_TRUE(placement_choose_node(l, &memory) == ledger_node_find(l, STR("s")));
        cards_of(place(l, "n", &two, words), cards, &n);
        ASSERT_INT(cards[0] + 10 * cards[1] + 100 * n, 220);
        two.cards = 3;
        ASSERT_TRUE(!place(l, "n", &two, words));
        ASSERT_TEXT(words, "the pod wants 3 whole cards, 2 of the node are idle");
        two.cards = 5;
        ASSERT_TRUE(!place(l, "n", &two, words));
        ASSERT_TEXT(words, "the pod wants 5 cards, the node has 4 healthy cards");
        two.cards = 1;
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){1, 3}, 2));
        ASSERT_TRUE(!place(l, "n", &two, words));
        ASSERT_TEXT(words, "the pod wants 1 whole card, 0 of the node are idle");
}

/* A trial takes the cards that a bind would take. */
static void a_trial_sees_the_links(void) {
        _cleanup_(placement_trial_freep) PlacementTrial *t = NULL;
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 15, 0);
        Refusal refusal;
        Placement p;

        ASSERT_OK(ledger_new(&l));
        r.cards = 2;
        set_node(l, "n", "share", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[" TWO_PAIRS(15) "]\"") "}}");
        ASSERT_OK(placement_trial_new(ledger_node_find(l, STR("n")), &t));
        ASSERT_TRUE(placement_trial_place(t, &r));
        ASSERT_OK(placement_trial_choose_cards(t, &r, &arena, &p, &refusal));
        ASSERT_INT(p.slices[0].card, 1);
        ASSERT_INT(p.slices[1].card, 3);
}

static void lists_sixteen_cards_and_counts_the_others(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 15, 0), one = simple(&c, 15, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(270, 18));
        r.cards = 18;
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "n", &one, words));
        ASSERT_CONTAINS(words, ", gpu15 0 of 15 and 2 more");
}

/* placement_check_without() with a victim that has no card yet: its pending amount counts as gone
 * as well. */
static void a_pending_pod_that_leaves_frees_its_place(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        GrantSpec spec = {.name = STR("x"), .uid = STR("u"), .node = STR("n"), .pending_mem = 1};
        RequestContainer c;
        Request r = simple(&c, 2, 0);
        Refusal refusal;
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", ANNOTATIONS("\"aliquot.dev/max-pods-per-card\":\"1\"") EQUAL(15, 1));
        ASSERT_OK(grant_new(l, &spec, &g));
        ASSERT_INT(placement_check(grant_node(g), &r, &refusal), PLACEMENT_E_REFUSED);
        ASSERT_TRUE(refusal_may_pass(refusal.code));
        ASSERT_OK(placement_check_without(grant_node(g), &r, (const Grant *const *) &g, 1, &refusal));
        r.mem = c.mem = 16;
        ASSERT_INT(placement_check_without(grant_node(g), &r, (const Grant *const *) &g, 1, &refusal),
                   PLACEMENT_E_REFUSED);
        ASSERT_INT(refusal.code, REFUSAL_CARD_TOO_SMALL);
        ASSERT_FALSE(refusal_may_pass(refusal.code));
}

enum { CROWD_MAX = 12, CROWD_CARDS_MAX = 4, CROWD_UNITS = 15 };

/* Pods that another scheduler bound at once: none has a card, and each counts on every card. */
typedef struct Crowd {
        Ledger *ledger;
        const LedgerNode *node;
        Grant *grants[CROWD_MAX];
        uint32_t mem[CROWD_MAX], core[CROWD_MAX];
        uint32_t n, cards, free[CROWD_CARDS_MAX], core_free[CROWD_CARDS_MAX];
} Crowd;

static void crowd_bind(Crowd *c, Random *random, bool alike) {
        bool core = random_below(random, 2) > 0;

        c->n = 2 + random_below(random, CROWD_MAX - 1);
        for (uint32_t i = 0; i < c->n; i++) {
                GrantSpec spec = {.namespace_ = STR("d"), .node = STR("n"), .has_core = core};
                char name[16];

                c->mem[i] = alike && i > 0 ? c->mem[0] : 1 + random_below(random, CROWD_UNITS);
                c->core[i] = !core ? 0 : alike && i > 0 ? c->core[0] : 5 + 5 * random_below(random, 20);
                (void) snprintf(name, sizeof name, "p%u", i);
                spec.name = spec.uid = str_from(name);
                spec.pending_mem = c->mem[i];
                spec.pending_core = c->core[i];
                ASSERT_OK(grant_new(c->ledger, &spec, &c->grants[i]));
        }
}

/* Whether a card of the model has room. */
static bool crowd_fits(const Crowd *c, uint32_t i) {
        for (uint32_t card = 0; card < c->cards; card++)
                if (c->free[card] >= c->mem[i] && c->core_free[card] >= c->core[i])
                        return true;
        return false;
}

/* What the node does when the kubelet admits the pod. True: it runs. */
static bool crowd_admit(Crowd *c, uint32_t i) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer container;
        Request request = simple(&container, c->mem[i], c->core[i]);
        Placement placement;
        Refusal refusal;

        c->grants[i] = grant_free(c->grants[i]);
        c->node = ledger_node_find(c->ledger, STR("n"));
        ASSERT_OK(placement_trial_new(c->node, &trial));
        placement_trial_take_pending(trial);
        if (placement_trial_choose_cards(trial, &request, &arena, &placement, &refusal) != 0)
                return false;
        c->grants[i] = give(c->ledger, c->node, &placement, &request);
        ASSERT_INT(placement.n_slices, 1);
        ASSERT_TRUE(c->free[placement.slices[0].card] >= c->mem[i]);
        ASSERT_TRUE(c->core_free[placement.slices[0].card] >= c->core[i]);
        c->free[placement.slices[0].card] -= c->mem[i];
        c->core_free[placement.slices[0].card] -= c->core[i];
        return true;
}

static uint32_t crowd_most(const Crowd *c) {
        uint32_t each = CROWD_UNITS / c->mem[0],
                 by_core = c->core[0] > 0 ? CORE_PER_CARD / c->core[0] : UINT32_MAX, all;

        all = (each < by_core ? each : by_core) * c->cards;
        return all < c->n ? all : c->n;
}

/* Whatever the order of their admission, a pod is refused only where no card has room. Of pods that
 * are alike, as many run as fit. */
static void of_pods_that_were_bound_at_once_as_many_run_as_fit(void) {
        Random random = {31};

        for (int round = 0; round < 2000; round++) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                Crowd c = {.cards = 1 + random_below(&random, CROWD_CARDS_MAX)};
                bool alike = random_below(&random, 2) > 0;
                uint32_t order[CROWD_MAX] = {0}, ran = 0;
                char members[160];

                ASSERT_OK(ledger_new(&l));
                c.ledger = l;
                (void) snprintf(members, sizeof members,
                                "},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"%u\",\"aliyun.com/"
                                "gpu-count\":\"%u\"}}}",
                                c.cards * CROWD_UNITS, c.cards);
                set_node(l, "n", "core_mem", random_below(&random, 2) > 0 ? "spread" : "", members);
                for (uint32_t card = 0; card < c.cards; card++) {
                        c.free[card] = CROWD_UNITS;
                        c.core_free[card] = CORE_PER_CARD;
                }
                crowd_bind(&c, &random, alike);
                for (uint32_t i = 0; i < c.n; i++) {
                        uint32_t at = random_below(&random, i + 1);

                        order[i] = at == i ? i : order[at];
                        order[at] = i;
                }
                for (uint32_t i = 0; i < c.n; i++) {
                        bool fits = crowd_fits(&c, order[i]);

                        ASSERT_INT(crowd_admit(&c, order[i]), fits);
                        ran += fits;
                }
                if (alike)
                        ASSERT_INT(ran, crowd_most(&c));
                ASSERT_TRUE(ledger_check(l));
        }
}

/* What was given out of a card without the ledger's knowledge is not free. */
static void a_capped_card_has_no_more_room_than_that(void) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer container;
        Request request = simple(&container, 10, 50);
        Placement placement;
        Refusal refusal;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "core_mem", "", EQUAL(45, 3));
        ASSERT_OK(placement_trial_new(ledger_node_find(l, STR("n")), &trial));
        placement_trial_cap(trial, 0, 9, UINT32_MAX);
        placement_trial_cap(trial, 1, UINT32_MAX, 45);
        placement_trial_cap(trial, 7, 0, 0);
        ASSERT_OK(placement_trial_choose_cards(trial, &request, &arena, &placement, &refusal));
        ASSERT_INT(placement.slices[0].card, 2);
        placement_trial_cap(trial, 2, 10, 50);
        ASSERT_TRUE(placement_trial_fits(trial, &request));
        placement_trial_cap(trial, 2, 10, 49);
        ASSERT_FALSE(placement_trial_fits(trial, &request));
        ASSERT_INT(ledger_node_cards(placement_trial_node(trial))[2].used, 5);
}

static void the_ceiling_of_pods_holds_on_isolated_nodes_only(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "cgpu", "cgpu", "", EQUAL(80, 1));
        set_node(l, "share", "share", "", EQUAL(80, 1));
        for (int i = 0; i < 20; i++) {
                ASSERT_TRUE(place(l, "cgpu", &r, words) != NULL);
                ASSERT_TRUE(place(l, "share", &r, words) != NULL);
        }
        ASSERT_TRUE(place(l, "share", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "cgpu", &r, words));
        ASSERT_TEXT(words, "the cards with room have reached 20 pods per card, which annotation "
                           "aliquot.dev/max-pods-per-card of the node raises; free: gpu0 60 of 80 (full)");
}

static void whole_cards_stay_whole_across_nodes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer cs, cb;
        Request small = simple(&cs, 5, 0), big = simple(&cb, 15, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "", EQUAL(30, 2));
        set_node(l, "b", "share", "", EQUAL(30, 2));
        (void) place(l, "b", &small, words);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &small)), STR("b"));
        /* a is fuller now, but only an untouched card of it has room. */
        (void) place(l, "a", &big, words);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &small)), STR("b"));
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &big)),
                   STR("a")); /* the fuller one: on both an untouched card is taken */
}

static void replicas_are_spread_over_cards_and_nodes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c, co;
        Request r = simple(&c, 2, 0), other = simple(&co, 9, 0);
        char words[512];

        r.app = 77;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "spread", EQUAL(30, 2));
        set_node(l, "b", "share", "spread", EQUAL(30, 2));
        (void) place(l, "a", &r, words);
        (void) place(l, "b", &other, words);
        /* b is fuller, but has no replica. */
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        (void) place(l, "b", &r, words);
        ASSERT_INT(used(l, "b", 1), 2);
        (void) place(l, "b", &r, words); /* card 0 is fuller, but has no replica */
        ASSERT_INT(used(l, "b", 0), 11);
}

/* gpu0 to gpu3: two models, 15 units each. */
#define A_CARD(i, model) "{\\\"index\\\":" #i ",\\\"units\\\":15,\\\"uuid\\\":\\\"GPU-" #i "\\\"" model "}"
#define MODEL(text)      ",\\\"model\\\":\\\"" text "\\\""
#define CARDS(list)      ANNOTATIONS("\"aliquot.dev/cards\":\"[" list "]\"") "}}"
#define TWO_MODELS                                                                                               \
        CARDS(A_CARD(0, MODEL("Tesla V100-SXM2-16GB")) "," A_CARD(1, MODEL("NVIDIA A100-SXM4-80GB")) "," A_CARD( \
                2, MODEL("Tesla V100-SXM2-16GB")) "," A_CARD(3, MODEL("NVIDIA A100-SXM4-80GB")))

static void a_pod_gets_only_cards_that_it_chose(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 10, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", TWO_MODELS);
        r.choice = choose(&arena, (PodAnnotations){.use_gputype = STR("a100")});
        (void) place(l, "n", &r, words);
        ASSERT_INT(used(l, "n", 1), 10);
        r.choice = choose(&arena, (PodAnnotations){.nouse_gpuuuid = STR("GPU-0"), .gpu_type = STR("!A100")});
        (void) place(l, "n", &r, words);
        ASSERT_INT(used(l, "n", 2), 10);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("A100")});
        (void) place(l, "n", &r, words);
        ASSERT_INT(used(l, "n", 3), 10);
        ASSERT_TRUE(!place(l, "n", &r, words)); /* gpu0 has room, but is another model */
        ASSERT_TEXT(words, "no card of type A100 has 10 of gpu-mem free: gpu1 5 of 15, gpu3 5 of 15");
        ASSERT_TRUE(placement_choose_node(l, &r) == NULL);
        r.choice = NULL;
        (void) place(l, "n", &r, words);
        ASSERT_INT(used(l, "n", 0), 10);
}

static void several_cards_are_all_cards_that_the_pod_chose(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 10, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", TWO_MODELS);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("V100")});
        r.cards = 2;
        (void) place(l, "n", &r, words);
        ASSERT_INT(used(l, "n", 0), 10);
        ASSERT_INT(used(l, "n", 2), 10);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words,
                    "fewer than 2 cards of type V100 have 10 of gpu-mem free: gpu0 5 of 15, gpu2 5 of 15");
        r.cards = 3;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the pod wants 3 cards of type V100, the node has 2");
        r = simple(&c, 16, 0);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("V100")});
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words,
                    "16 of gpu-mem is more than any card of type V100 of the node has, the largest has 15");
}

/* A used card of another model does not keep an untouched card whole. */
static void whole_cards_are_counted_among_the_chosen_ones(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 9, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "", TWO_MODELS);
        set_node(l, "b", "share", "", TWO_MODELS);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("V100")});
        (void) place(l, "a", &r, words);
        (void) place(l, "a", &r, words);
        r = simple(&c, 2, 0);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("A100")});
        (void) place(l, "b", &r, words);
        /* a is fuller, and its used cards have room, but its cards of that model are untouched. */
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        ASSERT_TRUE(placement_rank(ledger_node_find(l, STR("b")), &r) <
                    placement_rank(ledger_node_find(l, STR("a")), &r));
}

static RefusalCode refused(const Ledger *l, const char *node, const Request *r) {
        Refusal refusal = {0};

        return placement_check(ledger_node_find(l, str_from(node)), r, &refusal) == 0 ? REFUSAL_NONE
                                                                                      : refusal.code;
}

static void says_that_no_card_is_of_the_chosen_kind(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", TWO_MODELS);
        set_node(l, "bare", "share", "", CARDS(A_CARD(0, "")));
        set_node(l, "foreign", "share", "", EQUAL(30, 2));
        set_node(l, "label", "share", "\",\"aliyun.accelerator/nvidia_name\":\"NVIDIA-H100-80GB-HBM3",
                 EQUAL(30, 2));
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("H100")});
        ASSERT_INT(refused(l, "n", &r), REFUSAL_NO_SUCH_CARD);
        ASSERT_FALSE(refusal_may_pass(REFUSAL_NO_SUCH_CARD)); /* no eviction helps */
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the node has no card of type H100");
        ASSERT_TRUE(!place(l, "bare", &r, words));
        ASSERT_TEXT(words, "no card of type H100: the node's cards have no known model");
        ASSERT_TRUE(!place(l, "foreign", &r, words));
        ASSERT_TEXT(words, "no card of type H100: the node's cards have no known model");
        ASSERT_INT(refused(l, "label", &r), REFUSAL_NONE);
        r.choice = choose(&arena, (PodAnnotations){.gpu_uuid = STR("GPU-1")});
        ASSERT_TRUE(!place(l, "bare", &r, words));
        ASSERT_TEXT(words, "the node has no card of UUID GPU-1");
        ASSERT_TRUE(!place(l, "label", &r, words));
        ASSERT_TEXT(words, "no card of UUID GPU-1: the node's cards have no known UUID");
        /* The longest words. */
        r.choice =
                choose(&arena, (PodAnnotations){.gpu_type = STR("1234567890123456789012345678901234567890")});
        ASSERT_TRUE(!place(l, "bare", &r, words));
        ASSERT_TRUE(strlen(words) <= 100 && strlen(words) > 90);
}

/* Models stay known while the node's own words do not decode. */
static void cards_stay_known_while_their_annotation_does_not_decode(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", TWO_MODELS);
        ASSERT_INT(try_node(l, "n", "share", "", CARDS("{"), &fault), LEDGER_E_NODE);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("A100"), .gpu_uuid = STR("GPU-3")});
        ASSERT_INT(refused(l, "n", &r), REFUSAL_NONE);
        r.choice = choose(&arena, (PodAnnotations){.gpu_type = STR("A100"), .gpu_uuid = STR("GPU-2")});
        ASSERT_INT(refused(l, "n", &r), REFUSAL_NO_SUCH_CARD);
}

int main(void) {
        return TEST_MAIN(
                TEST(binpack_fills_a_card_and_spread_takes_another),
                TEST(the_last_unit_fits_and_one_more_does_not), TEST(compute_needs_its_mode_and_never_mixes),
                TEST(cards_of_different_sizes_are_each_counted), TEST(several_cards_take_the_same_each),
                TEST(says_when_cards_can_never_be_enough), TEST(several_cards_are_joined_ones),
                TEST(links_decide_after_the_policy), TEST(whole_cards_of_topology_nodes),
                TEST(a_trial_sees_the_links), TEST(lists_sixteen_cards_and_counts_the_others),
                TEST(a_pending_pod_that_leaves_frees_its_place),
                TEST(of_pods_that_were_bound_at_once_as_many_run_as_fit),
                TEST(a_capped_card_has_no_more_room_than_that),
                TEST(the_ceiling_of_pods_holds_on_isolated_nodes_only),
                TEST(whole_cards_stay_whole_across_nodes), TEST(replicas_are_spread_over_cards_and_nodes),
                TEST(a_pod_gets_only_cards_that_it_chose),
                TEST(several_cards_are_all_cards_that_the_pod_chose),
                TEST(whole_cards_are_counted_among_the_chosen_ones),
                TEST(says_that_no_card_is_of_the_chosen_kind),
                TEST(cards_stay_known_while_their_annotation_does_not_decode));
}
