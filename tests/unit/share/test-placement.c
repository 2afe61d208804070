/* SPDX-License-Identifier: Apache-2.0 */

/* The choice of node and cards: the documented examples, and the boundary of each rule. */

#include "making.h"

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
        ASSERT_TEXT(words, "the cards with room have reached 20 pods per card; free: gpu0 60 of 80 (full)");
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

int main(void) {
        return TEST_MAIN(
                TEST(binpack_fills_a_card_and_spread_takes_another),
                TEST(the_last_unit_fits_and_one_more_does_not), TEST(compute_needs_its_mode_and_never_mixes),
                TEST(cards_of_different_sizes_are_each_counted), TEST(several_cards_take_the_same_each),
                TEST(says_when_cards_can_never_be_enough), TEST(lists_sixteen_cards_and_counts_the_others),
                TEST(a_pending_pod_that_leaves_frees_its_place),
                TEST(the_ceiling_of_pods_holds_on_isolated_nodes_only),
                TEST(whole_cards_stay_whole_across_nodes), TEST(replicas_are_spread_over_cards_and_nodes));
}
