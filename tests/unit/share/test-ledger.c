/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger by hand: its sums, and what it makes of a node object. */

#include "making.h"
#include "share/ledger-internal.h"

static uint64_t used(const Ledger *l, const char *node, size_t card) {
        return card_at(l, node, card)->used;
}

/* The node's agent publishes mode and unit: these are in force, whatever the label asks for and
 * whatever slices are held. */
static void what_the_agent_publishes_is_in_force(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL, *restarted = NULL;
        static const char members[] = ANNOTATIONS(
                "\"aliquot.dev/mode-in-force\":\"core_mem\",\"aliquot.dev/gpu-mem-unit\":\"128MiB\","
                "\"aliquot.dev/gpu-mem-unit-in-force\":\"GiB\"") EQUAL(15, 1);
        RequestContainer c;
        Request r = simple(&c, 5, 30);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", members);
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CORE_MEM);
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 1024);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        /* A new ledger that gets only the last object has the same. */
        ASSERT_OK(ledger_new(&restarted));
        set_node(restarted, "n", "", "", members);
        ASSERT_INT(ledger_node_mode(ledger_node_find(restarted, STR("n"))), SHARE_MODE_CORE_MEM);
        ASSERT_INT(ledger_node_unit(ledger_node_find(restarted, STR("n"))).mib, 1024);
        /* The agent has changed them. They are in force at once, because the agent knows its
         * slices. */
        set_node(l, "n", "cgpu", "",
                 ANNOTATIONS("\"aliquot.dev/mode-in-force\":\"cgpu\","
                             "\"aliquot.dev/gpu-mem-unit-in-force\":\"128MiB\"") EQUAL(120, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 128);
        ASSERT_INT(card_at(l, "n", 0)->units, 120);
        set_node(l, "n", "cgpu", "", ANNOTATIONS("\"aliquot.dev/mode-in-force\":\"none\"") EQUAL(120, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_NONE);
}

static void without_an_agent_label_and_unit_are_in_force_at_once(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 5, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        set_node(l, "n", "share", "", ANNOTATIONS("\"aliquot.dev/gpu-mem-unit\":\"128MiB\"") EQUAL(120, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 128);
        ASSERT_INT(card_at(l, "n", 0)->units, 120);
        ASSERT_INT(used(l, "n", 0), 5);
}

static void a_node_with_a_change_that_waits_takes_no_new_slice(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 5, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(15, 1));
        g = place(l, "n", &r, words);
        set_node(l, "n", "cgpu", "",
                 ANNOTATIONS("\"aliquot.dev/mode-in-force\":\"share\","
                             "\"aliquot.dev/change-pending\":\"mode share -> cgpu\"") EQUAL(15, 1));
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the node takes no new slice while a change waits: mode share -> cgpu");
        ASSERT_TRUE(!placement_choose_node(l, &r));
        ASSERT_INT(used(l, "n", 0), 5);
        (void) grant_free(g);
        /* Until the agent says that the change is in force. */
        ASSERT_TRUE(!place(l, "n", &r, words));
        set_node(l, "n", "cgpu", "", ANNOTATIONS("\"aliquot.dev/mode-in-force\":\"cgpu\"") EQUAL(15, 1));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

static void grants_may_exceed_the_card(void) {
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
        ASSERT_OK(grant_new(l, &spec, &a)); /* before the node object is known */
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

static void a_label_taken_away_changes_nothing(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(15, 1));
        set_node(l, "n", "", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
        set_node(l, "n", "default", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_DEFAULT);
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

static void slices_of_deleted_pods_are_counted_once(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static const Slice slice = {.card = 1, .mem = 4};
        GrantSpec spec = {
                .name = STR("x"), .uid = STR("u1"), .node = STR("n"), .slices = &slice, .n_slices = 1};
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(grant_new(l, &spec, &g));
        set_node(l, "n", "core_mem", "", HELD_NODE(HELD("u1", 4, 30) "," HELD("u2", 3, 20)));
        ASSERT_INT(used(l, "n", 1), 7); /* u1 still has a grant of its own */
        ASSERT_INT(card_at(l, "n", 1)->core_used, 20);
        (void) grant_free(g); /* deleted by force: its processes still run */
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(used(l, "n", 1), 7);
        ASSERT_INT(card_at(l, "n", 1)->core_used, 50);
        ASSERT_INT(card_at(l, "n", 1)->pods, 2);
        ASSERT_STR(grant_namespace(ledger_node_held(ledger_node_find(l, STR("n")))), STR("ns"));
        ASSERT_STR(grant_name(ledger_node_held(ledger_node_find(l, STR("n")))), STR("dead"));
        ASSERT_TRUE(!ledger_node_grants(ledger_node_find(l, STR("n"))));
        ASSERT_OK(grant_new(l, &spec, &g)); /* the pod is listed again */
        ASSERT_TRUE(ledger_check(l));
        ASSERT_INT(used(l, "n", 1), 7);
        ASSERT_INT(card_at(l, "n", 1)->core_used, 20);
        set_node(l, "n", "core_mem", "", HELD_NODE(HELD("u2", 3, 20)));
        (void) grant_free(g);
        ASSERT_INT(used(l, "n", 1), 3);
        set_node(l, "n", "share", "", EQUAL(30, 2));
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

#define CORDON(text) "\"aliquot.dev/cordon-cards\":\"" text "\""

/* It keeps new slices away and counts the others; one that is not understood changes nothing. */
static void cordoned_cards_are_out_of_service(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", ANNOTATIONS(CORDON("1")) EQUAL(30, 2));
        ASSERT_TRUE(card_at(l, "n", 0)->healthy);
        ASSERT_FALSE(card_at(l, "n", 1)->healthy);
        ASSERT_INT(ledger_node_n_healthy(ledger_node_find(l, STR("n"))), 1);
        ASSERT_INT(try_node(l, "n", "cgpu", "", ANNOTATIONS(CORDON("0,x")) EQUAL(30, 2), &fault),
                   LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text,
                        "annotation aliquot.dev/cordon-cards is \"0,x\", must be indexes of cards");
        ASSERT_CONTAINS(fault.text, "the cordon of before stays in force");
        ASSERT_TRUE(card_at(l, "n", 0)->healthy);
        ASSERT_FALSE(card_at(l, "n", 1)->healthy);
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){0}, 1));
        set_node(l, "n", "cgpu", "", EQUAL(30, 2));
        ASSERT_FALSE(card_at(l, "n", 0)->healthy); /* by the ConfigMap */
        ASSERT_TRUE(card_at(l, "n", 1)->healthy);
        /* A program that starts knows no cordon of before. */
        ASSERT_INT(try_node(l, "late", "cgpu", "", ANNOTATIONS(CORDON("1;")) EQUAL(30, 2), &fault),
                   LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text, "a cordon of the cards that it names stays in force");
        ASSERT_TRUE(card_at(l, "late", 0)->healthy);
        ASSERT_FALSE(card_at(l, "late", 1)->healthy);
}

#define GOOD                                                                                                 \
        "\"aliquot.dev/max-pods-per-card\":\"7\",\"aliquot.dev/allow-mixed\":\"true\",\"aliquot.dev/"        \
        "gpu-mem-unit\":\"128MiB\","
#define CARDS_JSON(units, healthy)                                                                           \
        "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":" #units ",\\\"healthy\\\":" healthy "}]\""

/* Each key that does not decode is named. It keeps its value, or gets the safest one; all others
 * are in force. */
static void each_key_is_judged_by_itself(void) {
        static const struct {
                const char *label, *placement, *members, *words, *first_words;
        } cases[] = {
                {"cgpu", "", "\"aliquot.dev/gpu-mem-unit\":\"128Mi\"",
                 "annotation aliquot.dev/gpu-mem-unit is \"128Mi\", must be GiB, MiB or a whole number of "
                 "them, as 128MiB; 128MiB stays in "
                 "force",
                 "; GiB stays in force"},
                {"cgpu", "", "\"aliquot.dev/gpu-mem-unit-in-force\":\"0MiB\"",
                 "annotation aliquot.dev/gpu-mem-unit-in-force is \"0MiB\", must be GiB, MiB or a whole "
                 "number of them, as 128MiB: "
                 "128MiB "
                 "is in force",
                 ": GiB is in force"},
                {"cgpu", "", "\"aliquot.dev/max-pods-per-card\":\"20 \"",
                 "annotation aliquot.dev/max-pods-per-card is \"20 \", must be a whole number, 0 for no "
                 "ceiling; 7 pods per card stays in force",
                 "; 20 pods per card stays in force"},
                {"cgpu", "", "\"aliquot.dev/allow-mixed\":\"yes\"",
                 "annotation aliquot.dev/allow-mixed is \"yes\", must be true or false; true stays in force",
                 "; false stays in force"},
                {"cgpu", "", "\"aliquot.dev/held-slices\":\"[{}]\"",
                 "aliquot.dev/held-slices: an entry has no uid: the slices listed before still count", ""},
                {"cgpu", "",
                 "\"aliquot.dev/held-slices\":\"[{\\\"uid\\\":\\\"u\\\",\\\"allocation\\\":{\\\"0\\\":{"
                 "\\\"9999\\\":1}}}]\"",
                 "aliquot.dev/held-slices: uid u: ", ""},
                {"core-mem", "", "\"x\":\"\"",
                 "label ack.node.gpu.schedule is \"core-mem\", must be share, cgpu, core_mem, default, "
                 "disabled, topology, mps or mig; cgpu stays in force",
                 "; no mode stays in force"},
                {"cgpu", "", "\"aliquot.dev/mode-in-force\":\"cgpux\"",
                 "annotation aliquot.dev/mode-in-force is \"cgpux\", must be none, or a value of "
                 "ack.node.gpu.schedule",
                 ": cgpu is in force"},
                {"cgpu", "Spread", "\"x\":\"\"",
                 "label ack.node.gpu.placement is \"Spread\", must be binpack or spread; spread stays in "
                 "force",
                 "; binpack stays in force"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(ledger_freep) Ledger *l = NULL;
                _cleanup_buf_ Buf members = BUF_NULL;
                Fault fault = FAULT_NULL, first = FAULT_NULL;
                const LedgerNode *n;

                ASSERT_OK(ledger_new(&l));
                buf_appendf(&members, ",\"annotations\":{%s," CARDS_JSON(9, "false") "}}}", cases[i].members);
                set_node(l, "n", "cgpu", "spread", ANNOTATIONS(GOOD CARDS_JSON(120, "true")) "}}");
                ASSERT_INT(try_node(l, "n", cases[i].label, cases[i].placement, members.data, &fault),
                           LEDGER_E_NODE);
                ASSERT_CONTAINS(fault.text, "node n: ");
                ASSERT_CONTAINS(fault.text, cases[i].words);
                n = ledger_node_find(l, STR("n"));
                ASSERT_INT(ledger_node_mode(n), SHARE_MODE_CGPU);
                ASSERT_INT(card_at(l, "n", 0)->units, 9); /* a good key beside it is in force */
                ASSERT_FALSE(card_at(l, "n", 0)->healthy);
                /* The node is known for the first time, as after a restart. */
                ASSERT_INT(try_node(l, "new", cases[i].label, cases[i].placement, members.data, &first),
                           LEDGER_E_NODE);
                ASSERT_CONTAINS(first.text, cases[i].first_words);
                ASSERT_INT(card_at(l, "new", 0)->units, 9);
                /* The annotation is repaired. */
                set_node(l, "n", "share", "", EQUAL(15, 1));
                ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_SHARE);
                ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 1024);
        }
}

/* A list of peers that does not decode costs the links of its card, and nothing else. */
static void wrong_peers_cost_the_links_only(void) {
        static const char cards[] = "\"aliquot.dev/cards\":\"["
                                    "{\\\"index\\\":0,\\\"units\\\":15,\\\"peers\\\":[0,50,8]},"
                                    "{\\\"index\\\":1,\\\"units\\\":15,\\\"peers\\\":[50,-1]},"
                                    "{\\\"index\\\":2,\\\"units\\\":15,\\\"peers\\\":[8,8]}]\"";
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_buf_ Buf members = BUF_NULL;
        Fault fault = FAULT_NULL;
        const LedgerNode *n;

        ASSERT_OK(ledger_new(&l));
        buf_appendf(&members, ",\"annotations\":{%s}}}", cards);
        ASSERT_INT(try_node(l, "n", "share", "", members.data, &fault), LEDGER_E_NODE);
        ASSERT_TEXT(fault.text,
                    "node n: annotation aliquot.dev/cards: the peers of card 1 must be a list of at most 32 "
                    "numbers from 0 to 65535: the card is used without its links");
        n = ledger_node_find(l, STR("n"));
        ASSERT_INT(ledger_node_n_cards(n), 3);
        ASSERT_INT(card_at(l, "n", 1)->units, 15);
        ASSERT_INT(n->now.links->key.rate[0][1], 0);
        ASSERT_INT(n->now.links->key.rate[0][2], 8);
        /* what follows does not decode at all: the cards stay, and their links */
        ASSERT_INT(try_node(l, "n", "share", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[{}]\"") "}}", &fault),
                   LEDGER_E_NODE);
        ASSERT_INT(ledger_node_n_cards(n), 3);
        ASSERT_INT(n->now.links->key.rate[0][2], 8);
        set_node(l, "n", "share", "", EQUAL(45, 3));
        ASSERT_TRUE(!n->now.links && !l->shapes);
}

