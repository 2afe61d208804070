/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a node, and what is free on them. */

#include "share/card_choice.h"
#include "share/ledger-internal.h"

/* The node's card of that index: made with 0 units when it is missing, or NULL. ensure: NULL when
 * out of memory. */
LedgerCard *ledger_card_ensure(LedgerNode *n, uint32_t index);
const LedgerCard *ledger_card_find(const LedgerNode *n, uint32_t index);

/* A card of n->cards as the node describes it; NULL for one that only grants name. */
const CardShape *ledger_card_shape(const LedgerNode *n, const LedgerCard *c);

/* Whether the pod may use this card; choice NULL: any card. Pure, so that the loops of placement
 * keep the ledger's fields in registers. */
CardVerdict ledger_card_judge_choice(const LedgerNode *n, const LedgerCard *c, const CardChoice *choice)
        __attribute__((pure));
static inline CardVerdict ledger_card_judge(const LedgerNode *n, const LedgerCard *c,
                                            const CardChoice *choice) {
        return choice ? ledger_card_judge_choice(n, c, choice) : CARD_ALLOWED;
}

/* What is not known of a card that may be one of the choice: "model" or "UUID"; NULL: nothing. */
const char *ledger_card_lacks(const LedgerNode *n, const CardChoice *choice);

/* Whether the node's annotation keeps new slices from the card. */
static inline bool ledger_card_is_cordoned(const LedgerNode *n, const LedgerCard *c) {
        return card_indexes_has(&n->now.cordoned, c->index);
}

static inline bool ledger_card_any_cordoned(const LedgerNode *n) {
        return !card_indexes_is_empty(&n->now.cordoned);
}

/* Gives the cards the units and the health of the node's description, and its fences and
 * cordons. 0 or -ENOMEM. */
int ledger_card_apply_described(LedgerNode *n);

/* Removes the cards that neither the node nor a grant names. */
void ledger_card_drop_stale(LedgerNode *n);

/* Whether the card is below the ceiling of pods. */
static inline bool ledger_card_takes_pod(const LedgerNode *n, const LedgerCard *c) {
        return n->now.max_pods == 0 || c->pods + n->n_pending < n->now.max_pods;
}

/* Units, and percent, for one more pod. The card of pending amounts is not known yet, so that each
 * card counts all of them. */
static inline uint32_t ledger_card_free(const LedgerNode *n, const LedgerCard *c) {
        uint64_t taken = c->used + n->pending;

        return c->healthy && taken < c->units ? (uint32_t) (c->units - taken) : 0;
}

static inline uint32_t ledger_card_core_free(const LedgerNode *n, const LedgerCard *c) {
        uint64_t taken = c->core_used + n->pending_core;

        return c->healthy && taken < CORE_PER_CARD ? (uint32_t) (CORE_PER_CARD - taken) : 0;
}

/* Whether a pod holds something here, or may get it: a pending pod may get any card. */
static inline bool ledger_card_is_used(const LedgerNode *n, const LedgerCard *c) {
        return c->pods > 0 || n->n_pending > 0;
}
