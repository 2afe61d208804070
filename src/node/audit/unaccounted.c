/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/unaccounted.h"

static uint64_t add(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void unaccounted_begin(Unaccounted *u) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                u->cards[i] = (UnaccountedCard){.found = u->cards[i].found,
                                                .told_holders = u->cards[i].told_holders};
}

void unaccounted_process(Unaccounted *u, uint32_t card, uint32_t pid, ProcessKind kind, uint64_t bytes) {
        UnaccountedCard *c = card < CARDS_MAX ? &u->cards[card] : NULL;

        if (!c)
                return;
        c->n_living += kind == PROCESS_LIVES;
        if (bytes == UINT64_MAX)
                c->unclear = true;
        else if (kind != PROCESS_OUTSIDE)
                c->known = add(c->known, bytes);
        else {
                c->outside = add(c->outside, bytes);
                if (c->pid == 0 || bytes > c->largest) {
                        c->pid = pid;
                        c->largest = bytes;
                }
        }
}

void unaccounted_total(Unaccounted *u, uint32_t card, uint64_t used) {
        if (card >= CARDS_MAX)
                return;
        u->cards[card].total = true;
        u->cards[card].used = used;
}

bool unaccounted_bytes(const Unaccounted *u, uint32_t card, uint64_t *ret) {
        const UnaccountedCard *c = card < CARDS_MAX ? &u->cards[card] : NULL;

        if (!c || !c->total || c->unclear)
                return false;
        *ret = c->used > c->known ? c->used - c->known : 0;
        return true;
}

UnaccountedReport unaccounted_check(Unaccounted *u, uint32_t card, bool has_holders) {
        UnaccountedCard *c = card < CARDS_MAX ? &u->cards[card] : NULL;
        bool first;
        uint64_t bytes;

        /* Not known: the finding neither begins nor ends. */
        if (!c || !unaccounted_bytes(u, card, &bytes))
                return UNACCOUNTED_NOTHING;
        if (c->outside <= UNACCOUNTED_BASE &&
            bytes <= add(UNACCOUNTED_BASE, c->n_living * UNACCOUNTED_PER_PROCESS)) {
                hysteresis_lower(&c->found);
                return UNACCOUNTED_NOTHING;
        }
        first = hysteresis_raise(&c->found);
        if (!first && (!c->found.reported || c->told_holders || !has_holders))
                return UNACCOUNTED_NOTHING;
        c->told_holders = has_holders;
        return first ? UNACCOUNTED_FOUND : UNACCOUNTED_HOLDERS_FOUND;
}
