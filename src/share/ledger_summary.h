/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What placement needs to know of a node for every request for one card. A scheduling cycle looks
 * at every node of the cluster. The summaries of 5,000 nodes stay in the second-level cache; the
 * nodes with their cards do not. */

#include "share/ledger_node.h"

enum {
        CORE_PER_CARD = 100,
        /* Compute is requested in steps of 5 percent. */
        CORE_STEP = 5,
        CORE_LEVELS = CORE_PER_CARD / CORE_STEP + 1, /* 0, 5, .. 100 */
};

/* Free amounts count only on cards that can take another pod now, less all pending amounts. The
 * fields that are read most often come first: a request with little compute, or none, reads one
 * cache line. */
typedef struct LedgerSummary {
        uint32_t fill;  /* used fraction of the node's units; 2^32 - 1: all */
        uint32_t total; /* units of all cards; saturated, used only to rank nodes */
        uint8_t mode;   /* ShareMode */
        uint8_t policy; /* PlacementPolicy */

        /* Whether the node takes a memory-only pod, and a memory+compute pod. It does when it has
         * an object and no change is pending, its mode offers the resource, and no pod of the other
         * kind is here (or mixing is allowed). */
        bool takes_memory, takes_core;
        bool takes_whole; /* the same for a pod of whole cards */

        uint32_t free_untouched; /* most units free on an unused card */
        /* free_used[k]: most units free on a used card with at least CORE_STEP * k percent free. */
        uint32_t free_used[CORE_LEVELS];
} LedgerSummary;

LedgerSummary ledger_summary_of(const LedgerNode *n);

/* Recomputes the node's summary. To be called after any change to its cards, grants or
 * description. */
void ledger_summary_update(LedgerNode *n);
