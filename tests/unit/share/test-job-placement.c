/* SPDX-License-Identifier: Apache-2.0 */

/* Cards for the pods of a job together. */

#include "making.h"
#include "share/job_placement.h"

#define CARD(i, peers) "{\\\"index\\\":" #i ",\\\"units\\\":1,\\\"healthy\\\":true,\\\"peers\\\":[" peers "]}"

/* Two islands, 0 3 5 and 1 2 4, of 50 GB/s; 10 between them. */
#define ISLANDS                                                                                              \
        CARD(0, "0,10,10,50,10,50")                                                                          \
        "," CARD(1, "10,0,50,10,50,10") "," CARD(2, "10,50,0,10,50,10") "," CARD(                            \
                3, "50,10,10,0,10,50") "," CARD(4, "10,50,50,10,0,10") "," CARD(5, "50,10,10,50,10,0")

static Request whole(RequestContainer *c, unsigned cards) {
        Request r = simple(c, 1, 0);

        r.cards = cards;
        r.whole = true;
        return r;
}

static uint32_t cards_of(const Placement *p) {
        uint32_t set = 0;

        for (size_t i = 0; i < p->n_slices; i++)
                set |= UINT32_C(1) << p->slices[i].card;
        ASSERT_INT(__builtin_popcount(set), p->n_slices);
        return set;
}

#define SET3(a, b, c) (1U << (a) | 1U << (b) | 1U << (c))

/* The pods of one card each lie on one island; those of three cards have one each. */
static void the_links_between_pods_count(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c, cc;
        Request one = whole(&c, 1), three = whole(&cc, 3);
        const LedgerNode *n;
        Placement p[3];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "topology", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[" ISLANDS "]\"") "}}");
        n = ledger_node_find(l, STR("n"));
        ASSERT_OK(job_placement_choose(n, &one, 3, &arena, p));
        ASSERT_INT(cards_of(&p[0]) | cards_of(&p[1]) | cards_of(&p[2]), SET3(0, 3, 5));
        ASSERT_OK(job_placement_choose(n, &three, 2, &arena, p));
        ASSERT_INT(cards_of(&p[0]), SET3(0, 3, 5));
        ASSERT_INT(cards_of(&p[1]), SET3(1, 2, 4));
}

static void counts_pods_that_have_room(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request two = whole(&c, 2);
        const LedgerNode *n;
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "topology", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[" ISLANDS "]\"") "}}");
        set_node(l, "s", "share", "", EQUAL(60, 4));
        n = ledger_node_find(l, STR("n"));
        ASSERT_INT(job_placement_room(n, &two, 9), 3);
        ASSERT_INT(job_placement_room(n, &two, 2), 2);
        two.cards = 1;
        ASSERT_TRUE(place(l, "n", &two, words));
        two.cards = 2;
        ASSERT_INT(job_placement_room(n, &two, 9), 2);
        ASSERT_INT(job_placement_room(ledger_node_find(l, STR("s")), &two, 9), 0);
}

/* Without links the cards are taken in their order, each once. */
static void without_links_each_has_its_own(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c;
        Request two = whole(&c, 2);
        Placement p[2];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "topology", "", EQUAL(4, 4));
        ASSERT_OK(job_placement_choose(ledger_node_find(l, STR("n")), &two, 2, &arena, p));
        ASSERT_INT(cards_of(&p[0]), 3);
        ASSERT_INT(cards_of(&p[1]), 12);
}

int main(void) {
        return TEST_MAIN(TEST(the_links_between_pods_count), TEST(counts_pods_that_have_room),
                         TEST(without_links_each_has_its_own));
}
