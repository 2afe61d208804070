/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's checks of the labels and annotations that configure its node. Each key is checked
 * alone: a wrong value changes nothing of another key. While a value is wrong, the last good one
 * stays in force, or the default if there was none since the agent started. A wrong cordon without
 * a good one before cordons the cards that it names (card_indexes_take()). Mode, unit and memory
 * isolation are kept over restarts, in node/publish/node_config.h. Pure. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/card_indexes.h"
#include "share/node_key.h"

typedef struct NodeKeys {
        char good[NODE_KEYS_][CARD_INDEXES_TEXT_MAX + 1]; /* the last good value; "": the default */
        /* Key, value, rule and what stays in force; "": the value is good. The last element is
         * about unknown keys that are close to one of ours. */
        Fault wrong[NODE_KEYS_ + 1];
        CardIndexes cordon; /* cards in force, also ones that the node does not have */
        uint32_t changed;   /* bit per key: wrong[] differs from that of the check before */
} NodeKeys;

/* Checks all keys of the node. mode and unit: what is in force, for the texts ("none" for no mode).
 * present: the node's cards; NULL: not known. A cordon of a card that the node does not have is
 * wrong, but its other cards are cordoned. */
void node_keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit,
                     const CardIndexes *present);

/* Takes the good value that an earlier run of the agent saw last. A wrong one changes nothing. */
void node_keys_recall(NodeKeys *k, NodeKey key, Str value);

/* To be called after node_keys_check(). Looks for misspelt keys (wire/key_typo.h) in the JSON of
 * the node. */
void node_keys_check_names(NodeKeys *k, Str node);

/* Replaces each wrong value by the last good one, so that *node points into *k. A wrong cordon
 * without a good one before is left: its reader uses card_indexes_take(), as node_keys_check()
 * does. */
void node_keys_apply_good(const NodeKeys *k, Node *node);

/* Appends the texts of all wrong keys, separated by "; ". */
void node_keys_write_wrong(const NodeKeys *k, Buf *out);

/* The two switches by their last good values; off by default. */
bool node_keys_place_while_changing(const NodeKeys *k);
bool node_keys_drain(const NodeKeys *k);

/* Whether the driver limits memory, too (ANNOTATION_MEMORY_ISOLATION). fallback: used if no good
 * value has been seen; NULL: none. */
bool node_keys_limits_memory(const NodeKeys *k, const char *fallback);
