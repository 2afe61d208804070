/* SPDX-License-Identifier: Apache-2.0 */
#include "share/card.h"

#include <errno.h>

/* Where the card stands, or would stand. Machines number their cards from 0 without gaps: the first
 * guess is right. */
static size_t position(const LedgerNode *n, uint32_t index) {
        size_t i = 0;

        if (index < n->n_cards && n->cards[index].index == index)
                return index;
        while (i < n->n_cards && n->cards[i].index < index)
                i++;
        return i;
}

const LedgerCard *ledger_node_find_card(const LedgerNode *n, uint32_t index) {
        size_t i = position(n, index);

        return i < n->n_cards && n->cards[i].index == index ? &n->cards[i] : NULL;
}

LedgerCard *ledger_node_card(LedgerNode *n, uint32_t index) {
        size_t i = position(n, index);

        if (i < n->n_cards && n->cards[i].index == index)
                return &n->cards[i];
        if (n->n_cards == n->cards_room) {
                size_t room =
                        n->cards_room > 0 ? 2 * n->cards_room : 1; /* grown to fit: most nodes are alike */
                LedgerCard *cards = realloc(n->cards, room * sizeof *cards);

                if (!cards)
                        return NULL;
                n->cards = cards;
                n->cards_room = room;
        }
        memmove(&n->cards[i + 1], &n->cards[i], (n->n_cards - i) * sizeof *n->cards);
        n->cards[i] = (LedgerCard){.index = index, .healthy = true};
        n->n_cards++;
        return &n->cards[i];
}

/* Sleeping grants name cards too, which must be there when they wake. */
static bool is_named(const Grant *list, uint32_t card) {
        for (const Grant *g = list; g; g = g->next)
                for (size_t i = 0; i < g->n_slices; i++)
                        if (g->slices[i].card == card)
                                return true;
        return false;
}

static bool is_described(const LedgerNode *n, uint32_t card) {
        for (size_t i = 0; i < n->now.n_cards; i++)
                if (n->now.cards[i].index == card)
                        return true;
        return false;
}

/* Cards that neither the node nor a grant names any more. */
void ledger_node_drop_stale_cards(LedgerNode *n) {
        size_t kept = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];

                if (c->units > 0 || c->pods > 0 || is_described(n, c->index) ||
                    is_named(n->dormant, c->index))
                        n->cards[kept++] = *c;
        }
        n->n_cards = kept;
}

int ledger_node_apply_cards(LedgerNode *n) {
        for (size_t i = 0; i < n->now.n_cards; i++)
                if (!ledger_node_card(n, n->now.cards[i].index))
                        return -ENOMEM;
        for (size_t i = 0; i < n->n_cards; i++) {
                n->cards[i].units = 0;
                n->cards[i].healthy = true;
        }
        for (size_t i = 0; i < n->now.n_cards; i++) {
                const CardShape *shape = &n->now.cards[i];
                LedgerCard *c = ledger_node_card(n, shape->index);

                c->units = shape->units;
                c->healthy = shape->healthy && !(n->fenced[c->index / 8] >> c->index % 8 & 1);
        }
        ledger_node_drop_stale_cards(n);
        return 0;
}

/* ---- the summary ---- */

static uint32_t fill_of(uint64_t used, uint64_t total) {
        while (total > UINT32_MAX) { /* a node of 256 cards of 2^32 units: keep the product within 64 bits */
                used >>= 1;
                total >>= 1;
        }
        if (total == 0 || used >= total)
                return UINT32_MAX;
        return (uint32_t) (used * UINT32_MAX / total);
}

/* So far a card stands at its own level only; one with more compute free serves the lower levels as
 * well. */
static void spread_downwards(uint32_t free_used[static CORE_LEVELS]) {
        for (size_t k = CORE_LEVELS - 1; k > 0; k--)
                if (free_used[k - 1] < free_used[k])
                        free_used[k - 1] = free_used[k];
}

NodeSummary ledger_node_summary(const LedgerNode *n) {
        bool with_core = n->n_with_core > 0, without = n->n_charged > n->n_with_core,
             takes = n->described && n->now.change_pending[0] == '\0';
        NodeSummary s = {.mode = (uint8_t) n->now.mode, .policy = (uint8_t) n->now.policy};
        uint64_t used = 0, total = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                uint32_t room = ledger_card_has_seat(n, c) ? ledger_card_free(n, c) : 0;
                uint32_t *most = ledger_card_is_used(n, c)
                                         ? &s.free_used[ledger_card_core_free(n, c) / CORE_STEP]
                                         : &s.free_untouched;

                *most = room > *most ? room : *most;
                used += c->used;
                total += c->units;
        }
        spread_downwards(s.free_used);
        s.fill = fill_of(used, total);
        s.total = total > UINT32_MAX ? UINT32_MAX : (uint32_t) total;
        s.takes_memory = takes && share_mode_has_memory(n->now.mode) && (!with_core || n->now.allow_mixed);
        s.takes_core = takes && share_mode_has_core(n->now.mode) && (!without || n->now.allow_mixed);
        return s;
}

void ledger_node_summarize(LedgerNode *n) {
        n->ledger->summaries[n->slot] = ledger_node_summary(n);
}
