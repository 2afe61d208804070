/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside the ledger: what its files and placement share. */

#include "base/hash.h"
#include "share/describe.h"
#include "share/ledger.h"
#include "share/replicas.h"

enum {
        CORE_PER_CARD = 100,
        CORE_STEP = 5,                               /* compute is asked for in steps of 5 percent */
        CORE_LEVELS = CORE_PER_CARD / CORE_STEP + 1, /* 0, 5, .. 100 */
        FENCE_BYTES = (CARD_INDEX_MAX + 1) / 8,
};

/* What one look at a node answers for every request that wants one card. A scheduling cycle looks
 * at every node of the cluster; 5,000 of these stay in the second-level cache, 5,000 nodes with
 * their cards do not. Free amounts are those of cards that may take another pod now, with pending
 * amounts subtracted. What is asked of most often stands first: with low levels of compute a look
 * costs one cache line. */
typedef struct NodeSummary {
        uint32_t fill;  /* used part of the node's units, 2^32 - 1 is all of them */
        uint32_t total; /* units over all cards; saturated, for ranking only */
        uint8_t mode;   /* ShareMode */
        uint8_t policy; /* PlacementPolicy */
        bool takes_memory; /* known, no change waits, the mode offers gpu-mem, and no memory+compute pod is here (or
                              mixing is allowed) */
        bool takes_core;
        uint32_t free_untouched; /* most units free on a card that nobody uses */
        uint32_t free_used
                [CORE_LEVELS]; /* [k]: most units free on a used card with at least 5 k percent free */
} NodeSummary;

struct LedgerNode {
        UT_hash_handle hh;
        Ledger *ledger;
        uint32_t slot; /* in ledger->nodes and ledger->summaries */
        char *name;
        size_t name_len;
        bool described;      /* there is a node object */
        NodeDescription now; /* in force */
        LedgerCard *cards;   /* described, or named by a grant; sorted by index */
        size_t n_cards, cards_room;
        Grant *grants;  /* of pods */
        Grant *held;    /* of pods that are gone, charged like the others */
        Grant *dormant; /* of pods whose own grant is here: not charged */
        size_t n_charged, n_with_core, n_pending;
        uint64_t pending, pending_core;
        uint8_t fenced[FENCE_BYTES];
};

struct Ledger {
        LedgerNode *by_name;
        LedgerNode **nodes;
        NodeSummary *summaries;
        size_t n_nodes, room;
        Replicas *replicas;
};

struct Grant {
        LedgerNode *node;
        Grant *next, **link;
        uint64_t app;
        uint32_t pending, pending_core;
        uint32_t n_slices;
        uint16_t namespace_len, name_len, uid_len;
        bool has_core;
        bool is_held;   /* from the node's annotation: belongs to the node */
        Slice slices[]; /* by card, then init containers before the others; the three texts follow */
};

/* What a grant takes from one card. */
typedef struct CardDemand {
        uint64_t mem, core;
} CardDemand;

/* ledger.c: the node of that name, made when it is not there; NULL when out of memory. */
LedgerNode *ledger_node_ensure(Ledger *l, Str name);
void ledger_node_drop_if_unused(LedgerNode *n);

/* grant.c */
int grant_build(const GrantSpec *spec, Grant **ret); /* not linked, not charged */
int grant_reserve_cards(LedgerNode *n, const Grant *g);
void grant_link(Grant *g, LedgerNode *n, Grant **list);
void grant_unlink(Grant *g);
void grant_charge(const Grant *g);
void grant_discharge(const Grant *g);
CardDemand grant_demand(const Grant *g, uint32_t card);
