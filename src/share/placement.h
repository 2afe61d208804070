/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses the node and the cards of a request. Pure: it reads the ledger and changes nothing, so
 * that every retry gets the same answer. (The cluster autoscaler does not ask: its simulations
 * build the framework without extenders, simulator/framework/handle.go.)
 *
 *   binpack  fills one card, then the next: the fullest card that still fits. An untouched card is
 *            taken only when no used one fits, so that whole cards stay whole; then it is the
 *            smallest that fits. Nodes likewise, or by their expected fragment (node_order.h).
 *   spread   keeps replicas of one application apart: fewest of them on the card (node), then the
 *            emptiest by ratio. */

#include "share/ledger.h"
#include "share/request.h"

enum { PLACEMENT_E_REFUSED = 1 };

typedef struct Placement {
        Slice *slices; /* one for each container on each of its cards; in the arena */
        size_t n_slices;
} Placement;

/* Whether the request fits on the node now. Returns 0, or PLACEMENT_E_REFUSED with the reason.
 * Allocates nothing, because filter calls it for every node. */
int placement_check(const LedgerNode *node, const Request *request, Refusal *ret);

/* The same as if these grants of the node, each named once, were gone. Also -ENOMEM. */
int placement_check_without(const LedgerNode *node, const Request *request, const Grant *const *gone,
                            size_t n_gone, Refusal *ret);

/* A copy of a node, to try whether a pod would fit if other pods were gone. Node and grants must
 * not change while the trial lives. */
typedef struct PlacementTrial PlacementTrial;
int placement_trial_new(const LedgerNode *node, PlacementTrial **ret); /* 0 or -ENOMEM */
PlacementTrial *placement_trial_free(PlacementTrial *t);

/* Removes a grant of the node from the trial (each at most once), and puts it back. */
void placement_trial_take(PlacementTrial *t, const Grant *g);
void placement_trial_put_back(PlacementTrial *t, const Grant *g);

/* Removes every pending amount, for a pod that is admitted before pods without a card. */
void placement_trial_take_pending(PlacementTrial *t);

/* Leaves at most so many units and percent of this card free. Does nothing if the node has no such
 * card. */
void placement_trial_cap(PlacementTrial *t, uint32_t card, uint32_t mem, uint32_t core);

/* Places the request on the cards that the scheduler would choose. Returns false, and places
 * nothing, when it does not fit. */
bool placement_trial_place(PlacementTrial *t, const Request *request);
bool placement_trial_fits(const PlacementTrial *t, const Request *request);

/* placement_choose_cards() of the trial. */
int placement_trial_choose_cards(const PlacementTrial *t, const Request *request, Arena *arena,
                                 Placement *ret, Refusal *ret_refusal);

/* The trial's copy of the node, for the text of a refusal. Lives as long as the trial. */
const LedgerNode *placement_trial_node(const PlacementTrial *t);

/* Whether the grant is one of those that keep this request off the node because pods with and
 * without compute must not mix (REFUSAL_NODE_MIXED). */
bool placement_is_mixed_out_by(const LedgerNode *node, const Request *request, const Grant *g);

/* Whether the request would fit after these other requests were placed on the node, in their order.
 * Those that do not fit are passed over. False also when out of memory. */
bool placement_fits_after(const LedgerNode *node, const Request *request, const Request *const *before,
                          size_t n_before);

/* Chooses the cards for a request. Returns 0, PLACEMENT_E_REFUSED with *ret_refusal, or -ENOMEM. */
int placement_choose_cards(const LedgerNode *node, const Request *request, Arena *arena, Placement *ret,
                           Refusal *ret_refusal);

/* The order of nodes on which the request fits: smaller is better. Callers break ties by name. */
uint64_t placement_rank(const LedgerNode *node, const Request *request);

/* The best of all nodes of the ledger; NULL when it fits on none. Among equal nodes the answer is
 * the same until the ledger changes. */
LedgerNode *placement_choose_node(const Ledger *ledger, const Request *request);

DEFINE_CLEANUP(PlacementTrial *, placement_trial_free)
