/* SPDX-License-Identifier: Apache-2.0 */

/* What the ledger holds and what it makes of a node, by hand. */

#include "making.h"

static uint64_t used(const Ledger *l, const char *node, size_t card) {
        return card_at(l, node, card)->used;
}

static void a_change_of_mode_waits_for_the_last_slice(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 5, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        g = place(l, "n", &r, words);
        set_node(l, "n", "share", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
        set_node(l, "n", "cgpu", "",
                 ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}" EQUAL(120, 1));
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 1024);
        ASSERT_INT(ledger_node_cards(ledger_node_find(l, STR("n")))[0].units, 15);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL); /* what is in force takes pods */
        (void) grant_free(ledger_node_grants(ledger_node_find(l, STR("n"))));
        (void) grant_free(g);
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 128);
        ASSERT_INT(ledger_node_cards(ledger_node_find(l, STR("n")))[0].units, 120);
        set_node(l, "n", "", "", EQUAL(15, 1)); /* the label is gone: it stays what it is */
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
}

static void the_truth_may_exceed_the_card(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static const Slice slices[] = {{.card = 7, .mem = 9}, {.card = 0, .mem = UINT32_MAX}};
        GrantSpec spec = {.namespace_ = STR("d"),
                          .name = STR("x"),
                          .uid = STR("u"),
                          .node = STR("n"),
                          .slices = slices,
                          .n_slices = 2};
        Grant *a, *b;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(grant_new(l, &spec, &a)); /* before anybody told of the node */
        ASSERT_TRUE(ledger_check(l));
        set_node(l, "n", "share", "", EQUAL(15, 1));
        ASSERT_OK(grant_new(l, &spec, &b));
        ASSERT_TRUE(ledger_check(l));
        ASSERT_TRUE(used(l, "n", 0) == UINT64_C(2) * UINT32_MAX);
        ASSERT_INT(ledger_node_n_cards(ledger_node_find(l, STR("n"))), 2);
        ledger_node_remove(l, STR("n"));
        ASSERT_TRUE(ledger_check(l));
        (void) grant_free(a);
        (void) grant_free(b);
        ASSERT_INT(ledger_n_nodes(l), 0);
}

static void pending_pods_are_counted_on_every_card(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        GrantSpec spec = {.namespace_ = STR("d"),
                          .name = STR("x"),
                          .uid = STR("u"),
                          .node = STR("n"),
                          .pending_mem = 10};
        RequestContainer c;
        Request r = simple(&c, 6, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(30, 2));
        ASSERT_OK(grant_new(l, &spec, &g));
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 6 of gpu-mem free: gpu0 5 of 15, gpu1 5 of 15");
        (void) grant_free(g);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

static void a_unit_that_waits_leaves_known_cards_their_units(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 121, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", ANNOTATIONS("\"aliquot.dev/gpu-mem-unit\":\"128MiB\"") EQUAL(126, 1));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        set_node(l, "n", "cgpu", "", EQUAL(30, 2));
        ASSERT_INT(card_at(l, "n", 0)->units, 126);
        ASSERT_INT(card_at(l, "n", 1)->units, 120); /* 15 GiB, as far as one can tell */
}

static void a_label_taken_away_changes_nothing(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(15, 1));
        set_node(l, "n", "", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
        set_node(l, "n", "default", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_DEFAULT);
}

/* While a mode or unit waits, nothing else does: health, switches, cards that are new. */
static void what_does_not_concern_running_slices_is_in_force_at_once(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 5, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "",
                 ANNOTATIONS("\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":15},"
                             "{\\\"index\\\":1,\\\"units\\\":15}]\"") "}}");
        g = place(l, "n", &r, words);
        set_node(
                l, "n", "share", "spread",
                ANNOTATIONS("\"aliquot.dev/gpu-mem-unit\":\"128MiB\",\"aliquot.dev/max-pods-per-card\":\"1\","
                            "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":126},"
                            "{\\\"index\\\":1,\\\"units\\\":126,\\\"healthy\\\":false},"
                            "{\\\"index\\\":2,\\\"units\\\":126}]\"") "}}");
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 1024);
        ASSERT_INT(ledger_node_policy(ledger_node_find(l, STR("n"))), PLACEMENT_SPREAD);
        ASSERT_INT(card_at(l, "n", 0)->units, 15);
        ASSERT_FALSE(card_at(l, "n", 1)->healthy);
        ASSERT_INT(card_at(l, "n", 2)->units, 15); /* 126 of 128 MiB */
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the cards with room have reached 1 pods per card; free: gpu0 10 of 15 (full), "
                           "gpu1 unhealthy, "
                           "gpu2 10 of 15 (full)");
        (void) grant_free(ledger_node_grants(ledger_node_find(l, STR("n"))));
        (void) grant_free(g);
        ASSERT_INT(card_at(l, "n", 0)->units, 126);
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
}

