/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger_summary.h"

#include "share/ledger-internal.h"
#include "share/ledger_card.h"

static uint32_t fill_of(uint64_t used, uint64_t total) {
        /* with up to 256 cards of 2^32 units: keeps the product within 64 bits */
        while (total > UINT32_MAX) {
                used >>= 1;
                total >>= 1;
        }
        if (total == 0 || used >= total)
                return UINT32_MAX;
        return (uint32_t) (used * UINT32_MAX / total);
}

/* So far each card counts at its own level alone. A card with more compute free serves lower
 * levels, too. */
static void spread_downwards(uint32_t free_used[static CORE_LEVELS]) {
        for (size_t k = CORE_LEVELS - 1; k > 0; k--)
                if (free_used[k - 1] < free_used[k])
                        free_used[k - 1] = free_used[k];
}

LedgerSummary ledger_summary_of(const LedgerNode *n) {
        bool with_core = n->n_with_core > 0, without = n->n_charged > n->n_with_core,
             takes = n->described && n->now.change_pending[0] == '\0';
        LedgerSummary s = {.mode = (uint8_t) n->now.mode, .policy = (uint8_t) n->now.policy};
        uint64_t used = 0, total = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                uint32_t room = ledger_card_takes_pod(n, c) ? ledger_card_free(n, c) : 0;
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
        s.takes_whole = takes && share_mode_has_whole(n->now.mode);
        s.takes_core = takes && share_mode_has_core(n->now.mode) && (!without || n->now.allow_mixed);
        return s;
}

/* The node's part of Ledger.load. Whole cards are left out: the cpu of their pods says nothing
 * about that of shares. So is the cpu of pods on a node where no card counts. */
static CardLoad load_of(const LedgerNode *n) {
        CardLoad load = {0};

        if (share_mode_has_whole(n->now.mode))
                return load;
        for (size_t i = 0; i < n->n_cards; i++)
                if (n->cards[i].units > 0)
                        load.parts += n->cards[i].used * FRAGMENT_ONE / n->cards[i].units;
        load.cpu = load.parts > 0 ? n->cpu.shares : 0;
        return load;
}

void ledger_summary_update(LedgerNode *n) {
        CardLoad load = load_of(n);

        n->ledger->load.parts += load.parts - n->load.parts;
        n->ledger->load.cpu += load.cpu - n->load.cpu;
        n->load = load;
        n->ledger->summaries[n->slot] = ledger_summary_of(n);
        rank_cache_forget(&n->ledger->ranks, n->slot);
}
