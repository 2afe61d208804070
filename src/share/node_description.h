/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a Node object says about sharing. Each key is decoded and checked separately: one that does
 * not decode keeps its earlier value, or gets the safest one. */

#include "share/card_indexes.h"
#include "share/card_links.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "share/placement_policy.h"
#include "wire/node.h"

/* A card as the node object describes it. */
typedef struct CardShape {
        uint32_t index, units;
        bool healthy;
        Str model, uuid; /* empty: not known */
} CardShape;

enum { CHANGE_PENDING_MAX = 96, MEMORY_LIMITS_MAX = 200 }; /* with the NUL; a longer text is cut */

typedef struct NodeDescription {
        ShareMode mode;
        PlacementPolicy policy;
        MemoryUnit unit;
        CardShape *cards; /* sorted by index; owned, in one allocation with their texts */
        size_t n_cards;
        CardLinks *links;     /* owned reference; NULL: links make no difference, as far as is known */
        CardIndexes cordoned; /* cards in ANNOTATION_CORDON_CARDS, which take no new slice */
        uint64_t cpu;         /* allocatable, in thousandths of a core; 0: not known */
        uint32_t max_pods;    /* per card; 0: no ceiling */
        bool max_pods_said;
        bool allow_mixed;
        bool cards_unreadable; /* no card is known, because ANNOTATION_CARDS never decoded */
        char change_pending
                [CHANGE_PENDING_MAX]; /* ANNOTATION_CHANGE_PENDING; "": the node takes new slices */
        MemoryLimiting limiting;
        char limits_message[MEMORY_LIMITS_MAX]; /* what the agent says of it; "": nothing */
} NodeDescription;

/* Decodes the node. before: the description in force; when there is none, zeros with a unit.
 * Returns 0, -ENOMEM, or NODE_DESCRIPTION_E_KEY with a fault that names every key that does not
 * decode; *ret is set then, too. */
enum { NODE_DESCRIPTION_E_KEY = 1 };
int node_description_read(const Node *node, const NodeDescription *before, NodeDescription *ret,
                          Fault *fault);
void node_description_done(NodeDescription *d);
