/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The labels and annotations that configure a node. Each key is checked alone: a wrong value of one
 * changes nothing of another. While a value is wrong, the last good value stays in force, or the
 * default if there was none since the agent started. A wrong cordon is then one of the cards that
 * it names (card_indexes_take()). Mode and unit are kept over restarts, in
 * node/publish/node_config.h. Pure. */

#include "base/buf.h"
#include "base/fault.h"
#include "share/card_indexes.h"
#include "share/node_key.h"

typedef struct NodeKeys {
        char good[NODE_KEYS_][CARD_INDEXES_TEXT_MAX + 1]; /* the last good value; "": the default */
        /* Key, value, rule and what stays in force; "": the value is good. The last one: keys that
         * are not known, but close to one of ours. */
        Fault wrong[NODE_KEYS_ + 1];
        CardIndexes cordon; /* in force, also cards that are not there */
        uint32_t changed;   /* bits by key: wrong[] has another text than before the last check */
} NodeKeys;

/* Checks all keys of the node. mode and unit: those in force, for the texts ("none" for no mode).
 * present: the node's cards; NULL: not known. A cordon of a card that is not there is a wrong value
 * that is in force for the others. */
void node_keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit,
                     const CardIndexes *present);

/* After node_keys_check(): looks for misspelt keys (wire/key_typo.h) in the JSON of the node. */
void node_keys_check_names(NodeKeys *k, Str node);

/* Replaces each wrong value by the last good one, but not a cordon where there was none: its reader
 * takes from the wrong value what node_keys_check() took. The Node then points into *k. */
void node_keys_apply_good(const NodeKeys *k, Node *node);

/* Appends the texts of all wrong keys, separated by "; ". */
void node_keys_write_wrong(const NodeKeys *k, Buf *out);

/* The last good values of the two switches; both are off by default. */
bool node_keys_place_while_changing(const NodeKeys *k);
bool node_keys_drain(const NodeKeys *k);

/* Whether the driver is to limit memory, too: ANNOTATION_MEMORY_ISOLATION. fallback: the value
 * where no good one was seen; NULL: none. */
bool node_keys_limits_memory(const NodeKeys *k, const char *fallback);
