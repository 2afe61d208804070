/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a node object says about sharing, decoded and checked key by key: a key that does not decode
 * keeps the value that it had before, or gets the safest one, and hides no other key. */

#include "share/ledger.h"
#include "wire/node.h"

/* A card as the node object describes it. */
typedef struct CardShape {
        uint32_t index, units;
        bool healthy;
} CardShape;

enum { CHANGE_PENDING_MAX = 96 }; /* bytes of the text, with its NUL; a longer one is cut */

typedef struct NodeDescription {
        ShareMode mode;
        PlacementPolicy policy;
        MemoryUnit unit;
        CardShape *cards; /* sorted by index; owned */
        size_t n_cards;
        uint32_t max_pods; /* per card; 0: no ceiling */
        bool max_pods_said;
        bool allow_mixed;
        bool cards_unreadable; /* no card is known, because their annotation never decoded */
        char change_pending
                [CHANGE_PENDING_MAX]; /* ANNOTATION_CHANGE_PENDING; "": the node takes new slices */
} NodeDescription;

/* before: what is in force; all zero but for the unit when nothing is. Returns 0, LEDGER_E_NODE
 * with a fault that names every key that does not decode, and *ret is set as well; or -ENOMEM. */
int node_description_read(const Node *node, const NodeDescription *before, NodeDescription *ret,
                          Fault *fault);
void node_description_done(NodeDescription *d);