static void pending_compute_and_seats_are_counted_on_every_card(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        GrantSpec spec = {.namespace_ = STR("d"),
                          .name = STR("x"),
                          .uid = STR("u"),
                          .node = STR("n"),
                          .pending_mem = 1,
                          .pending_core = 80,
                          .has_core = true};
        RequestContainer c;
        Request r = simple(&c, 2, 20);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "core_mem", "", ANNOTATIONS("\"aliquot.dev/max-pods-per-card\":\"2\"") EQUAL(15, 1));
        ASSERT_OK(grant_new(l, &spec, &g));
        r.core = c.core = 25;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 2 of gpu-mem and 25 % of compute free: gpu0 14 of 15 and 20 %");
        r.core = c.core = 10;
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_CONTAINS(words, "have reached 2 pods per card");
        (void) grant_free(g);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

#define HELD(uid, units, core)                                                                               \
        "{\\\"pod\\\":\\\"ns/dead\\\",\\\"uid\\\":\\\"" uid                                                  \
        "\\\",\\\"allocation\\\":{\\\"0\\\":{\\\"1\\\":" #units                                              \
        "}},\\\"core\\\":{\\\"0\\\":{\\\"1\\\":" #core "}}}"
#define HELD_NODE(list) ANNOTATIONS("\"aliquot.dev/held-slices\":\"[" list "]\"") EQUAL(30, 2)

static void slices_of_the_dead_are_counted_once(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static const Slice slice = {.card = 1, .mem = 4};
        GrantSpec spec = {
                .name = STR("x"), .uid = STR("u1"), .node = STR("n"), .slices = &slice, .n_slices = 1};
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(grant_new(l, &spec, &g));
        set_node(l, "n", "core_mem", "", HELD_NODE(HELD("u1", 4, 30) "," HELD("u2", 3, 20)));
        ASSERT_INT(used(l, "n", 1), 7); /* u1 is the pod's own still */
        ASSERT_INT(card_at(l, "n", 1)->core_used, 20);
        (void) grant_free(g); /* deleted by force: the process lives */
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(used(l, "n", 1), 7);
        ASSERT_INT(card_at(l, "n", 1)->core_used, 50);
        ASSERT_INT(card_at(l, "n", 1)->pods, 2);
        ASSERT_STR(grant_namespace(ledger_node_held(ledger_node_find(l, STR("n")))), STR("ns"));
        ASSERT_STR(grant_name(ledger_node_held(ledger_node_find(l, STR("n")))), STR("dead"));
        ASSERT_TRUE(!ledger_node_grants(ledger_node_find(l, STR("n"))));
        ASSERT_OK(grant_new(l, &spec, &g)); /* seen again, by a list */
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(used(l, "n", 1), 7);
        ASSERT_INT(card_at(l, "n", 1)->core_used, 20);
        set_node(l, "n", "core_mem", "", HELD_NODE(HELD("u2", 3, 20)));
        (void) grant_free(g);
        ASSERT_INT(used(l, "n", 1), 3);
        /* A mode waits for them as for any slice, and comes with the last of them. */
        set_node(l, "n", "share", "", HELD_NODE(HELD("u2", 3, 20)));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CORE_MEM);
        set_node(l, "n", "share", "", EQUAL(30, 2));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
        ASSERT_INT(used(l, "n", 1), 0);
        set_node(l, "n", "share", "", HELD_NODE(HELD("u3", 3, 0)));
        ledger_node_remove(l, STR("n"));
        ASSERT_INT(ledger_n_nodes(l), 0);
}

static void fences_come_before_and_outlive_the_node(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){1, 255, 256, UINT32_MAX}, 4));
        set_node(l, "n", "cgpu", "", EQUAL(30, 2));
        ASSERT_TRUE(card_at(l, "n", 0)->healthy);
        ASSERT_FALSE(card_at(l, "n", 1)->healthy);
        ledger_node_remove(l, STR("n"));
        set_node(l, "n", "cgpu", "", EQUAL(30, 2));
        ASSERT_FALSE(card_at(l, "n", 1)->healthy);
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), NULL, 0));
        ASSERT_TRUE(card_at(l, "n", 1)->healthy);
        ledger_node_remove(l, STR("n"));
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){1}, 1));
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), NULL, 0));
        ASSERT_INT(ledger_n_nodes(l), 0);
}

