/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one look at a node answers for every request that wants one card. A scheduling cycle looks
 * at every node of the cluster. The summaries of 5,000 nodes stay in the second-level cache; the
 * nodes with their cards do not. */

#include "share/ledger_node.h"

enum {
        CORE_PER_CARD = 100,
        /* Compute is asked for in steps of 5 percent. */
        CORE_STEP = 5,
        CORE_LEVELS = CORE_PER_CARD / CORE_STEP + 1, /* 0, 5, .. 100 */
};

/* Free amounts count only cards that may take another pod now. What pods without a card ask for is
 * subtracted. The fields that are read most often stand first: a request with little compute, or
 * none, reads one cache line. */
typedef struct LedgerSummary {
        uint32_t fill;  /* used part of the node's units, 2^32 - 1 is all of them */
        uint32_t total; /* units over all cards; saturated, for ranking only */
        uint8_t mode;   /* ShareMode */
        uint8_t policy; /* PlacementPolicy */

        /* Whether the node takes a memory-only pod, and a memory+compute pod. It does when it has
         * an object and no change is pending, its mode offers the resource, and no pod of the other
         * kind is here (or mixing is allowed). */
        bool takes_memory, takes_core;
        bool takes_whole; /* the same for a pod of whole cards */

        uint32_t free_untouched; /* most units free on a card that holds no pod */
        /* [k]: most units free on a card that holds pods and has CORE_STEP * k percent free. */
        uint32_t free_used[CORE_LEVELS];
} LedgerSummary;

LedgerSummary ledger_summary_of(const LedgerNode *n);

/* After any change to the node's cards, grants or description. */
void ledger_summary_update(LedgerNode *n);
