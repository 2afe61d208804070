/* SPDX-License-Identifier: Apache-2.0 */
#include "share/node_keys.h"
#include "test.h"
#include "wire/annotation.h"
#include "wire/node.h"

/* Each key of a node with a good and a wrong value, and what the text about the wrong one must
 * name. */
static const struct {
        NodeKey key;
        size_t offset;
        const char *good, *bad, *name, *rule, *in_force;
} cases[] = {
        {NODE_KEY_MODE, offsetof(Node, mode), "cgpu", "core-mem", LABEL_SCHEDULE, "core_mem",
         "; share stays"},
        {NODE_KEY_PLACEMENT, offsetof(Node, placement), "spread", "Spread", LABEL_PLACEMENT,
         "binpack or spread", "; binpack stays"},
        {NODE_KEY_UNIT, offsetof(Node, annotations.unit), "128MiB", "128Mi", ANNOTATION_UNIT, "128MiB",
         "; GiB stays"},
        {NODE_KEY_POLICY, offsetof(Node, annotations.policy), "3", "6", ANNOTATION_POLICY, "0 to 5",
         "; the agent's --policy stays"},
        {NODE_KEY_MAX_INST, offsetof(Node, annotations.max_inst), "100", "101", ANNOTATION_MAX_INST,
         "1 to 100", "; the policy's default stays"},
        {NODE_KEY_PRIO_RATIO, offsetof(Node, annotations.prio_ratio), "20", "19", ANNOTATION_PRIO_RATIO,
         "20 to 99", "; the policy's default stays"},
        {NODE_KEY_MAX_PODS, offsetof(Node, annotations.max_pods), "0", "20 ", ANNOTATION_MAX_PODS,
         "a whole number", "; no ceiling stays"},
        {NODE_KEY_ALLOW_MIXED, offsetof(Node, annotations.allow_mixed), "true", "yes", ANNOTATION_ALLOW_MIXED,
         "true or false", "; false stays"},
        {NODE_KEY_PLACE_WHILE_CHANGING, offsetof(Node, annotations.place_while_changing), "true", "True",
         ANNOTATION_PLACE_WHILE_CHANGING, "true or false", "; false stays"},
        {NODE_KEY_UNIT_CHANGE, offsetof(Node, annotations.unit_change), "drain", "Drain",
         ANNOTATION_UNIT_CHANGE, "drain", "; refusing a change"},
        {NODE_KEY_CORDON, offsetof(Node, annotations.cordon_cards), "2,3", "2;3", ANNOTATION_CORDON_CARDS,
         "indexes of cards", "; the cordon of gpu2, gpu3 stays"},
        {NODE_KEY_MEMORY_ISOLATION, offsetof(Node, annotations.memory_isolation), "both", "driver",
         ANNOTATION_MEMORY_ISOLATION, "auto, preload or both", "; the agent's --memory-isolation stays"},
};

static void set(Node *node, size_t i, const char *text) {
        *(Str *) ((char *) node + cases[i].offset) = str_from(text);
}

static void each_key_is_checked_alone(void) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_buf_ Buf all = BUF_NULL;
                NodeKeys k = {0};
                Node node = {0};

                for (size_t j = 0; j < ELEMENTSOF(cases); j++)
                        set(&node, j, j == i ? cases[j].bad : cases[j].good);
                node_keys_check(&k, &node, "share", "GiB", NULL);
                for (size_t j = 0; j < ELEMENTSOF(cases); j++)
                        ASSERT_INT(k.wrong[cases[j].key].text[0] != '\0', j == i);
                ASSERT_INT(k.changed, UINT32_C(1) << cases[i].key);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].name);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].bad);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].rule);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].in_force);
                node_keys_check(&k, &node, "share", "GiB", NULL); /* the same values again are no change */
                ASSERT_INT(k.changed, 0);
                node_keys_write_wrong(&k, &all);
                ASSERT_TEXT(all.data, k.wrong[cases[i].key].text);
                set(&node, i, cases[i].good);
                node_keys_check(&k, &node, "share", "GiB", NULL);
                ASSERT_INT(k.changed, UINT32_C(1) << cases[i].key);
                buf_clear(&all);
                node_keys_write_wrong(&k, &all);
                ASSERT_INT(all.len, 0);
        }
}

static void the_last_good_value_stays(void) {
        NodeKeys k = {0};
        Node node = {.placement = STR("spread"),
                     .annotations = {.place_while_changing = STR("true"), .unit_change = STR("drain")}};

        node_keys_check(&k, &node, "share", "GiB", NULL);
        ASSERT_TRUE(node_keys_place_while_changing(&k) && node_keys_drain(&k));
        node.placement = node.annotations.place_while_changing = node.annotations.unit_change = STR("x");
        node_keys_check(&k, &node, "share", "GiB", NULL);
        ASSERT_TRUE(node_keys_place_while_changing(&k) && node_keys_drain(&k));
        ASSERT_CONTAINS(k.wrong[NODE_KEY_PLACEMENT].text, "; spread stays");
        node = (Node){0}; /* an absent key means its default */
        node_keys_check(&k, &node, "share", "GiB", NULL);
        ASSERT_FALSE(node_keys_place_while_changing(&k) || node_keys_drain(&k));
}

