/* SPDX-License-Identifier: Apache-2.0 */
#include "share/placement.h"

#include <assert.h>
#include <errno.h>

#include "share/card_set.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "wire/annotation.h"

/* For one card that the pod did not choose, a node's summary answers exactly. For several cards, or
 * chosen ones, it only rules nodes out, and the cards are counted. Both ways apply one rule:
 * card_fits(). */

/* Whether this card has room for one more pod of this request now. */
static bool card_fits(const LedgerNode *n, const LedgerCard *c, const Request *r) {
        return ledger_card_takes_pod(n, c) && ledger_card_free(n, c) >= r->mem &&
               ledger_card_core_free(n, c) >= r->core && ledger_card_judge(n, c, r->choice) == CARD_ALLOWED;
}

/* Whether the summary alone does not decide, so that the cards must be counted. */
static bool must_count(const Request *r) {
        return r->cards > 1 || r->choice;
}

static uint32_t count_fitting(const LedgerNode *n, const Request *r, bool used_only) {
        uint32_t count = 0;

        for (size_t i = 0; i < n->n_cards && count < r->cards; i++)
                count +=
                        (!used_only || ledger_card_is_used(n, &n->cards[i])) && card_fits(n, &n->cards[i], r);
        return count;
}

/* The index of the request's compute in LedgerSummary.free_used. Requests have whole steps. */
static uint32_t level_of(const Request *r) {
        assert(r->core % CORE_STEP == 0 && r->core <= CORE_PER_CARD);
        return r->core / CORE_STEP;
}

/* Whether the node takes this kind of pod now. */
static bool takes_kind(const LedgerSummary *s, const Request *r) {
        return r->whole ? s->takes_whole : r->core > 0 ? s->takes_core : s->takes_memory;
}

/* Whether the request fits by the summary. If must_count(), true only means that it may. */
static bool summary_fits(const LedgerSummary *s, const Request *r, uint32_t level) {
        return takes_kind(s, r) && (s->free_used[level] >= r->mem || s->free_untouched >= r->mem);
}

static bool fits_node(const LedgerNode *n, const LedgerSummary *s, const Request *r) {
        return summary_fits(s, r, level_of(r)) && (!must_count(r) || count_fitting(n, r, false) == r->cards);
}

/* ---- why not ---- */

static Refusal refusal_of(RefusalCode code, const LedgerNode *n, const Request *r, uint32_t limit) {
        return (Refusal){.code = code,
                         .mem = r->mem,
                         .core = r->core,
                         .cards = r->cards,
                         .limit = limit,
                         .whole = r->whole,
                         .node = n,
                         .choice = r->choice};
}

/* Whether the card is healthy and the pod may use it. */
static bool counts_card(const LedgerNode *n, const LedgerCard *c, const Request *r) {
        return c->healthy && c->units > 0 && ledger_card_judge(n, c, r->choice) == CARD_ALLOWED;
}

/* Units of the request's smallest card if it got the largest healthy cards. */
static uint32_t largest_for(const LedgerNode *n, const Request *r) {
        uint64_t limit = UINT64_MAX;
        uint32_t at_least = 0;

        while (at_least < r->cards) { /* one size per round, from the largest down */
                uint32_t next = 0;

                for (size_t i = 0; i < n->n_cards; i++)
                        if (n->cards[i].units < limit && n->cards[i].units > next &&
                            counts_card(n, &n->cards[i], r))
                                next = n->cards[i].units;
                if (next == 0)
                        break;
                limit = next;
                at_least = 0;
                for (size_t i = 0; i < n->n_cards; i++)
                        at_least += n->cards[i].units >= limit && counts_card(n, &n->cards[i], r);
        }
        return (uint32_t) limit;
}

/* How many cards of the node satisfy the rules up to each one. */
typedef struct CardCounts {
        uint32_t all, allowed, healthy, large, room;
} CardCounts;

/* Inline, so that requests without a choice skip its checks: filter counts on each node that
 * refuses. */
