/* SPDX-License-Identifier: Apache-2.0 */
#include "share/placement.h"

#include <assert.h>
#include <errno.h>

#include "share/ledger-internal.h"

/* The ledger's summary of a node answers most questions without a look at its cards; whatever it cannot
 * answer (compute percent, several cards) is decided card by card. Both ways end in the same rule:
 * card_fits(). */

/* Room on this card for one more pod of this request, now? */
static bool card_fits(const LedgerNode *n, const LedgerCard *c, const Request *r) {
        return ledger_card_has_seat(n, c) && ledger_card_free(n, c) >= r->mem &&
               ledger_card_core_free(c) >= r->core;
}

static size_t count_fitting(const LedgerNode *n, const Request *r, size_t enough, bool used_only) {
        size_t count = 0;

        for (size_t i = 0; i < n->n_cards && count < enough; i++)
                count += (!used_only || n->cards[i].pods > 0) && card_fits(n, &n->cards[i], r);
        return count;
}

static bool is_simple(const Request *r) {
        return r->cards == 1 && r->core == 0;
}

static bool fits(const LedgerNode *n, const NodeSummary *s, const Request *r) {
        if (!(r->core > 0 ? s->takes_core : s->takes_memory))
                return false;
        if (s->free_used < r->mem && s->free_untouched < r->mem)
                return false;
        return is_simple(r) || count_fitting(n, r, r->cards, false) == r->cards;
}

/* ---- why not ---- */

static Refusal refusal_of(RefusalCode code, const LedgerNode *n, const Request *r, uint32_t limit) {
        return (Refusal){
                .code = code, .mem = r->mem, .core = r->core, .cards = r->cards, .limit = limit, .node = n};
}

static Refusal why_not_cards(const LedgerNode *n, const Request *r) {
        uint32_t cards = 0, healthy = 0, largest = 0, seats_apart = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];

                cards += c->units > 0;
                healthy += c->units > 0 && c->healthy;
                largest = c->healthy && c->units > largest ? c->units : largest;
                seats_apart += ledger_card_free(n, c) >= r->mem && ledger_card_core_free(c) >= r->core;
        }
        if (cards == 0)
                return refusal_of(REFUSAL_NODE_NOT_READY, n, r, 0);
        if (healthy == 0)
                return refusal_of(REFUSAL_UNHEALTHY, n, r, 0);
        if (r->mem > largest)
                return refusal_of(REFUSAL_CARD_TOO_SMALL, n, r, largest);
        if (r->cards > cards)
                return refusal_of(REFUSAL_CARDS_TOO_FEW, n, r, cards);
        if (seats_apart >= r->cards)
                return refusal_of(REFUSAL_PODS_PER_CARD, n, r, n->now.max_pods);
        return refusal_of(REFUSAL_NO_ROOM, n, r, 0);
}

static Refusal why_not(const LedgerNode *n, const NodeSummary *s, const Request *r) {
        if (!n->described)
                return refusal_of(REFUSAL_NODE_UNKNOWN, n, r, 0);
        if (!(r->core > 0 ? share_mode_has_core(n->now.mode) : share_mode_has_memory(n->now.mode)))
                return refusal_of(REFUSAL_NODE_MODE, n, r, 0);
        if (!(r->core > 0 ? s->takes_core : s->takes_memory))
                return refusal_of(REFUSAL_NODE_MIXED, n, r, 0);
        return why_not_cards(n, r);
}

int placement_check(const LedgerNode *node, const Request *request, Refusal *ret) {
        const NodeSummary *s = &node->ledger->summaries[node->slot];

        if (fits(node, s, request))
                return 0;
        *ret = why_not(node, s, request);
        return PLACEMENT_E_REFUSED;
}

/* ---- what if ---- */

static uint64_t less(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0; /* amounts beyond 32 bits are told saturated: never take away too much */
}