static void cards_that_are_not_there(void) {
        Node node = {.annotations = {.cordon_cards = STR("1,4")}};
        CardIndexes present = {0};
        NodeKeys k = {0};

        for (uint32_t card = 0; card < 4; card++)
                card_indexes_add(&present, card);
        for (int again = 0; again < 2; again++) {
                node_keys_check(&k, &node, "share", "GiB", &present);
                ASSERT_CONTAINS(k.wrong[NODE_KEY_CORDON].text, "cordon-cards is \"1,4\", must be ");
                ASSERT_CONTAINS(k.wrong[NODE_KEY_CORDON].text, "the node has no gpu4; ");
                ASSERT_INT(k.changed, again ? 0 : UINT32_C(1) << NODE_KEY_CORDON);
        }
        ASSERT_TRUE(card_indexes_has(&k.cordon, 1));
        node_keys_apply_good(&k, &node);
        ASSERT_STR(node.annotations.cordon_cards, STR("1,4"));
        node.annotations.cordon_cards = STR("x");
        node_keys_check(&k, &node, "share", "GiB", &present);
        ASSERT_CONTAINS(k.wrong[NODE_KEY_CORDON].text, "; 1,4 stays in force");
        node.annotations.cordon_cards = STR("3");
        node_keys_check(&k, &node, "share", "GiB", &present);
        ASSERT_TEXT(k.wrong[NODE_KEY_CORDON].text, "");
        node.annotations.cordon_cards = (Str){0};
        node_keys_check(&k, &node, "share", "GiB", &present);
        ASSERT_TRUE(card_indexes_is_empty(&k.cordon));
}

/* An agent that starts does not know the last good value. */
static void a_wrong_cordon_lifts_none(void) {
        Node node = {.annotations = {.cordon_cards = STR("2")}};
        NodeKeys k = {0}, later = {0};

        node_keys_check(&k, &node, "share", "GiB", NULL);
        node.annotations.cordon_cards = STR("2;3");
        node_keys_check(&k, &node, "share", "GiB", NULL);
        ASSERT_CONTAINS(k.wrong[NODE_KEY_CORDON].text, "; 2 stays in force");
        ASSERT_TRUE(card_indexes_has(&k.cordon, 2) && !card_indexes_has(&k.cordon, 3));
        node_keys_check(&later, &node, "share", "GiB", NULL);
        ASSERT_CONTAINS(later.wrong[NODE_KEY_CORDON].text, "; the cordon of gpu2, gpu3 stays in force");
        ASSERT_TRUE(card_indexes_has(&later.cordon, 2) && card_indexes_has(&later.cordon, 3));
        node_keys_apply_good(&later, &node); /* for the node's ledger, which reads the same of it */
        ASSERT_STR(node.annotations.cordon_cards, STR("2;3"));
        node.annotations.cordon_cards = STR("x");
        node_keys_check(&later, &node, "share", "GiB", NULL);
        ASSERT_TRUE(card_indexes_has(&later.cordon, 2) && card_indexes_has(&later.cordon, 3));
}

static void a_huge_value_is_cut(void) {
        static char huge[100000];
        NodeKeys k = {0};
        Node node = {0};

        memset(huge, 'x', sizeof huge - 1);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                set(&node, i, huge);
        node_keys_check(&k, &node, "share", "GiB", NULL);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, "stays in force");
}

/* The kind of a key, its name, and what the text says; NULL: nothing. */
static void a_value_of_an_earlier_run_stays(void) {
        Node node = {.annotations.memory_isolation = STR("x")};
        NodeKeys k = {0};

        node_keys_recall(&k, NODE_KEY_MEMORY_ISOLATION, STR("both"));
        node_keys_recall(&k, NODE_KEY_MEMORY_ISOLATION, STR("driver"));
        ASSERT_TRUE(node_keys_limits_memory(&k, "preload"));
        node_keys_check(&k, &node, "cgpu", "GiB", NULL);
        ASSERT_TRUE(node_keys_limits_memory(&k, "preload"));
        ASSERT_CONTAINS(k.wrong[NODE_KEY_MEMORY_ISOLATION].text, "; both stays in force");
        node_keys_check(&k, &(Node){0}, "cgpu", "GiB", NULL);
        ASSERT_FALSE(node_keys_limits_memory(&k, "preload"));
}

