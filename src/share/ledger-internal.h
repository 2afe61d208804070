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

/* Requests of cpu on a node, in thousandths of a core. */
typedef struct NodeCpu {
        uint64_t shares; /* of pods with a grant */
        uint64_t others; /* of all other pods */
} NodeCpu;

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
        Grant *grants;               /* of pods */
        Grant *held;                 /* of pods that are gone, charged like the others */
        Grant *dormant;              /* of pods whose own grant is here: not charged */
        struct LedgerGrowth *growth; /* charged beside the grants (ledger_growth.h) */
        uint64_t growth_serial;
        uint64_t growth_absent; /* a permit waits, and the annotation is absent since then; 0: neither */
        size_t n_charged, n_with_core, n_pending;
        uint64_t pending, pending_core;
        NodeCpu cpu;
        CardLoad load; /* of its shares; counted in ledger->load */
        uint8_t fenced[LEDGER_FENCE_BYTES];
};

struct Ledger {
        LedgerNode *by_name;
        LedgerNode **nodes;
        LedgerSummary *summaries;
        size_t n_nodes, room;
        Replicas *replicas;
        CardLinks *shapes; /* the links of nodes, each shape once */
        NodeOrder order;
        ShapeTally tally;  /* shapes of the grants of pods, but for those that are all pending */
        CardLoad load;     /* of all nodes */
        Fragment fragment; /* made from both when it is asked for */
        RankCache ranks;   /* made from that and the nodes */
};

/* The node of that name, made when it is not there; NULL when out of memory. */
LedgerNode *ledger_node_ensure(Ledger *l, Str name);

/* Frees a node that has no object, no grant and no fence. */
void ledger_node_drop_if_unused(LedgerNode *n);