static void a_bad_node_keeps_its_last_good_description(void) {
        static const struct {
                const char *members, *words;
        } cases[] = {
                {ANNOTATIONS("\"aliquot.dev/gpu-mem-unit\":\"0MiB\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/gpu-mem-unit is \"0MiB\", must be like GiB or 128MiB"},
                {ANNOTATIONS("\"aliquot.dev/max-pods-per-card\":\"-1\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/max-pods-per-card is \"-1\", must be a whole number"},
                {ANNOTATIONS("\"aliquot.dev/allow-mixed\":\"perhaps\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/allow-mixed is \"perhaps\", must be true or false"},
                {ANNOTATIONS("\"aliquot.dev/cards\":\"[{}]\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/cards: [0]: a card needs an index"},
                {ANNOTATIONS("\"aliquot.dev/held-slices\":\"[{}]\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/held-slices: an entry has no uid"},
                {ANNOTATIONS("\"aliquot.dev/"
                             "held-slices\":\"[{\\\"uid\\\":\\\"u\\\",\\\"allocation\\\":{\\\"0\\\":"
                             "{\\\"9999\\\":1}}}]\"") EQUAL(30, 2),
                 "node n: annotation aliquot.dev/held-slices: uid u: "},
                {ANNOTATIONS("\"aliquot.dev/held-slices\":\"[{\"") EQUAL(30, 2), "aliquot.dev/held-slices"},
                {EQUAL(many, 2),
                 "node n: allocatable aliyun.com/gpu-mem is \"many\", must be a whole number"},
                {EQUAL(30, 257),
                 "node n: allocatable aliyun.com/gpu-count is \"257\", must be a whole number up to 256"},
        };
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Fault fault = FAULT_NULL;

                ASSERT_INT(try_node(l, "new", "share", "", cases[i].members, &fault), LEDGER_E_NODE);
                ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("new"))), SHARE_MODE_NONE);
                set_node(l, "n", "cgpu", "", EQUAL(15, 1));
                ASSERT_INT(try_node(l, "n", "share", "", cases[i].members, &fault), LEDGER_E_NODE);
                ASSERT_CONTAINS(fault.text, cases[i].words);
                ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
                ASSERT_INT(card_at(l, "n", 0)->units, 15);
        }
}

static void a_node_without_count_has_one_card_and_one_without_memory_none(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "one", "cgpu", "", "},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"15\"}}}");
        ASSERT_INT(card_at(l, "one", 0)->units, 15);
        set_node(l, "none", "cgpu", "", "}}");
        ASSERT_TRUE(!place(l, "none", &r, words));
        ASSERT_TEXT(words, "the node has not reported its cards yet");
        set_node(l, "rounded", "cgpu", "", EQUAL(31, 2));
        ASSERT_INT(card_at(l, "rounded", 1)->units, 15);
        set_node(l, "plain", "", "", "}}");
        ASSERT_TRUE(!place(l, "plain", &r, words));
        ASSERT_TEXT(words,
                    "the node has no label ack.node.gpu.schedule, gpu-mem needs share, cgpu or core_mem");
}

/* The last node moves into the slot of the one that goes, with everything that points at it. */
static void nodes_stand_without_gaps(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 2, 0);
        char words[512];

        r.app = 7;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "spread", EQUAL(30, 2));
        set_node(l, "b", "share", "spread", EQUAL(30, 2));
        set_node(l, "c", "share", "spread", EQUAL(30, 2));
        (void) place(l, "c", &r, words);
        (void) place(l, "c", &r, words);
        (void) place(l, "b", &r, words);
        ledger_node_remove(l, STR("a"));
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(ledger_n_nodes(l), 2);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        for (size_t i = 0; i < 2; i++)
                ASSERT_TRUE(ledger_node_find(l, ledger_node_name(ledger_node_at(l, i))) ==
                            ledger_node_at(l, i));
}

int main(void) {
        return TEST_MAIN(TEST(a_change_of_mode_waits_for_the_last_slice),
                         TEST(a_unit_that_waits_leaves_known_cards_their_units),
                         TEST(a_label_taken_away_changes_nothing), TEST(the_truth_may_exceed_the_card),
                         TEST(pending_pods_are_counted_on_every_card),
                         TEST(what_does_not_concern_running_slices_is_in_force_at_once),
                         TEST(pending_compute_and_seats_are_counted_on_every_card),
                         TEST(slices_of_the_dead_are_counted_once),
                         TEST(fences_come_before_and_outlive_the_node),
                         TEST(a_bad_node_keeps_its_last_good_description),
                         TEST(a_node_without_count_has_one_card_and_one_without_memory_none),
                         TEST(nodes_stand_without_gaps));
}
