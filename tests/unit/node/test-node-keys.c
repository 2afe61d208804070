/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_keys.h"
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
         "a whole number", "; the mode's default stays"},
        {NODE_KEY_ALLOW_MIXED, offsetof(Node, annotations.allow_mixed), "true", "yes", ANNOTATION_ALLOW_MIXED,
         "true or false", "; false stays"},
        {NODE_KEY_PLACE_WHILE_CHANGING, offsetof(Node, annotations.place_while_changing), "true", "True",
         ANNOTATION_PLACE_WHILE_CHANGING, "true or false", "; false stays"},
        {NODE_KEY_UNIT_CHANGE, offsetof(Node, annotations.unit_change), "drain", "Drain",
         ANNOTATION_UNIT_CHANGE, "drain", "; refusing a change"},
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
                node_keys_check(&k, &node, "share", "GiB");
                for (size_t j = 0; j < ELEMENTSOF(cases); j++)
                        ASSERT_INT(k.wrong[cases[j].key].text[0] != '\0', j == i);
                ASSERT_INT(k.changed, UINT32_C(1) << cases[i].key);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].name);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].bad);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].rule);
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, cases[i].in_force);
                node_keys_check(&k, &node, "share", "GiB"); /* the same values again are no change */
                ASSERT_INT(k.changed, 0);
                node_keys_write_wrong(&k, &all);
                ASSERT_TEXT(all.data, k.wrong[cases[i].key].text);
                set(&node, i, cases[i].good);
                node_keys_check(&k, &node, "share", "GiB");
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

        node_keys_check(&k, &node, "share", "GiB");
        ASSERT_TRUE(node_keys_place_while_changing(&k) && node_keys_drain(&k));
        node.placement = node.annotations.place_while_changing = node.annotations.unit_change = STR("x");
        node_keys_check(&k, &node, "share", "GiB");
        ASSERT_TRUE(node_keys_place_while_changing(&k) && node_keys_drain(&k));
        ASSERT_CONTAINS(k.wrong[NODE_KEY_PLACEMENT].text, "; spread stays");
        node = (Node){0}; /* an absent key means its default */
        node_keys_check(&k, &node, "share", "GiB");
        ASSERT_FALSE(node_keys_place_while_changing(&k) || node_keys_drain(&k));
}

static void a_huge_value_is_cut(void) {
        static char huge[100000];
        NodeKeys k = {0};
        Node node = {0};

        memset(huge, 'x', sizeof huge - 1);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                set(&node, i, huge);
        node_keys_check(&k, &node, "share", "GiB");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ASSERT_CONTAINS(k.wrong[cases[i].key].text, "stays in force");
}

int main(void) {
        return TEST_MAIN(TEST(each_key_is_checked_alone), TEST(the_last_good_value_stays),
                         TEST(a_huge_value_is_cut));
}