static void every_wrong_key_is_named(void) {
        static const char *const keys[] = {
                "label ack.node.gpu.schedule is \"core-mem\"",
                "annotation aliquot.dev/mode-in-force is \"x\"",
                "label ack.node.gpu.placement is \"Spread\"",
                "annotation aliquot.dev/gpu-mem-unit is \"128Mi\"",
                "annotation aliquot.dev/max-pods-per-card is \"20 \"",
                "annotation aliquot.dev/allow-mixed is \"yes\"",
                "annotation aliquot.dev/cards: [0]: a card needs an index",
                "annotation aliquot.dev/held-slices: an entry has no uid",
        };
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        ASSERT_INT(
                try_node(l, "n", "core-mem", "Spread",
                         ANNOTATIONS(
                                 "\"aliquot.dev/mode-in-force\":\"x\",\"aliquot.dev/gpu-mem-unit\":\"128Mi\","
                                 "\"aliquot.dev/max-pods-per-card\":\"20 \",\"aliquot.dev/"
                                 "allow-mixed\":\"yes\",\"aliquot.dev/cards\":\"[{}]\",\"aliquot.dev/"
                                 "held-slices\":\"[{}]\"") EQUAL(30, 2),
                         &fault),
                LEDGER_E_NODE);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                ASSERT_CONTAINS(fault.text, keys[i]);
}