static inline __attribute__((always_inline)) CardCounts count_cards(const LedgerNode *n, const Request *r,
                                                                    const CardChoice *choice) {
        CardCounts s = {0};

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                bool allowed = c->units > 0 && ledger_card_judge(n, c, choice) == CARD_ALLOWED,
                     healthy = allowed && c->healthy;

                s.all += c->units > 0;
                s.allowed += allowed;
                s.healthy += healthy;
                s.large += healthy && c->units >= r->mem;
                s.room +=
                        allowed && ledger_card_free(n, c) >= r->mem && ledger_card_core_free(n, c) >= r->core;
        }
        return s;
}

static Refusal why_not_cards(const LedgerNode *n, const Request *r) {
        CardCounts have = r->choice ? count_cards(n, r, r->choice) : count_cards(n, r, NULL);

        if (have.all == 0)
                return refusal_of(REFUSAL_NODE_NOT_READY, n, r, 0);
        if (r->choice && have.allowed < r->cards)
                return refusal_of(REFUSAL_NO_SUCH_CARD, n, r, have.allowed);
        if (have.healthy == 0)
                return refusal_of(REFUSAL_UNHEALTHY, n, r, 0);
        if (have.healthy < r->cards)
                return refusal_of(REFUSAL_CARDS_TOO_FEW, n, r, have.healthy);
        if (have.large < r->cards)
                return refusal_of(REFUSAL_CARD_TOO_SMALL, n, r, largest_for(n, r));
        if (have.room >= r->cards)
                return refusal_of(REFUSAL_PODS_PER_CARD, n, r, n->now.max_pods);
        return refusal_of(REFUSAL_NO_ROOM, n, r, r->whole ? have.room : 0);
}

static Refusal why_not(const LedgerNode *n, const LedgerSummary *s, const Request *r) {
        if (!n->described)
                return refusal_of(REFUSAL_NODE_UNKNOWN, n, r, 0);
        if (!share_mode_offers(n->now.mode, r->whole, r->core > 0))
                return refusal_of(REFUSAL_NODE_MODE, n, r, 0);
        if (n->now.change_pending[0] != '\0')
                return refusal_of(REFUSAL_NODE_CHANGING, n, r, 0);
        if (!takes_kind(s, r))
                return refusal_of(REFUSAL_NODE_MIXED, n, r, 0);
        return why_not_cards(n, r);
}

int placement_check(const LedgerNode *node, const Request *request, Refusal *ret) {
        const LedgerSummary *s = &node->ledger->summaries[node->slot];

        if (fits_node(node, s, request))
                return 0;
        *ret = why_not(node, s, request);
        return PLACEMENT_E_REFUSED;
}

/* ---- what if ---- */

/* Removes a grant of the node, at most once, from the sums of the copy. */
static void take_away(LedgerNode *what_if, const Grant *g) {
        for (size_t i = 0; i < g->n_slices; i++) {
                const Slice *slice = &g->slices[i];
                LedgerCard *c;
                GrantDemand d;

                if (i > 0 && slice->card == g->slices[i - 1].card)
                        continue; /* slices are sorted by card */
                c = ledger_card_ensure(what_if, slice->card);
                d = grant_demand(g, slice->card);
                c->used -= d.mem;
                c->core_used -= d.core;
                c->pods--;
        }
        what_if->pending -= g->pending;
        what_if->pending_core -= g->pending_core;
        what_if->n_pending -= g->pending > 0;
        what_if->n_charged--;
        what_if->n_with_core -= g->has_core;
}

/* Adds a grant to the sums of the copy again. Its cards exist there. */
static void put_back(LedgerNode *what_if, const Grant *g) {
        for (size_t i = 0; i < g->n_slices; i++) {
                const Slice *slice = &g->slices[i];
                LedgerCard *c;
                GrantDemand d;

                if (i > 0 && slice->card == g->slices[i - 1].card)
                        continue;
                c = ledger_card_ensure(what_if, slice->card);
                d = grant_demand(g, slice->card);
                c->used += d.mem;
                c->core_used += d.core;
                c->pods++;
        }
        what_if->pending += g->pending;
        what_if->pending_core += g->pending_core;
        what_if->n_pending += g->pending > 0;
        what_if->n_charged++;
        what_if->n_with_core += g->has_core;
}

