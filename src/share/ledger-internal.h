/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside the ledger: what ledger.c, node.c and placement.c share. */

#include <uthash.h>

#include "share/ledger.h"

/* What one look at a node answers for most requests. Kept in one array for all nodes, in step with the cards,
 * because a scheduling cycle looks at every node of the cluster: 5,000 of these fit in the second-level
 * cache, 5,000 nodes with their grants do not. Free amounts are those of cards that may take another pod now;
 * pending units are subtracted. */
typedef struct NodeSummary {
        uint32_t free_used;      /* most units free on a card that is in use already */
        uint32_t free_untouched; /* most units free on a card that nobody uses */
        uint32_t used, total;    /* units over all cards; saturated, for ranking only */
        uint8_t mode;            /* ShareMode */
        uint8_t policy;          /* PlacementPolicy */
        bool takes_memory;       /* the mode offers gpu-mem, and no memory+compute pod is here (or mixing is
                                    allowed) */
        bool takes_core;
} NodeSummary;

enum { FENCE_BYTES = (CARD_INDEX_MAX + 1) / 8 };

/* What the node object says, decoded. */
typedef struct NodeDescription {
        ShareMode mode;
        PlacementPolicy policy;
        MemoryUnit unit;
        CardInfo *cards; /* sorted by index; texts not kept */
        size_t n_cards;
        uint32_t max_pods; /* per card; 0: no ceiling */
        bool allow_mixed;
} NodeDescription;

struct LedgerNode {
        UT_hash_handle hh;
        Ledger *ledger;
        size_t slot; /* in ledger->nodes and ledger->summaries */
        char *name;
        size_t name_len;
        bool described;         /* there is a node object */
        NodeDescription now;    /* in force */
        NodeDescription wanted; /* comes into force with the last grant; valid when has_wanted */
        bool has_wanted;
        LedgerCard *cards;
        size_t n_cards, cards_capacity;
        Grant *grants;
        size_t n_grants, n_with_core;
        uint64_t pending;
        uint64_t apps; /* bit per app hash: which applications may have a grant here */
        uint8_t fenced[FENCE_BYTES];
};

struct Ledger {
        LedgerNode *by_name;
        LedgerNode **nodes;
        NodeSummary *summaries;
        size_t n_nodes, capacity;
};

struct Grant {
        LedgerNode *node;
        Grant *next, **link;
        uint64_t app;
        uint32_t pending;
        uint16_t n_slices;
        uint16_t namespace_len, name_len, uid_len;
        bool has_core;
        Slice slices[]; /* by card, then init containers before the others; the three texts follow */
};

/* The node of that name, made when it is not there. NULL when out of memory. */
LedgerNode *ledger_node_ensure(Ledger *l, Str name);
void ledger_node_drop_if_unused(LedgerNode *n);
LedgerCard *ledger_node_card(LedgerNode *n,
                             uint32_t index); /* made when missing, with 0 units; NULL: no memory */
NodeSummary ledger_node_summary(const LedgerNode *n);
void ledger_node_summarize(LedgerNode *n); /* after any change to cards, grants or description */
void ledger_node_settle(LedgerNode *n);    /* the last grant went: what was wanted comes into force */

/* Free units of a card for one more pod, 0 when it takes none. */
uint32_t ledger_card_free(const LedgerNode *n, const LedgerCard *c);
uint32_t ledger_card_core_free(const LedgerCard *c);
bool ledger_card_has_seat(const LedgerNode *n, const LedgerCard *c); /* under the ceiling of pods */

size_t ledger_node_replicas(const LedgerNode *n, uint64_t app); /* grants of this application here */