static void cards_that_do_not_decode_stay_as_they_were(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        ASSERT_INT(try_node(l, "n", "default", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[{]\"") "}}", &fault),
                   LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text, ": the cards stay as they were");
        ASSERT_INT(card_at(l, "n", 0)->units, 15);
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_DEFAULT);
        ASSERT_INT(try_node(l, "n", "cgpu", "", EQUAL(many, 1), &fault), LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text,
                        "allocatable aliyun.com/gpu-mem is \"many\", must be a whole number up to ");
        ASSERT_INT(card_at(l, "n", 0)->units, 15);
        ASSERT_INT(try_node(l, "n", "cgpu", "", EQUAL(30, 257), &fault), LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text, "aliyun.com/gpu-count is \"257\", must be a whole number up to 256");
        ASSERT_INT(card_at(l, "n", 0)->units, 15);
        /* The cards were never known: there is none, and the refusal names the annotation. */
        ASSERT_INT(try_node(l, "new", "cgpu", "", ANNOTATIONS("\"aliquot.dev/cards\":\"[{]\"") EQUAL(15, 1),
                            &fault),
                   LEDGER_E_NODE);
        ASSERT_CONTAINS(fault.text, ": no card is known");
        ASSERT_TRUE(!place(l, "new", &r, words));
        ASSERT_TEXT(words,
                    "annotation aliquot.dev/cards of the node does not decode, so that none of its cards "
                    "is known");
}

