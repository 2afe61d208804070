/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The best of many nodes, in the order of placement_rank(), ties by name, so that every replica
 * answers the same. filter and prioritize both choose by this order. It is a heap with the worst
 * node on top: a node that is no better than all of it costs one comparison. */

#include "share/placement.h"

enum {
        /* Number of nodes that prioritize keeps: more than the ten that get points, because pods on
         * their way may fill some (promises.h). filter answers at least as many, so that
         * prioritize's choice is the same as among all nodes. */
        BEST_KEPT = 32,
        BEST_MAX = 1000, /* greatest --filter-best */
};

typedef struct BestNode {
        uint64_t rank; /* smaller is better */
        Str name;
        const LedgerNode *node;
        Str raw; /* its text in the request */
} BestNode;

typedef struct Best {
        BestNode *nodes; /* an array of the caller with `max` elements */
        size_t n, max;
} Best;

/* Keeps the node if it is among the best `max` so far. */
void best_offer(Best *b, const BestNode *node);

/* Sorts the nodes, the best first. best_offer() must not be called afterwards. */
void best_sort(Best *b);
