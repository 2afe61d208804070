/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a node object says about sharing, decoded and checked before anything of it comes into force. */

#include "share/ledger.h"

/* A card as the node object describes it. */
typedef struct CardShape {
        uint32_t index, units;
        bool healthy;
} CardShape;

typedef struct NodeDescription {
        ShareMode mode;
        PlacementPolicy policy;
        MemoryUnit unit;
        CardShape *cards; /* sorted by index; owned */
        size_t n_cards;
        uint32_t max_pods; /* per card; 0: no ceiling */
        bool max_pods_said;
        bool allow_mixed;
} NodeDescription;

/* before: what was in force. Returns 0, LEDGER_E_NODE with a fault, or -ENOMEM. */
int node_describe(const Node *node, const NodeDescription *before, NodeDescription *ret, Fault *fault);
void node_description_done(NodeDescription *d);
uint32_t node_max_pods_default(ShareMode mode);