static void take_away(LedgerNode *n, const Grant *g) {
        for (size_t i = 0; i < n->n_cards; i++) {
                LedgerCard *c = &n->cards[i];
                uint32_t mem = grant_mem_on_card(g, c->index), core = grant_core_on_card(g, c->index);

                c->used = less(c->used, mem);
                c->core_used = less(c->core_used, core);
                c->pods -= (mem > 0 || core > 0) && c->pods > 0;
        }
        n->pending = less(n->pending, g->pending);
        n->n_grants--;
        n->n_with_core -= g->has_core;
}

/* A copy of the node with cards of its own, to reckon with. */
typedef struct WhatIf {
        LedgerNode node;
        NodeSummary summary;
} WhatIf;

static int what_if_begin(WhatIf *w, const LedgerNode *node) {
        LedgerCard *cards = calloc(node->n_cards + 1, sizeof *cards);

        if (!cards)
                return -ENOMEM;
        if (node->n_cards > 0)
                memcpy(cards, node->cards, node->n_cards * sizeof *cards);
        w->node = *node;
        w->node.cards = cards;
        w->summary = ledger_node_summary(&w->node);
        return 0;
}

static void what_if_done(WhatIf *w) {
        free(w->node.cards);
}

int placement_check_without(const LedgerNode *node, const Request *request, const Grant *const *gone,
                            size_t n_gone, Refusal *ret) {
        _cleanup_(what_if_done) WhatIf w = {0};
        int r;

        r = what_if_begin(&w, node);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_gone; i++) {
                assert(gone[i]->node == node);
                take_away(&w.node, gone[i]);
        }
        w.summary = ledger_node_summary(&w.node);
        if (fits(&w.node, &w.summary, request))
                return 0;
        *ret = why_not(&w.node, &w.summary, request);
        ret->node = node; /* the copy dies here */
        return PLACEMENT_E_REFUSED;
}

/* ---- which cards ---- */

/* a/b as a number of `bits` bits, so that cards and nodes of different sizes compare by ratio. */
static uint64_t ratio(uint64_t a, uint64_t b, unsigned bits) {
        uint64_t top = (UINT64_C(1) << bits) - 1;

        if (b == 0 || a >= b)
                return top;
        return a * top / b;
}

static size_t replicas_on_card(const LedgerNode *n, const LedgerCard *c, uint64_t app) {
        size_t count = 0;

        if (app == 0 || ledger_node_replicas(n, app) == 0)
                return 0;
        for (const Grant *g = n->grants; g; g = g->next)
                count += g->app == app && grant_mem_on_card(g, c->index) > 0;
        return count;
}

/* Smaller is better; ties go to the lower index, because cards are looked at in their order.
 *   binpack  used before untouched; among each the least room left
 *   spread   fewest replicas of this application; then the emptiest by ratio; then the fewest pods */
static uint64_t card_rank(const LedgerNode *n, const LedgerCard *c, const Request *r) {
        uint64_t replicas;

        if (n->now.policy == PLACEMENT_BINPACK)
                return (uint64_t) (c->pods == 0) << 32 | ledger_card_free(n, c);
        replicas = replicas_on_card(n, c, r->app);
        return (replicas > 0xffff ? 0xffff : replicas) << 40 | ratio(c->used, c->units, 20) << 16 |
               (c->pods > 0xffff ? 0xffff : c->pods);
}

static const LedgerCard *best_card(const LedgerNode *n, const Request *r,
                                   const bool taken[static CARD_INDEX_MAX + 1]) {
        const LedgerCard *best = NULL;
        uint64_t best_rank = UINT64_MAX;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                uint64_t rank;

                if (taken[c->index] || !card_fits(n, c, r))
                        continue;
                rank = card_rank(n, c, r);
                if (rank < best_rank) {
                        best_rank = rank;
                        best = c;
                }
        }
        return best;
}

