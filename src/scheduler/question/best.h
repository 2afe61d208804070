/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The best of many nodes, in the order of placement_rank(), ties by name, so that every replica
 * answers the same. filter and prioritize both choose by this order. It is a heap with the worst
 * node on top: a node that is no better than all of it costs one comparison. */

#include "share/placement.h"

enum {
        /* So many prioritize keeps: more than the ten that get points, because some may be full of
         * pods on their way (promises.h). With as many from filter its choice is the same as among
         * all nodes. */
        BEST_KEPT = 32,
        BEST_MAX = 1000, /* of --filter-best */
};

typedef struct BestNode {
        uint64_t rank; /* smaller is better */
        Str name;
        const LedgerNode *node;
        Str raw; /* its text in the request */
} BestNode;

typedef struct Best {
        BestNode *nodes; /* the caller's, with room for `max` */
        size_t n, max;
} Best;

/* Keeps the node if it is among the best `max` so far. */
void best_offer(Best *b, const BestNode *node);

/* Puts the nodes in order, the best first. No node may be offered afterwards. */
void best_sort(Best *b);
