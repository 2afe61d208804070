/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The structs of the ledger, for its files and placement. */

#include "base/hash.h"
#include "share/fragment.h"
#include "share/grant-internal.h"
#include "share/ledger.h"
#include "share/ledger_summary.h"
#include "share/node_description.h"
#include "share/node_order.h"
#include "share/rank_cache.h"
#include "share/replicas.h"
#include "wire/annotation.h"

enum { LEDGER_FENCE_BYTES = (CARD_INDEX_MAX + 1) / 8 };

/* Requests of cpu by the pods on a node, in thousandths of a core. */
typedef struct NodeCpu {
        uint64_t shares; /* of pods with a grant */
        uint64_t others; /* of all other pods */
} NodeCpu;

struct LedgerNode {
        UT_hash_handle hh;
        Ledger *ledger;
        uint32_t slot; /* index in ledger->nodes and ledger->summaries */
        char *name;
        size_t name_len;
        bool described;      /* a Node object exists */
        NodeDescription now; /* the description in force */
        LedgerCard *cards;   /* those described or named by a grant, sorted by index */
        size_t n_cards, cards_room;
        Grant *grants;               /* of pods that exist */
        Grant *held;                 /* of pods that are gone; charged, too (held.h) */
        Grant *dormant;              /* as `held`, while the pod has a grant again; not charged */
        struct LedgerGrowth *growth; /* what is charged beside the grants (ledger_growth.h) */
        uint64_t growth_serial;
        uint64_t growth_absent; /* since when a permit waits while the annotation is absent; 0: not so */
        size_t n_charged, n_with_core, n_pending;
        uint64_t pending, pending_core;
        NodeCpu cpu;
        CardLoad load; /* the node's part of ledger->load */
        uint8_t fenced[LEDGER_FENCE_BYTES];
};

struct Ledger {
        LedgerNode *by_name;
        LedgerNode **nodes;
        LedgerSummary *summaries;
        size_t n_nodes, room;
        Replicas *replicas;
        CardLinks *shapes; /* table of the links of all nodes, each shape once */
        NodeOrder order;
        ShapeTally tally;  /* of the grants of pods that have a card */
        CardLoad load;     /* sum over all nodes */
        Fragment fragment; /* made from tally and load when needed */
        RankCache ranks;   /* made from fragment and the nodes */
};

/* Finds the node of that name, or adds it. NULL: out of memory. */
LedgerNode *ledger_node_ensure(Ledger *l, Str name);

/* Frees a node without Node object, grants, cpu of other pods and fences. */
void ledger_node_drop_if_unused(LedgerNode *n);