/* A copy of a node that has its own cards. */
typedef struct WhatIf {
        LedgerNode node;
        LedgerSummary summary;
} WhatIf;

static int what_if_begin(WhatIf *w, const LedgerNode *node) {
        LedgerCard *cards = calloc(node->n_cards + 1, sizeof *cards);

        if (!cards)
                return -ENOMEM;
        if (node->n_cards > 0)
                memcpy(cards, node->cards, node->n_cards * sizeof *cards);
        w->node = *node;
        w->node.cards = cards;
        w->summary = ledger_summary_of(&w->node);
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
        w.summary = ledger_summary_of(&w.node);
        if (fits_node(&w.node, &w.summary, request))
                return 0;
        *ret = why_not(&w.node, &w.summary, request);
        ret->node = node; /* the copy is freed on return */
        return PLACEMENT_E_REFUSED;
}

/* ---- which cards ---- */

/* used/units in 20 bits, so that cards of different sizes compare by ratio. */
static uint64_t fill_of_card(const LedgerCard *c) {
        enum { FULL = (1 << 20) - 1 };

        return c->used >= c->units ? FULL : c->used * FULL / c->units;
}

static uint64_t at_most(uint64_t value, uint64_t max) {
        return value < max ? value : max;
}

static size_t replicas_on_card(const LedgerNode *n, const LedgerCard *c, uint64_t app) {
        size_t count = 0;

        if (replicas_on(replicas_of(n->ledger->replicas, app), n->slot) == 0)
                return 0;
        for (const Grant *g = n->grants; g; g = g->next)
                count += g->app == app && grant_demand(g, c->index).mem > 0;
        return count;
}

/* The rank of a card by the node's policy; smaller is better. Among equals the lower index wins,
 * because cards are considered in that order.
 *     binpack  untouched (1 bit); room left (32); compute left (7)
 *     spread   replicas of the application on the card (16); its use by ratio (20);
 *              pods on it (16) */
