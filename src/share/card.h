/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a node, what is free on them, and the summary of it. */

#include "share/ledger-internal.h"

LedgerCard *ledger_node_card(LedgerNode *n,
                             uint32_t index); /* made when missing, with 0 units; NULL: no memory */
const LedgerCard *ledger_node_find_card(const LedgerNode *n, uint32_t index);
int ledger_node_apply_cards(LedgerNode *n); /* what is described and fenced now; 0 or -ENOMEM */
void ledger_node_drop_stale_cards(LedgerNode *n);
NodeSummary ledger_node_summary(const LedgerNode *n);
void ledger_node_summarize(LedgerNode *n); /* after any change to cards, grants or description */

/* Under the ceiling of pods? */
static inline bool ledger_card_has_seat(const LedgerNode *n, const LedgerCard *c) {
        return n->now.max_pods == 0 || c->pods + n->n_pending < n->now.max_pods;
}

/* Units for one more pod. Where pending amounts will go is not known: they may go here. */
static inline uint32_t ledger_card_free(const LedgerNode *n, const LedgerCard *c) {
        uint64_t taken = c->used + n->pending;

        return c->healthy && taken < c->units ? (uint32_t) (c->units - taken) : 0;
}

static inline uint32_t ledger_card_core_free(const LedgerNode *n, const LedgerCard *c) {
        uint64_t taken = c->core_used + n->pending_core;

        return c->healthy && taken < CORE_PER_CARD ? (uint32_t) (CORE_PER_CARD - taken) : 0;
}

/* In use, or perhaps about to be: a pending pod may get any card. */
static inline bool ledger_card_is_used(const LedgerNode *n, const LedgerCard *c) {
        return c->pods > 0 || n->n_pending > 0;
}
