/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the sums of a ledger are those of its grants. */

#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"
#include "share/ledger_summary.h"
#include "share/replicas.h"

/* What all grants of a list take together from one card, and what they have pending. */
typedef struct LedgerSums {
        uint64_t mem, core, pending, pending_core, cpu;
        size_t pods, grants, with_core, n_pending;
} LedgerSums;

static inline bool ledger_check_names(const Grant *g, uint32_t card) {
        for (size_t i = 0; i < g->n_slices; i++)
                if (g->slices[i].card == card)
                        return true;
        return false;
}

static inline void ledger_check_add(LedgerSums *sums, const Grant *list, uint32_t card) {
        for (const Grant *g = list; g; g = g->next) {
                GrantDemand d = grant_demand(g, card);

                sums->mem += d.mem;
                sums->core += d.core;
                sums->pods += ledger_check_names(g, card);
                sums->pending += g->pending;
                sums->pending_core += g->pending_core;
                sums->cpu += g->cpu;
                sums->grants++;
                sums->with_core += g->has_core;
                sums->n_pending += g->pending > 0;
        }
}

static inline bool ledger_check_card(const LedgerNode *n, size_t i) {
        const LedgerCard *c = &n->cards[i];
        LedgerSums sums = {0};

        if (i > 0 && n->cards[i - 1].index >= c->index)
                return false;
        ledger_check_add(&sums, n->grants, c->index);
        ledger_check_add(&sums, n->held, c->index);
        ledger_growth_sum(n, c->index, &sums.mem, &sums.core);
        return sums.mem == c->used && sums.core == c->core_used && sums.pods == c->pods;
}

static inline bool ledger_check_slices(const LedgerNode *n, const Grant *list) {
        for (const Grant *g = list; g; g = g->next)
                for (size_t i = 0; i < g->n_slices; i++)
                        if (!ledger_card_find(n, g->slices[i].card))
                                return false;
        return true;
}

static inline bool ledger_check_replicas(const LedgerNode *n) {
        for (const Grant *g = n->grants; g; g = g->next) {
                uint32_t count = 0;

                for (const Grant *other = n->grants; other; other = other->next)
                        count += g->app > 0 && other->app == g->app;
                if (replicas_on(replicas_of(n->ledger->replicas, g->app), n->slot) != count)
                        return false;
        }
        return true;
}

static inline bool ledger_check_held(const LedgerNode *n) {
        for (const Grant *held = n->held; held; held = held->next)
                for (const Grant *g = n->grants; g; g = g->next)
                        if (str_eq(grant_uid(g), grant_uid(held)))
                                return false;
        return true;
}

static inline bool ledger_check_summary(const LedgerNode *n) {
        LedgerSummary expected = ledger_summary_of(n), *s = &n->ledger->summaries[n->slot];

        return memcmp(expected.free_used, s->free_used, sizeof s->free_used) == 0 &&
               expected.free_untouched == s->free_untouched && expected.fill == s->fill &&
               expected.total == s->total && expected.mode == s->mode && expected.policy == s->policy &&
               expected.takes_memory == s->takes_memory && expected.takes_core == s->takes_core &&
               expected.takes_whole == s->takes_whole;
}

static inline bool ledger_check_node(const LedgerNode *n) {
        LedgerSums sums = {0};

        for (size_t i = 0; i < n->n_cards; i++)
                if (!ledger_check_card(n, i))
                        return false;
        ledger_check_add(&sums, n->grants, 0);
        ledger_check_add(&sums, n->held, 0);
        return sums.cpu == n->cpu.shares && sums.pending == n->pending &&
               sums.pending_core == n->pending_core && sums.grants == n->n_charged &&
               sums.with_core == n->n_with_core && sums.n_pending == n->n_pending &&
               ledger_check_slices(n, n->grants) && ledger_check_slices(n, n->held) &&
               ledger_check_slices(n, n->dormant) && ledger_check_replicas(n) && ledger_check_held(n) &&
               ledger_check_summary(n);
}

/* Recomputes every sum from the grants and compares. Returns false if one is wrong, which is a bug
 * of the ledger. */
static inline bool ledger_check(const Ledger *l) {
        CardLoad load = {0};

        for (size_t i = 0; i < l->n_nodes; i++) {
                if (l->nodes[i]->slot != i || !ledger_check_node(l->nodes[i]))
                        return false;
                load.parts += l->nodes[i]->load.parts;
                load.cpu += l->nodes[i]->load.cpu;
        }
        return HASH_COUNT(l->by_name) == l->n_nodes && load.parts == l->load.parts && load.cpu == l->load.cpu;
}