static uint64_t card_rank(const LedgerNode *n, const LedgerCard *c, const Request *r) {
        if (n->now.policy == PLACEMENT_BINPACK)
                return (uint64_t) !ledger_card_is_used(n, c) << 39 | (uint64_t) ledger_card_free(n, c) << 7 |
                       ledger_card_core_free(n, c);
        return at_most(replicas_on_card(n, c, r->app), 0xffff) << 36 | fill_of_card(c) << 16 |
               at_most(c->pods, 0xffff);
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

/* Replaces chosen cards of the worst rank by those of that rank with the best links, because the
 * policy does not distinguish them. `last` has the worst rank. Cards of better ranks stay. */
static void take_linked(const LedgerNode *n, const Request *r, const LedgerCard *last,
                        const LedgerCard *ret[]) {
        uint64_t rank = card_rank(n, last, r);
        uint32_t must = 0, may = 0, chosen;
        size_t n_must = 0;

        for (uint32_t i = 0; i < r->cards; i++)
                if (card_rank(n, ret[i], r) != rank) {
                        must |= UINT32_C(1) << ret[i]->index;
                        n_must++;
                }
        for (size_t i = 0; i < n->n_cards; i++)
                if (card_fits(n, &n->cards[i], r) && card_rank(n, &n->cards[i], r) == rank)
                        may |= UINT32_C(1) << n->cards[i].index;
        chosen = card_set_choose(n->now.links, must, may, (unsigned) (r->cards - n_must));
        for (size_t i = n_must; i < r->cards; i++, chosen &= chosen - 1)
                ret[i] = ledger_card_find(n, (uint32_t) __builtin_ctz(chosen));
}

/* Chooses the cards for a request that fits, best rank first. */
static void pick_cards(const LedgerNode *n, const Request *r, const LedgerCard *ret[]) {
        bool taken[CARD_INDEX_MAX + 1] = {0};

        for (uint32_t i = 0; i < r->cards; i++) {
                ret[i] = best_card(n, r, taken);
                taken[ret[i]->index] = true; /* not NULL: the check has counted enough cards */
        }
        if (r->cards > 1 && n->now.links)
                take_linked(n, r, ret[r->cards - 1], ret);
}

/* Chooses the cards for a request that fits on the node. Returns 0 or -ENOMEM. */
static int choose_cards(const LedgerNode *node, const Request *request, Arena *arena, Placement *ret) {
        const LedgerCard *cards[CARD_INDEX_MAX + 1];
        Placement p = {0};

        p.slices = arena_new(arena, Slice, request->cards * request->n_containers);
        if (!p.slices)
                return -ENOMEM;
        pick_cards(node, request, cards);
        for (uint32_t i = 0; i < request->cards; i++)
                add_slices(&p, request, cards[i]->index);
        *ret = p;
        return 0;
}

int placement_choose_cards(const LedgerNode *node, const Request *request, Arena *arena, Placement *ret,
                           Refusal *ret_refusal) {
        int r = placement_check(node, request, ret_refusal);

        return r != 0 ? r : choose_cards(node, request, arena, ret);
}

/* ---- what if, continued: it needs the choice of cards ---- */

static void put_there(LedgerNode *n, const Request *r) {
        const LedgerCard *cards[CARD_INDEX_MAX + 1];

        pick_cards(n, r, cards);
        for (uint32_t i = 0; i < r->cards; i++) {
                LedgerCard *c = (LedgerCard *) (uintptr_t) cards[i]; /* a card of the copy */

                c->used += r->mem;
                c->core_used += r->core;
                c->pods++;
        }
        n->n_charged++;
        n->n_with_core += r->core > 0;
}

bool placement_fits_after(const LedgerNode *node, const Request *request, const Request *const *before,
                          size_t n_before) {
        _cleanup_(what_if_done) WhatIf w = {0};

        if (what_if_begin(&w, node) < 0)
                return false;
        for (size_t i = 0; i < n_before; i++) {
                if (!fits_node(&w.node, &w.summary, before[i]))
                        continue;
                put_there(&w.node, before[i]);
                w.summary = ledger_summary_of(&w.node);
        }
        return fits_node(&w.node, &w.summary, request);
}

/* ---- trials ---- */

struct PlacementTrial {
        WhatIf what_if; /* summary is up to date */
        const LedgerNode *node;
};

int placement_trial_new(const LedgerNode *node, PlacementTrial **ret) {
        _cleanup_free_ PlacementTrial *t = calloc(1, sizeof *t);
        int r;

        if (!t)
                return -ENOMEM;
        r = what_if_begin(&t->what_if, node);
        if (r < 0)
                return r;
        t->node = node;
        *ret = TAKE_PTR(t);
        return 0;
}

PlacementTrial *placement_trial_free(PlacementTrial *t) {
        if (t)
                what_if_done(&t->what_if);
        free(t);
        return NULL;
}

static void trial_summarize(PlacementTrial *t) {
        t->what_if.summary = ledger_summary_of(&t->what_if.node);
}

void placement_trial_take(PlacementTrial *t, const Grant *g) {
        assert(g->node == t->node);
        take_away(&t->what_if.node, g);
        trial_summarize(t);
}

void placement_trial_put_back(PlacementTrial *t, const Grant *g) {
        assert(g->node == t->node);
        put_back(&t->what_if.node, g);
        trial_summarize(t);
}

void placement_trial_take_pending(PlacementTrial *t) {
        LedgerNode *n = &t->what_if.node;

        for (const Grant *g = t->node->grants; g; g = g->next)
                if (g->pending > 0 && g->n_slices == 0)
                        take_away(n, g);
        n->pending = n->pending_core = n->n_pending = 0; /* also of pods that hold other cards */
        trial_summarize(t);
}

static uint64_t used_at_least(uint64_t used, uint32_t all, uint32_t free) {
        uint64_t least = free < all ? all - free : 0;

        return used > least ? used : least;
}

void placement_trial_cap(PlacementTrial *t, uint32_t card, uint32_t mem, uint32_t core) {
        /* a card of the copy */
        LedgerCard *c = (LedgerCard *) (uintptr_t) ledger_card_find(&t->what_if.node, card);

        if (!c || (used_at_least(c->used, c->units, mem) == c->used &&
                   used_at_least(c->core_used, CORE_PER_CARD, core) == c->core_used))
                return;
        c->used = used_at_least(c->used, c->units, mem);
        c->core_used = used_at_least(c->core_used, CORE_PER_CARD, core);
        c->pods += c->pods == 0; /* as free_untouched it would offer its whole compute */
        trial_summarize(t);
}

bool placement_trial_fits(const PlacementTrial *t, const Request *request) {
        return fits_node(&t->what_if.node, &t->what_if.summary, request);
}

bool placement_trial_place(PlacementTrial *t, const Request *request) {
        if (!placement_trial_fits(t, request))
                return false;
        put_there(&t->what_if.node, request);
        trial_summarize(t);
        return true;
}

int placement_trial_choose_cards(const PlacementTrial *t, const Request *request, Arena *arena,
                                 Placement *ret, Refusal *ret_refusal) {
        if (placement_trial_fits(t, request))
                return choose_cards(&t->what_if.node, request, arena, ret);
        *ret_refusal = why_not(&t->what_if.node, &t->what_if.summary, request);
        ret_refusal->node = t->node;
        return PLACEMENT_E_REFUSED;
}

const LedgerNode *placement_trial_node(const PlacementTrial *t) {
        return &t->what_if.node;
}

bool placement_is_mixed_out_by(const LedgerNode *node, const Request *request, const Grant *g) {
        return !node->now.allow_mixed && g->has_core != (request->core > 0);
}

/* ---- which node ---- */

/* The number of untouched cards that the request would take. */
static inline uint32_t cards_broken(const LedgerNode *n, const LedgerSummary *s, const Request *r,
                                    uint32_t level) {
        if (!must_count(r))
                return s->free_used[level] < r->mem;
        return r->cards - count_fitting(n, r, true);
}

/* The rank of a node; smaller is better. 16 bits for what the node's policy avoids, 32 for its use
 * by ratio, 16 for its units.
 *     binpack  untouched cards taken; then the fullest; of two alike the smaller (but
 *              see fragment_rank())
 *     spread   replicas of the application already there; then the emptiest
 * Under both policies 0 is the best, so that nodes of both kinds compare by their distance to
 * it. */
static uint64_t rank_of(uint64_t avoided, const LedgerSummary *s) {
        if (s->policy == PLACEMENT_SPREAD)
                return at_most(avoided, 0xffff) << 48 | (uint64_t) s->fill << 16;
        return at_most(avoided, 0xffff) << 48 | (uint64_t) ~s->fill << 16 | at_most(s->total, 0xffff);
}

/* The rank by the growth of the expected fragment. 16 bits are for what it grows, which compares
 * with the replicas of spread nodes. 16 are for its level, also when it shrinks, 16 for card
 * capacity without cpu, and 15 for untouched cards taken. Fullness does not count: where pods come
 * and go, the fullest of equal nodes packs worse than a fixed one (docs/internals/packing.md). */
static uint64_t new_fragment_rank(const LedgerNode *n, const Request *r) {
        const LedgerCard *cards[CARD_INDEX_MAX + 1];
        bool taken[CARD_INDEX_MAX + 1] = {0};
        const Fragment *f = &n->ledger->fragment;
        uint32_t level, cpu_level, broken = 0;

        for (uint32_t i = 0; i < r->cards; i++) {
                cards[i] = best_card(n, r, taken);
                if (!cards[i])
                        return UINT64_MAX; /* it does not fit */
                taken[cards[i]->index] = true;
                broken += !ledger_card_is_used(n, cards[i]);
        }
        level = fragment_level(fragment_growth(f, n, r, cards), FRAGMENT_STEP);
        cpu_level = fragment_level(fragment_cpu_growth(f, n, r, cards), FRAGMENT_CPU_STEP);
        return (uint64_t) (level > FRAGMENT_LEVEL_SAME ? level - FRAGMENT_LEVEL_SAME : 0) << 48 |
               (uint64_t) level << 32 | (uint64_t) cpu_level << 16 | (uint64_t) broken << 1;
}

static uint64_t fragment_rank(const LedgerNode *n, const Request *r) {
        Ledger *l = n->ledger;
        uint64_t *known, rank;

        fragment_refresh(&l->fragment, &l->tally, &l->load);
        known = rank_cache_row(&l->ranks, r, l->fragment.generation, l->room);
        if (known && known[n->slot] != 0)
                return known[n->slot];
        rank = new_fragment_rank(n, r) | 1; /* the last bit marks a known rank */
        if (known)
                known[n->slot] = rank;
        return rank;
}

uint64_t placement_rank(const LedgerNode *node, const Request *request) {
        const LedgerSummary *s = &node->ledger->summaries[node->slot];

        if (s->policy == PLACEMENT_BINPACK && !request->whole &&
            node->ledger->order == NODE_ORDER_FRAGMENTATION)
                return fragment_rank(node, request);
        if (s->policy == PLACEMENT_SPREAD)
                return rank_of(replicas_on(replicas_of(node->ledger->replicas, request->app), node->slot), s);
        return rank_of(cards_broken(node, s, request, level_of(request)), s);
}

/* Walks along the application's replicas together with the nodes: both are sorted by slot. */
typedef struct ReplicaWalk {
        const ReplicasOnNode *next, *end;
} ReplicaWalk;

static ReplicaWalk replica_walk(const Ledger *l, uint64_t app) {
        const Replicas *r = replicas_of(l->replicas, app);

        return r ? (ReplicaWalk){r->nodes, r->nodes + r->n} : (ReplicaWalk){NULL, NULL};
}

static uint32_t replica_walk_to(ReplicaWalk *w, size_t slot) {
        while (w->next < w->end && w->next->slot < slot)
                w->next++;
        return w->next < w->end && w->next->slot == slot ? w->next->count : 0;
}

LedgerNode *placement_choose_node(const Ledger *ledger, const Request *request) {
        ReplicaWalk replicas = replica_walk(ledger, request->app);
        uint32_t level = level_of(request);
        bool count = must_count(request),
             by_fragment = ledger->order == NODE_ORDER_FRAGMENTATION && !request->whole;
        uint64_t best_rank = UINT64_MAX;
        LedgerNode *best = NULL;

        for (size_t i = 0; i < ledger->n_nodes; i++) {
                const LedgerSummary *s = &ledger->summaries[i];
                bool spread = s->policy == PLACEMENT_SPREAD;
                uint64_t rank;

                if (!summary_fits(s, request, level))
                        continue;
                rank = rank_of(spread ? replica_walk_to(&replicas, i) : 0, s);
                if (rank >= best_rank && (spread || !by_fragment))
                        continue; /* binpack: not even if it took no untouched card */
                if (count && count_fitting(ledger->nodes[i], request, false) < request->cards)
                        continue;
                if (!spread && by_fragment)
                        rank = fragment_rank(ledger->nodes[i], request);
                else if (!spread)
                        rank = rank_of(cards_broken(ledger->nodes[i], s, request, level), s);
                if (rank < best_rank) {
                        best_rank = rank;
                        best = ledger->nodes[i];
                }
        }
        return best;
}
