/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A node of the ledger: its description, its cards, and its grants. */

#include "share/grant.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "share/placement_policy.h"
#include "wire/node.h"

typedef struct LedgerNode LedgerNode;

/* One card's sums. */
typedef struct LedgerCard {
        uint32_t index;
        uint32_t units;     /* 0 for a card that grants name but the node does not have */
        uint64_t used;      /* units; may exceed `units`, never wraps */
        uint64_t core_used; /* percent */
        uint32_t pods;      /* number of grants with a slice on it */
        bool healthy;       /* and neither fenced nor cordoned */
} LedgerCard;

/* Takes over the Node object: mode, placement policy, cards, unit, switches, and the slices of pods
 * that are gone (ledger_node_held). Grants on the node stay.
 *
 * Mode and unit are those that the node's agent publishes as in force. If it publishes none, they
 * come from the label and the unit's annotation. Each key is judged separately. A node with
 * ANNOTATION_CHANGE_PENDING is refused by placement.h for every request (REFUSAL_NODE_CHANGING).
 * The node's own agent still admits pods that are bound already: before the call it empties
 * node->annotations.change_pending, and sets mode_in_force and unit_in_force to its own.
 *
 * Returns 0, -ENOMEM, or LEDGER_E_NODE with a fault. The fault names every key that does not
 * decode, its value, the rule and what is in force: the last good value, else the safest. All other
 * keys are then in force as in the case of 0. */
enum { LEDGER_E_NODE = 1 };
int ledger_node_set(struct Ledger *l, const Node *node, Fault *fault);

/* The Node object is gone. Grants and cpu on the node stay charged, because their pods exist; the
 * node is freed with the last of them. */
void ledger_node_remove(struct Ledger *l, Str name);

/* Sets the cards that take no pod, whatever the node says. They replace the earlier set, and stay
 * while the Node object comes and goes. Indexes over CARD_INDEX_MAX are passed over. Returns 0 or
 * -ENOMEM. */
int ledger_node_set_fenced(struct Ledger *l, Str name, const uint32_t *cards, size_t n);

/* A pod without a grant runs on the node and requests so much cpu, in thousandths of a core.
 * Returns the node, for subtract_cpu, or NULL when out of memory. */
LedgerNode *ledger_node_add_cpu(struct Ledger *l, Str name, uint32_t cpu);
void ledger_node_subtract_cpu(LedgerNode *n, uint32_t cpu);

Str ledger_node_name(const LedgerNode *n);
ShareMode ledger_node_mode(const LedgerNode *n);
PlacementPolicy ledger_node_policy(const LedgerNode *n);
MemoryUnit ledger_node_unit(const LedgerNode *n);
size_t ledger_node_n_cards(const LedgerNode *n);
const LedgerCard *ledger_node_cards(const LedgerNode *n); /* by index */
size_t ledger_node_n_healthy(const LedgerNode *n);        /* number of cards; 0 for NULL */
/* Units of grants that have no card yet. */
uint32_t ledger_node_pending(const LedgerNode *n);
/* Requests of cpu of all pods that are counted, in thousandths of a core. */
uint64_t ledger_node_cpu(const LedgerNode *n);
/* The change of mode or unit that waits until no slice is held; "": none. Valid until the next
 * ledger_node_set(). */
const char *ledger_node_change_pending(const LedgerNode *n);
/* Whether the driver limits memory there. ret_message: what the node's agent says of it; "":
 * nothing. Valid until the next ledger_node_set(). */
MemoryLimiting ledger_node_memory_limits(const LedgerNode *n, const char **ret_message);

/* What reports show as used on a card. If slices grow into what others have given up, the sum for
 * new pods exceeds the card; then the charges are shown, which do not. */
typedef struct LedgerUse {
        uint64_t mem, core; /* units, percent */
} LedgerUse;
LedgerUse ledger_node_shown(const LedgerNode *n, const LedgerCard *c);

/* Whether the node shares memory and has a card without pods that may take one. */
bool ledger_node_has_idle_card(const LedgerNode *n);

/* The first grant of the node's pods, and of pods that are gone (share/held.h); then grant_next().
 * NULL: none. */
Grant *ledger_node_grants(const LedgerNode *n);
Grant *ledger_node_held(const LedgerNode *n);
