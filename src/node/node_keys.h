/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels and annotations by which an administrator steers a node, each judged by itself: a
 * wrong value of one key changes nothing of another. A wrong value leaves in force what the key
 * said last, or its default where it has said nothing good since the agent started. Mode and unit
 * have their own memory (node/node_config.h), which outlives a restart. Pure. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/node_key.h"

typedef struct NodeKeys {
        char good[NODE_KEYS_][24]; /* the last good value; "": the default */
        Fault wrong[NODE_KEYS_];   /* key, value, rule and what stays in force; "": the value is good */
        uint32_t changed; /* bit per key: wrong[] is another sentence than before the last keys_check() */
} NodeKeys;

/* Judges all keys of the node. mode and unit: what is in force, for the sentences ("none" for no
 * mode). */
void node_keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit);

/* Puts the last good value in the place of each wrong one. The Node then points into *k. */
void node_keys_apply_good(const NodeKeys *k, Node *node);

/* The sentences of all wrong keys, with "; " between them. Appends nothing where every key is
 * good. */
void node_keys_write_wrong(const NodeKeys *k, Buf *out);

/* The switches, as their last good values say; both are off by default. */
bool node_keys_place_while_changing(const NodeKeys *k);
bool node_keys_drain(const NodeKeys *k);
