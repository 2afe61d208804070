/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger_card.h"

#include <errno.h>

/* The index of the card in n->cards, or where it would be inserted. Machines number their cards
 * from 0 without gaps, so that the first guess is mostly right. */
static size_t position(const LedgerNode *n, uint32_t index) {
        size_t i = 0;

        if (index < n->n_cards && n->cards[index].index == index)
                return index;
        while (i < n->n_cards && n->cards[i].index < index)
                i++;
        return i;
}

const LedgerCard *ledger_card_find(const LedgerNode *n, uint32_t index) {
        size_t i = position(n, index);

        return i < n->n_cards && n->cards[i].index == index ? &n->cards[i] : NULL;
}

LedgerCard *ledger_card_ensure(LedgerNode *n, uint32_t index) {
        size_t i = position(n, index);

        if (i < n->n_cards && n->cards[i].index == index)
                return &n->cards[i];
        if (n->n_cards == n->cards_room) {
                /* Most nodes have 1, 2, 4 or 8 cards. */
                size_t room = n->cards_room > 0 ? 2 * n->cards_room : 1;
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

/* Whether a grant of the list is on the card. Cards of dormant grants are kept, so that the grants
 * can be resumed. */
static bool is_named(const Grant *list, uint32_t card) {
        for (const Grant *g = list; g; g = g->next)
                for (size_t i = 0; i < g->n_slices; i++)
                        if (g->slices[i].card == card)
                                return true;
        return false;
}

const CardShape *ledger_card_shape(const LedgerNode *n, const LedgerCard *c) {
        const CardShape *shapes = n->now.cards;
        size_t at = (size_t) (c - n->cards);

        /* Mostly the node describes each card, so both arrays have it at the same index. */
        if (at < n->now.n_cards && shapes[at].index == c->index)
                return &shapes[at];
        for (size_t i = 0; i < n->now.n_cards; i++)
                if (shapes[i].index == c->index)
                        return &shapes[i];
        return NULL;
}

CardVerdict ledger_card_judge_choice(const LedgerNode *n, const LedgerCard *c, const CardChoice *choice) {
        const CardShape *shape = ledger_card_shape(n, c);

        return shape ? card_choice_judge(choice, shape->model, shape->uuid) : CARD_NOT_KNOWN;
}

const char *ledger_card_lacks(const LedgerNode *n, const CardChoice *choice) {
        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                const CardShape *shape = ledger_card_shape(n, c);

                if (c->units > 0 && ledger_card_judge(n, c, choice) == CARD_NOT_KNOWN)
                        return shape && !str_is_empty(shape->model) ? "UUID" : "model";
        }
        return NULL;
}

void ledger_card_drop_stale(LedgerNode *n) {
        size_t kept = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];

                if (c->units > 0 || c->pods > 0 || c->used > 0 || c->core_used > 0 ||
                    ledger_card_shape(n, c) || is_named(n->dormant, c->index))
                        n->cards[kept++] = *c;
        }
        n->n_cards = kept;
}

int ledger_card_apply_described(LedgerNode *n) {
        for (size_t i = 0; i < n->now.n_cards; i++)
                if (!ledger_card_ensure(n, n->now.cards[i].index))
                        return -ENOMEM;
        for (size_t i = 0; i < n->n_cards; i++) {
                n->cards[i].units = 0;
                n->cards[i].healthy = true;
        }
        for (size_t i = 0; i < n->now.n_cards; i++) {
                const CardShape *shape = &n->now.cards[i];
                LedgerCard *c = ledger_card_ensure(n, shape->index);

                c->units = shape->units;
                c->healthy = shape->healthy && !ledger_card_is_cordoned(n, c) &&
                             !(n->fenced[c->index / 8] >> c->index % 8 & 1);
        }
        ledger_card_drop_stale(n);
        return 0;
}
