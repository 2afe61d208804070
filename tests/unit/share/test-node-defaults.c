/* SPDX-License-Identifier: Apache-2.0 */

/* Settings of the installation: their rules, and that an annotation of the node overrides them. */

#include "share/node_defaults.h"
#include "test.h"

static void values_are_checked(void) {
        static const struct {
                NodeKey setting;
                const char *text, *why; /* NULL: good */
        } cases[] = {
                {NODE_KEY_MAX_INST, "1", NULL},
                {NODE_KEY_MAX_INST, "100", NULL},
                {NODE_KEY_MAX_INST, "0", "must be a whole number from 1 to 100"},
                {NODE_KEY_MAX_INST, "101", "must be a whole number from 1 to 100"},
                {NODE_KEY_PRIO_RATIO, "20", NULL},
                {NODE_KEY_PRIO_RATIO, "99", NULL},
                {NODE_KEY_PRIO_RATIO, "19", "must be a percentage from 20 to 99"},
                {NODE_KEY_PRIO_RATIO, "100", "must be a percentage from 20 to 99"},
                {NODE_KEY_MAX_PODS, "0", NULL},
                {NODE_KEY_MAX_PODS, "4294967295", NULL},
                {NODE_KEY_MAX_PODS, "4294967296", "must be a whole number, 0 for no ceiling"},
                {NODE_KEY_MAX_PODS, "20 ", "must be a whole number, 0 for no ceiling"},
                {NODE_KEY_ALLOW_MIXED, "true", NULL},
                {NODE_KEY_ALLOW_MIXED, "false", NULL},
                {NODE_KEY_ALLOW_MIXED, "yes", "must be true or false"},
                {NODE_KEY_PLACE_WHILE_CHANGING, "1", "must be true or false"},
                {NODE_KEY_PLACE_WHILE_CHANGING, "", "must be true or false"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                NodeDefaults d = {0};
                Fault fault = FAULT_NULL;
                int r = node_defaults_set(&d, cases[i].setting, cases[i].text, &fault);

                if (cases[i].why) {
                        ASSERT_INT(r, NODE_DEFAULTS_E_VALUE);
                        ASSERT_STR(str_from(fault.text), str_from(cases[i].why));
                        ASSERT_TRUE(d.values[cases[i].setting] == NULL);
                } else {
                        ASSERT_INT(r, 0);
                        ASSERT_STR(str_from(d.values[cases[i].setting]), str_from(cases[i].text));
                }
        }
}

static void annotations_go_first(void) {
        NodeDefaults d = {0};
        Node node = {.annotations = {.max_pods = STR("7")}};

        node_defaults_apply(&d, &node);
        ASSERT_TRUE(str_is_empty(node.annotations.max_inst));
        ASSERT_OK(node_defaults_set(&d, NODE_KEY_MAX_INST, "4", NULL));
        ASSERT_OK(node_defaults_set(&d, NODE_KEY_PRIO_RATIO, "60", NULL));
        ASSERT_OK(node_defaults_set(&d, NODE_KEY_MAX_PODS, "9", NULL));
        ASSERT_OK(node_defaults_set(&d, NODE_KEY_ALLOW_MIXED, "true", NULL));
        ASSERT_OK(node_defaults_set(&d, NODE_KEY_PLACE_WHILE_CHANGING, "true", NULL));
        node_defaults_apply(&d, &node);
        ASSERT_STR(node.annotations.max_inst, STR("4"));
        ASSERT_STR(node.annotations.prio_ratio, STR("60"));
        ASSERT_STR(node.annotations.max_pods, STR("7"));
        ASSERT_STR(node.annotations.allow_mixed, STR("true"));
        ASSERT_STR(node.annotations.place_while_changing, STR("true"));
        ASSERT_TRUE(str_is_empty(node.annotations.policy));
}

int main(void) {
        return TEST_MAIN(TEST(values_are_checked), TEST(annotations_go_first));
}
