/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_keys.h"

enum { SHOWN = 64 }; /* bytes of a wrong value in a text */

/* What stays in force for lack of a good value; NULL: the caller passes it. */
static const char *const otherwise[] = {
        [NODE_KEY_MODE] = NULL,
        [NODE_KEY_PLACEMENT] = "binpack",
        [NODE_KEY_UNIT] = NULL,
        [NODE_KEY_POLICY] = "the agent's --policy",
        [NODE_KEY_MAX_INST] = "the policy's default",
        [NODE_KEY_PRIO_RATIO] = "the policy's default",
        [NODE_KEY_MAX_PODS] = "the mode's default",
        [NODE_KEY_ALLOW_MIXED] = "false",
        [NODE_KEY_PLACE_WHILE_CHANGING] = "false",
        [NODE_KEY_UNIT_CHANGE] = "refusing a change while slices are held",
};

static void remember(NodeKeys *k, NodeKey key, Str text) {
        size_t n = text.len < sizeof k->good[key] ? text.len : 0; /* all good values fit */

        if (n > 0)
                memcpy(k->good[key], text.data, n);
        k->good[key][n] = '\0';
}

static void check(NodeKeys *k, NodeKey key, Str text, const char *in_force) {
        Fault said = FAULT_NULL;

        if (node_key_is_good(key, text))
                remember(k, key, text);
        else
                (void) fault_set(&said, 0, "%s %s is \"%.*s\", must be %s; %s stays in force",
                                 node_key_kind(key), node_key_name(key),
                                 (int) (text.len < SHOWN ? text.len : SHOWN), text.data, node_key_rule(key),
                                 otherwise[key] && k->good[key][0] ? k->good[key] : in_force);
        if (strcmp(said.text, k->wrong[key].text) != 0)
                k->changed |= UINT32_C(1) << key;
        k->wrong[key] = said;
}

void node_keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit) {
        k->changed = 0;
        for (int key = 0; key < NODE_KEYS_; key++) {
                const char *in_force = otherwise[key];

                if (!in_force)
                        in_force = key == NODE_KEY_MODE ? mode : unit;
                check(k, (NodeKey) key, node_key_get(node, (NodeKey) key), in_force);
        }
}

void node_keys_apply_good(const NodeKeys *k, Node *node) {
        for (int key = 0; key < NODE_KEYS_; key++)
                if (k->wrong[key].text[0] != '\0')
                        node_key_set(node, (NodeKey) key, str_from(k->good[key]));
}

void node_keys_write_wrong(const NodeKeys *k, Buf *out) {
        for (int key = 0; key < NODE_KEYS_; key++)
                if (k->wrong[key].text[0] != '\0')
                        buf_appendf(out, "%s%s", out->len > 0 ? "; " : "", k->wrong[key].text);
}

bool node_keys_place_while_changing(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_PLACE_WHILE_CHANGING], "true") == 0;
}

bool node_keys_drain(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_UNIT_CHANGE], "drain") == 0;
}
