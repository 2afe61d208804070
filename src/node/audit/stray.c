/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/stray.h"

static uint64_t add(uint64_t a, uint64_t b) {
        uint64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

void stray_begin(Stray *s) {
        for (size_t i = 0; i < CARDS_MAX; i++)
                s->cards[i] = (StrayCard){.found = s->cards[i].found};
}

void stray_process(Stray *s, uint32_t card, uint32_t pid, StrayKind kind, uint64_t bytes) {
        StrayCard *c = card < CARDS_MAX ? &s->cards[card] : NULL;

        if (!c)
                return;
        c->n_living += kind == STRAY_LIVES;
        if (bytes == UINT64_MAX)
                c->unclear = true;
        else if (kind != STRAY_OUTSIDE)
                c->known = add(c->known, bytes);
        else {
                c->outside = add(c->outside, bytes);
                if (c->pid == 0 || bytes > c->largest) {
                        c->pid = pid;
                        c->largest = bytes;
                }
        }
}

void stray_total(Stray *s, uint32_t card, uint64_t used) {
        if (card >= CARDS_MAX)
                return;
        s->cards[card].total = true;
        s->cards[card].used = used;
}

bool stray_bytes(const Stray *s, uint32_t card, uint64_t *ret) {
        const StrayCard *c = card < CARDS_MAX ? &s->cards[card] : NULL;

        if (!c || !c->total || c->unclear)
                return false;
        *ret = c->used > c->known ? c->used - c->known : 0;
        return true;
}

bool stray_judge(Stray *s, uint32_t card) {
        StrayCard *c = card < CARDS_MAX ? &s->cards[card] : NULL;
        uint64_t bytes;

        /* Not to be said: neither there nor over. What was told stays told. */
        if (!c || !stray_bytes(s, card, &bytes))
                return false;
        if (c->outside <= STRAY_BASE && bytes <= add(STRAY_BASE, c->n_living * STRAY_PROCESS)) {
                lasting_under(&c->found);
                return false;
        }
        return lasting_over(&c->found);
}