/* The agent wrote that a process of a deleted pod holds 10 of 15. A malformed key elsewhere must
 * not free them. */
static void a_wrong_key_does_not_hide_held_slices(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "core_mem", "", EQUAL(30, 2));
        ASSERT_INT(try_node(l, "n", "core_mem", "",
                            ANNOTATIONS("\"aliquot.dev/max-pods-per-card\":\"20 "
                                        "\",\"aliquot.dev/held-slices\":\"[" HELD("u", 10, 30) "]\"")
                                    EQUAL(30, 2),
                            &fault),
                   LEDGER_E_NODE);
        ASSERT_INT(used(l, "n", 1), 10);
        /* A malformed list keeps the slices that it named before. */
        ASSERT_INT(try_node(l, "n", "core_mem", "",
                            ANNOTATIONS("\"aliquot.dev/held-slices\":\"[{}]\"") EQUAL(30, 2), &fault),
                   LEDGER_E_NODE);
        ASSERT_INT(used(l, "n", 1), 10);
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

/* The last node moves into the slot of the one that is freed, with all references to it. */
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
        return TEST_MAIN(
                TEST(what_the_agent_publishes_is_in_force),
                TEST(without_an_agent_label_and_unit_are_in_force_at_once),
                TEST(a_node_with_a_change_that_waits_takes_no_new_slice),
                TEST(a_label_taken_away_changes_nothing), TEST(grants_may_exceed_the_card),
                TEST(pending_pods_are_counted_on_every_card),
                TEST(pending_compute_and_seats_are_counted_on_every_card),
                TEST(slices_of_deleted_pods_are_counted_once), TEST(fences_come_before_and_outlive_the_node),
                TEST(cordoned_cards_are_out_of_service), TEST(each_key_is_judged_by_itself),
                TEST(wrong_peers_cost_the_links_only), TEST(every_wrong_key_is_named),
                TEST(cards_that_do_not_decode_stay_as_they_were), TEST(a_wrong_key_does_not_hide_held_slices),
                TEST(a_node_without_count_has_one_card_and_one_without_memory_none),
                TEST(nodes_stand_without_gaps));
}
