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
const char *node_key_rule(NodeKey key); /* what the value must be, in words: "true or false" */

/* Whether the value obeys the rule. An empty one, which means absent, does. */
bool node_key_is_good(NodeKey key, Str value);

/* get: the key's value on this node, empty if absent. set: replaces it; the text is not copied. */
Str node_key_get(const Node *node, NodeKey key);
void node_key_set(Node *node, NodeKey key, Str value);

/* Writes to *ret that the value is wrong and what stays in force, in the same words for scheduler
 * and agent:
 *
 *     annotation KEY is "x", must be a whole number, 0 for no ceiling; 20 pods per card stays in
 *     force */
void node_key_complain(NodeKey key, Str value, const char *in_force, Fault *ret);

/* max-pods-per-card of a node in this mode without the annotation; 0: no ceiling. */
uint32_t node_key_max_pods_default(ShareMode mode);

/* The words for such a ceiling in node_key_complain(): "20 pods per card". */
enum { NODE_KEY_MAX_PODS_TEXT = 32 };
void node_key_max_pods_words(uint32_t max, char ret[static NODE_KEY_MAX_PODS_TEXT]);
