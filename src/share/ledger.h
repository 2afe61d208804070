/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who holds what. A grant is an object: creating it charges the cards, freeing it gives exactly
 * that back, and a node asserts when it dies that everything came home. The ledger holds what is
 * true, not what is allowed: grants read from annotations are charged even where they exceed a
 * card, contradict the node or name a card it does not have, because those containers run. Only
 * placement refuses. One thread; no clock; no I/O. */

#include "share/mode.h"
#include "share/refusal.h"
#include "share/unit.h"
#include "wire/object.h"

typedef struct Ledger Ledger;
typedef struct LedgerNode LedgerNode;
typedef struct Grant Grant;

/* One card's sums, for those who print or place. */
typedef struct LedgerCard {
        uint32_t index;
        uint32_t units;     /* 0 for a card that grants name but the node does not have */
        uint64_t used;      /* units; may exceed `units`, never wraps */
        uint64_t core_used; /* percent */
        uint32_t pods;      /* grants with something on this card */
        bool healthy;
} LedgerCard;

/* A slice: one container's part of one card. */
typedef struct Slice {
        uint32_t card;
        uint32_t mem, core;
        uint16_t container; /* index in its own list */
        uint8_t kind;       /* ContainerKind */
} Slice;

/* For qsort(): by card, then init containers before the others, as a grant has them. */
int slice_compare(const void *a, const void *b);

int ledger_new(Ledger **ret);
Ledger *ledger_free(Ledger *l); /* and the grants that are left */

/* Takes over what the node object says now, all of it at once: mode, placement policy, cards, unit,
 * switches, and the slices of pods that are gone (ledger_node_held). Grants on it stay. Mode and
 * unit are those that the node's agent publishes as in force; where it publishes none, the label
 * and the unit's annotation say them. Each key is judged by itself. Returns 0, -ENOMEM, or
 * LEDGER_E_NODE with a fault that names every key that does not decode, with its value, the rule
 * and what is in force: the last good value, else the safest. All other keys are in force as in the
 * case of 0. A node with ANNOTATION_CHANGE_PENDING is refused by placement.h for every request
 * (REFUSAL_NODE_CHANGING). The node's own agent, which still admits pods that are bound already,
 * empties node->annotations.change_pending before the call, and sets mode_in_force and
 * unit_in_force to its own. */
enum { LEDGER_E_NODE = 1 };
int ledger_node_set(Ledger *l, const Node *node, Fault *fault);

/* The node object is gone. Grants on it stay charged (their pods still exist); when the last goes,
 * so does the node. */
void ledger_node_remove(Ledger *l, Str name);

/* Cards that nobody may be placed on, whatever the node says (CONTRACT section 10): replaces the
 * earlier set, and stays while the node object comes and goes. Indexes over CARD_INDEX_MAX are
 * passed over. -ENOMEM. */
int ledger_node_set_fenced(Ledger *l, Str name, const uint32_t *cards, size_t n);

LedgerNode *ledger_node_find(const Ledger *l,
                             Str name); /* NULL: neither described, nor holding a grant, nor fenced */
size_t ledger_n_nodes(const Ledger *l);
LedgerNode *ledger_node_at(const Ledger *l, size_t i); /* 0..n-1, in no stable order */

Str ledger_node_name(const LedgerNode *n);

/* Somebody will ask placement about these nodes next (NULLs are passed over): what it reads first
 * is fetched for all of them at once. */
void ledger_prefetch(LedgerNode *const *nodes, size_t n);
ShareMode ledger_node_mode(const LedgerNode *n);
PlacementPolicy ledger_node_policy(const LedgerNode *n);
MemoryUnit ledger_node_unit(const LedgerNode *n);
size_t ledger_node_n_cards(const LedgerNode *n);
const LedgerCard *ledger_node_cards(const LedgerNode *n); /* by index */
uint32_t ledger_node_pending(const LedgerNode *n);        /* units of grants that have no card yet */

/* Charges `slices` (copied) on the node, which is made when it is not known yet. Amounts that have
 * no card yet are pending, beside the slices or alone: the pod was bound by another scheduler
 * before the node chose. Every card is then taken to hold them. Returns 0, -ENOMEM, or -E2BIG for
 * 2^16 slices or a text of 2^16 bytes. */
typedef struct GrantSpec {
        Str namespace_, name, uid; /* copied */
        Str node;
        const Slice *slices;
        size_t n_slices;
        uint32_t pending_mem, pending_core;
        bool has_core; /* memory+compute pod, for the mixing rule */
        uint64_t app;
} GrantSpec;
int grant_new(Ledger *l, const GrantSpec *spec, Grant **ret);
Grant *grant_free(Grant *g); /* gives everything back; not for those of ledger_node_held() */

Str grant_namespace(const Grant *g);
Str grant_name(const Grant *g);
Str grant_uid(const Grant *g);
LedgerNode *grant_node(const Grant *g);
const Slice *grant_slices(const Grant *g,
                          size_t *ret_n); /* by card, then init containers before the others */
uint32_t grant_mem_on_card(const Grant *g,
                           uint32_t card); /* occupied: init by maximum, others by sum; saturated */
uint32_t grant_core_on_card(const Grant *g, uint32_t card);
uint32_t grant_pending(const Grant *g);
uint32_t grant_pending_core(const Grant *g);
Grant *ledger_node_grants(const LedgerNode *n); /* of pods: first, then grant_next() */
Grant *ledger_node_held(
        const LedgerNode *n); /* likewise, of pods that are gone: owned by the node (held.c) */
Grant *grant_next(const Grant *g);

/* Every sum recomputed from the grants and compared; false is our bug. For tests and debug
 * builds. */
bool ledger_check(const Ledger *l);

DEFINE_CLEANUP(Ledger *, ledger_free)
