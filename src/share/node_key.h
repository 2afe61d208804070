/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels and annotations by which an administrator configures a node: their names, and the rule
 * for each value. The scheduler, the agent and the options of both take the rules from here.
 * Pure. */

#include "base/fault.h"
#include "share/mode.h"
#include "wire/node.h"

typedef enum NodeKey {
        NODE_KEY_MODE,
        NODE_KEY_PLACEMENT,
        NODE_KEY_UNIT,
        NODE_KEY_POLICY,
        NODE_KEY_MAX_INST,
        NODE_KEY_PRIO_RATIO,
        NODE_KEY_MAX_PODS,
        NODE_KEY_ALLOW_MIXED,
        NODE_KEY_PLACE_WHILE_CHANGING,
        NODE_KEY_UNIT_CHANGE,
        NODE_KEY_CORDON,
        NODE_KEY_MEMORY_ISOLATION,
        NODE_KEYS_,
} NodeKey;

const char *node_key_kind(NodeKey key); /* "label" or "annotation" */
const char *node_key_name(NodeKey key);
const char *node_key_rule(NodeKey key); /* what the value must be: "true or false" */

/* Whether the value obeys the rule. An empty one is no value. */
bool node_key_is_good(NodeKey key, Str value);

/* The value on this node, empty where the key is absent. set: replaces it (not copied). */
Str node_key_get(const Node *node, NodeKey key);
void node_key_set(Node *node, NodeKey key, Str value);

/* Says that the value is wrong, and what stays in force. The scheduler and the agent say the same:
 *
 *     annotation KEY is "x", must be a whole number, 0 for no ceiling; 20 pods per card stays in
 *     force */
void node_key_complain(NodeKey key, Str value, const char *in_force, Fault *ret);

/* The ceiling of pods of a node without the annotation; 0: none. */
uint32_t node_key_max_pods_default(ShareMode mode);

/* What a ceiling of pods is called in such a sentence. */
enum { NODE_KEY_MAX_PODS_TEXT = 32 };
void node_key_max_pods_words(uint32_t max, char ret[static NODE_KEY_MAX_PODS_TEXT]);