static void add_slices(Placement *p, const Request *r, uint32_t card) {
        for (size_t i = 0; i < r->n_containers; i++) {
                const RequestContainer *c = &r->containers[i];

                p->slices[p->n_slices++] = (Slice){
                        .card = card,
                        .mem = c->mem,
                        .core = c->core,
                        .container = (uint16_t) c->index,
                        .kind = (uint8_t) c->kind,
                };
        }
}

int placement_choose_cards(const LedgerNode *node, const Request *request, Arena *arena, Placement *ret,
                           Refusal *ret_refusal) {
        bool taken[CARD_INDEX_MAX + 1] = {0};
        Placement p = {0};
        int r;

        r = placement_check(node, request, ret_refusal);
        if (r != 0)
                return r;
        p.slices = arena_new(arena, Slice, request->cards * request->n_containers);
        if (!p.slices)
                return -ENOMEM;
        for (uint32_t i = 0; i < request->cards; i++) {
                const LedgerCard *c = best_card(node, request, taken);

                taken[c->index] = true; /* the check found this many */
                add_slices(&p, request, c->index);
        }
        *ret = p;
        return 0;
}

/* ---- what if, continued: it needs the choice of cards ---- */

static void put_there(LedgerNode *n, const Request *r) {
        bool taken[CARD_INDEX_MAX + 1] = {0};

        for (uint32_t i = 0; i < r->cards; i++) {
                LedgerCard *c =
                        (LedgerCard *) (uintptr_t) best_card(n, r, taken); /* of the copy, which is ours */

                taken[c->index] = true;
                c->used += r->mem;
                c->core_used += r->core;
                c->pods++;
        }
        n->n_grants++;
        n->n_with_core += r->core > 0;
}

bool placement_fits_after(const LedgerNode *node, const Request *request, const Request *const *before,
                          size_t n_before) {
        _cleanup_(what_if_done) WhatIf w = {0};

        if (what_if_begin(&w, node) < 0)
                return false;
        for (size_t i = 0; i < n_before; i++) {
                if (!fits(&w.node, &w.summary, before[i]))
                        continue;
                put_there(&w.node, before[i]);
                w.summary = ledger_node_summary(&w.node);
        }
        return fits(&w.node, &w.summary, request);
}

/* ---- which node ---- */

/* Smaller is better:
 *   binpack  1 bit: does it break into untouched cards; 32 bits: room left on the node by ratio; 20: number
 * of units spread   16 bits: replicas of the application on the node; 32 bits: use of the node by ratio */
static uint64_t rank(const LedgerNode *n, const NodeSummary *s, const Request *r) {
        uint64_t left = s->used < s->total ? s->total - s->used : 0, replicas;
        bool breaks;

        if (s->policy == PLACEMENT_SPREAD) {
                replicas = ledger_node_replicas(n, r->app);
                return (replicas > 0xffff ? 0xffff : replicas) << 32 | ratio(s->used, s->total, 32);
        }
        breaks = is_simple(r) ? s->free_used < r->mem : count_fitting(n, r, r->cards, true) < r->cards;
        return (uint64_t) breaks << 52 | ratio(left, s->total, 32) << 20 |
               (s->total > 0xfffff ? 0xfffff : s->total);
}

uint64_t placement_rank(const LedgerNode *node, const Request *request) {
        return rank(node, &node->ledger->summaries[node->slot], request);
}

LedgerNode *placement_choose_node(const Ledger *ledger, const Request *request) {
        LedgerNode *best = NULL;
        uint64_t best_rank = UINT64_MAX;

        for (size_t i = 0; i < ledger->n_nodes; i++) {
                const NodeSummary *s = &ledger->summaries[i];
                LedgerNode *n = ledger->nodes[i];
                uint64_t this_rank;

                if (!fits(n, s, request))
                        continue;
                this_rank = rank(n, s, request);
                if (this_rank < best_rank || (this_rank == best_rank &&
                                              str_compare(ledger_node_name(n), ledger_node_name(best)) < 0)) {
                        best_rank = this_rank;
                        best = n;
                }
        }
        return best;
}