static const struct {
        const char *labels, *annotations, *text;
} names[] = {
        {"", "\"aliquot.dev/max-pod-per-card\":\"3\"",
         "annotation aliquot.dev/max-pod-per-card is not known and changes nothing, did you mean annotation "
         "aliquot.dev/max-pods-per-card?"},
        {"\"ack.node.gpu.shedule\":\"cgpu\"", "",
         "label ack.node.gpu.shedule is not known and changes nothing, did you mean label "
         "ack.node.gpu.schedule?"},
        {"\"ack.node.gpu.schedule\":\"cgpu\"", "\"ack.node.gpu.placement\":\"spread\"",
         "annotation ack.node.gpu.placement is not known and changes nothing, did you mean label "
         "ack.node.gpu.placement?"},
        {"\"aliquot.dev/polcy\":\"1\"", "\"aliquot.dev/gpu-mem\":\"GiB\"",
         "label aliquot.dev/polcy is not known and changes nothing, did you mean annotation "
         "aliquot.dev/policy?; annotation aliquot.dev/gpu-mem is not known and changes nothing, did you mean "
         "annotation aliquot.dev/gpu-mem-unit?"},
        /* Those of other programs, and those that say too little. */
        {"\"ack.node.gpu.health\":\"x\",\"team\":\"x\"",
         "\"aliquot.dev/owner\":\"x\",\"aliquot.dev/max\":\"x\"", NULL},
        {"\"example.com/polcy\":\"x\"", "\"aliquot.dev/\":\"x\",\"\":\"x\"", NULL},
        /* All that the agent writes. */
        {"\"" LABEL_HOLDS_SLICES "\":\"true\",\"" LABEL_CARD_NAME "\":\"x\",\"" LABEL_CARD_MEM
         "\":\"x\",\"" LABEL_CARD_COUNT "\":\"1\"",
         "\"" ANNOTATION_CARDS "\":\"[]\",\"" ANNOTATION_HELD_SLICES "\":\"[]\",\"" ANNOTATION_MODE_IN_FORCE
         "\":\"x\",\"" ANNOTATION_UNIT_IN_FORCE "\":\"x\",\"" ANNOTATION_CHANGE_PENDING
         "\":\"x\",\"" ANNOTATION_SIMULATED_CARDS "\":\"x\"",
         NULL},
};

static void a_misspelt_key_is_told(void) {
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const uint32_t changed = names[i].text ? UINT32_C(1) << NODE_KEYS_ : 0;
                _cleanup_buf_ Buf json = BUF_NULL, all = BUF_NULL;
                NodeKeys k = {0};

                buf_appendf(&json, "{\"metadata\":{\"labels\":{%s},\"annotations\":{%s}}}", names[i].labels,
                            names[i].annotations);
                node_keys_check(&k, &(Node){0}, "share", "GiB", NULL);
                node_keys_check_names(&k, buf_str(&json));
                ASSERT_INT(k.changed, changed);
                node_keys_write_wrong(&k, &all);
                ASSERT_TEXT(all.len > 0 ? all.data : "", names[i].text ? names[i].text : "");
                node_keys_check(&k, &(Node){0}, "share", "GiB", NULL);
                node_keys_check_names(&k, buf_str(&json)); /* the same names again are no change */
                ASSERT_INT(k.changed, 0);
                node_keys_check_names(&k, STR("{\"metadata\":{}}"));
                ASSERT_INT(k.changed, changed);
                ASSERT_TEXT(k.wrong[NODE_KEYS_].text, "");
        }
}

static void each_key_is_recognised(void) {
        for (int key = 0; key < NODE_KEYS_; key++) {
                bool label = strcmp(node_key_kind((NodeKey) key), "label") == 0;
                _cleanup_buf_ Buf json = BUF_NULL;
                NodeKeys k = {0};

                buf_appendf(&json, "{\"metadata\":{\"%s\":{\"%s\":\"x\"}}}", label ? "labels" : "annotations",
                            node_key_name((NodeKey) key));
                node_keys_check_names(&k, buf_str(&json));
                ASSERT_TEXT(k.wrong[NODE_KEYS_].text, "");
                buf_clear(&json);
                buf_appendf(&json, "{\"metadata\":{\"%s\":{\"%ss\":\"x\"}}}",
                            label ? "labels" : "annotations", node_key_name((NodeKey) key));
                node_keys_check_names(&k, buf_str(&json));
                ASSERT_CONTAINS(k.wrong[NODE_KEYS_].text, node_key_name((NodeKey) key));
        }
}

int main(void) {
        return TEST_MAIN(TEST(each_key_is_checked_alone), TEST(the_last_good_value_stays),
                         TEST(a_value_of_an_earlier_run_stays), TEST(cards_that_are_not_there),
                         TEST(a_wrong_cordon_lifts_none), TEST(a_huge_value_is_cut),
                         TEST(a_misspelt_key_is_told), TEST(each_key_is_recognised));
}
