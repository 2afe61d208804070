/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a node, and what is free on them. */

#include "share/card_choice.h"
#include "share/ledger-internal.h"

/* The node's card of that index. ensure adds a missing card with 0 units, and returns NULL when out
 * of memory; find returns NULL for a missing one. */
LedgerCard *ledger_card_ensure(LedgerNode *n, uint32_t index);
const LedgerCard *ledger_card_find(const LedgerNode *n, uint32_t index);

/* What the node's description says of the card; NULL: it does not describe it. */
const CardShape *ledger_card_shape(const LedgerNode *n, const LedgerCard *c);

/* Whether the pod may use this card; choice NULL: any card. Pure, so that the loops of placement
 * keep the ledger's fields in registers. */
CardVerdict ledger_card_judge_choice(const LedgerNode *n, const LedgerCard *c, const CardChoice *choice)
        __attribute__((pure));
static inline CardVerdict ledger_card_judge(const LedgerNode *n, const LedgerCard *c,
                                            const CardChoice *choice) {
        return choice ? ledger_card_judge_choice(n, c, choice) : CARD_ALLOWED;
}

/* Why a card that the choice may allow cannot be judged: "model" or "UUID" is not known; NULL: no
 * such card. */
const char *ledger_card_lacks(const LedgerNode *n, const CardChoice *choice);

/* Whether the node's annotation keeps new slices from the card. */
static inline bool ledger_card_is_cordoned(const LedgerNode *n, const LedgerCard *c) {
        return card_indexes_has(&n->now.cordoned, c->index);
}

static inline bool ledger_card_any_cordoned(const LedgerNode *n) {
        return !card_indexes_is_empty(&n->now.cordoned);
}

/* Applies units and health of the node's description, fences and cordons to the cards. Returns 0 or
 * -ENOMEM. */
int ledger_card_apply_described(LedgerNode *n);

/* Removes cards without units, charges and description, except those that dormant grants name. */
void ledger_card_drop_stale(LedgerNode *n);

/* Whether the card has fewer pods than max-pods-per-card. */
static inline bool ledger_card_takes_pod(const LedgerNode *n, const LedgerCard *c) {
        return n->now.max_pods == 0 || c->pods + n->n_pending < n->now.max_pods;
}

/* Units, and percent, that one more pod can get. Pending amounts may come to any card, so each card
 * counts them all. */
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
