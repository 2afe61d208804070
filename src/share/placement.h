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
        Slice *slices; /* every container of the request on each of its cards; in the arena */
        size_t n_slices;
} Placement;

/* Whether the request fits now: 0, or PLACEMENT_E_REFUSED with the reason. Nothing is allocated,
 * because filter calls it for every node. */
int placement_check(const LedgerNode *node, const Request *request, Refusal *ret);

/* The same, as if these grants (of this node, each once) were gone: for preemption. Also
 * -ENOMEM. */
int placement_check_without(const LedgerNode *node, const Request *request, const Grant *const *gone,
                            size_t n_gone, Refusal *ret);

/* A copy of a node for preemption, which asks whether a pod would fit if other pods were gone, once
 * for each set of victims. The node and the grants must not change while the trial lives. */
typedef struct PlacementTrial PlacementTrial;
int placement_trial_new(const LedgerNode *node, PlacementTrial **ret); /* 0 or -ENOMEM */
PlacementTrial *placement_trial_free(PlacementTrial *t);

/* Takes a grant of the node away (each at most once), and puts it back. */
void placement_trial_take(PlacementTrial *t, const Grant *g);
void placement_trial_put_back(PlacementTrial *t, const Grant *g);

/* Takes away every grant that has no card yet: for a pod that is admitted before these. */
void placement_trial_take_pending(PlacementTrial *t);

/* Leaves at most so many units and percent of this card free. A card that is not there is passed
 * over. */
void placement_trial_cap(PlacementTrial *t, uint32_t card, uint32_t mem, uint32_t core);

/* Places the request on the cards that the scheduler would choose. False when it does not fit, and
 * then nothing is placed. */
bool placement_trial_place(PlacementTrial *t, const Request *request);
bool placement_trial_fits(const PlacementTrial *t, const Request *request);

/* placement_choose_cards() of the trial. */
int placement_trial_choose_cards(const PlacementTrial *t, const Request *request, Arena *arena,
                                 Placement *ret, Refusal *ret_refusal);

/* What the trial has left, for the text of a refusal. Lives as long as the trial. */
const LedgerNode *placement_trial_node(const PlacementTrial *t);

/* Whether another kind of pod keeps this request off the node until the last of that kind is gone
 * (REFUSAL_NODE_MIXED), and the grant is of that kind. */
bool placement_is_mixed_out_by(const LedgerNode *node, const Request *request, const Grant *g);

/* Whether the request would fit after these other requests were placed there, each as it would be
 * placed. Those that fit no more are passed over. False also when there is no memory. */
bool placement_fits_after(const LedgerNode *node, const Request *request, const Request *const *before,
                          size_t n_before);

/* The cards for a request that fits. 0, PLACEMENT_E_REFUSED or -ENOMEM. */
int placement_choose_cards(const LedgerNode *node, const Request *request, Arena *arena, Placement *ret,
                           Refusal *ret_refusal);

/* Order among nodes on which the request fits: smaller is better, ties by name are the caller's. */
uint64_t placement_rank(const LedgerNode *node, const Request *request);

/* The best of all nodes of the ledger, NULL when it fits on none. Among equals it is the same one
 * until the ledger changes. */
LedgerNode *placement_choose_node(const Ledger *ledger, const Request *request);

DEFINE_CLEANUP(PlacementTrial *, placement_trial_free)
