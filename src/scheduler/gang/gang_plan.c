/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gang_plan.h"

#include <errno.h>
#include <stdlib.h>

#include "share/job_placement.h"

/* ---- what was offered ---- */

static uint64_t hash_node(const LedgerNode *n) {
        return str_hash64(ledger_node_name(n), 0);
}

static int compare_hashes(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

void gang_plan_note_offered(GangMember *m, const LedgerNode *const *nodes, size_t n) {
        GangKind *kind = gang_table_kind(m->gang, m);
        uint64_t *offered;

        if (!kind)
                return;
        offered = calloc(n + 1, sizeof *offered);
        if (!offered)
                return; /* no offer is recorded: the plan looks at all nodes */
        free(kind->offered);
        kind->offered = offered;
        kind->known = true;
        kind->attempt = m->gang->attempt;
        kind->n_offered = 0;
        for (size_t i = 0; i < n; i++)
                if (nodes[i])
                        offered[kind->n_offered++] = hash_node(nodes[i]);
        qsort(offered, kind->n_offered, sizeof *offered, compare_hashes);
}

bool gang_plan_forget_offered(Gang *g, uint64_t attempt) {
        bool any = false;

        for (size_t i = 0; i < g->n_kinds; i++) {
                GangKind *kind = &g->kinds[i];

                if (!kind->known || kind->attempt >= attempt)
                        continue;
                kind->known = false;
                any = true;
        }
        return any;
}

static bool is_offered(const GangKind *kind, const LedgerNode *n) {
        return !kind || !kind->known ||
               (kind->n_offered > 0 && bsearch(&(uint64_t){hash_node(n)}, kind->offered, kind->n_offered,
                                               sizeof *kind->offered, compare_hashes));
}

/* ---- one place ---- */

static int charge_member(GangMember *m, Ledger *l, const LedgerNode *node, const Placement *placement) {
        Grant *made;
        int r = grant_new(l,
                          &(GrantSpec){.namespace_ = str_from(m->gang->namespace_),
                                       .name = str_from(m->name),
                                       /* No UID: the grant of the pod's Binding has it. */
                                       .node = ledger_node_name(node),
                                       .slices = placement->slices,
                                       .n_slices = placement->n_slices,
                                       .has_core = m->request->core > 0,
                                       .whole = m->request->whole,
                                       .app = m->request->app,
                                       .cpu = m->request->cpu},
                          &made);

        if (r != 0)
                return r;
        grant_free(m->place);
        m->place = made;
        return 0;
}

static int make_place(GangMember *m, Ledger *l, const LedgerNode *node) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        Refusal refusal;
        int r = placement_choose_cards(node, m->request, &arena, &placement, &refusal);

        return r != 0 ? r : charge_member(m, l, node, &placement);
}

/* The best node so far, by placement_rank(), then name. */
typedef struct Search {
        const Request *request;
        const LedgerNode *best;
        uint64_t rank;
} Search;

static void look_at(Search *s, const LedgerNode *n) {
        Refusal refusal;
        uint64_t rank;

        if (!n || placement_check(n, s->request, &refusal) != 0)
                return;
        rank = placement_rank(n, s->request);
        if (!s->best || rank < s->rank ||
            (rank == s->rank && str_compare(ledger_node_name(n), ledger_node_name(s->best)) < 0)) {
                s->best = n;
                s->rank = rank;
        }
}

int gang_plan_place(GangMember *m, Ledger *l, const LedgerNode *const *nodes, size_t n) {
        Search s = {.request = m->request};
        int r;

        for (size_t i = 0; i < n; i++)
                look_at(&s, nodes[i]);
        if (!s.best)
                return 1;
        r = make_place(m, l, s.best);
        return r < 0 ? r : 0;
}

unsigned gang_plan_fit(const GangMember *m, const LedgerNode *node) {
        Refusal refusal;
        bool fits = placement_check(node, m->request, &refusal) == 0;

        return fits ? 1U + is_offered(gang_table_kind(m->gang, m), node) : 0;
}

static bool may_swap(const GangMember *m, const GangMember *o) {
        return o != m && o->place && !o->held && !o->answered && !o->released && o->where == m->where &&
               o->kind == m->kind;
}

static bool is_among(const LedgerNode *const *nodes, size_t n, const LedgerNode *node) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i] == node)
                        return true;
        return false;
}

bool gang_plan_swap(GangMember *m, const LedgerNode *const *nodes, size_t n) {
        for (GangMember *o = m->gang->members; o; o = o->next) {
                Grant *place = o->place;

                if (!may_swap(m, o) || !is_among(nodes, n, grant_node(place)))
                        continue;
                o->place = m->place;
                m->place = place;
                return true;
        }
        return false;
}

const Grant *gang_plan_place_on(const GangMember *m, const LedgerNode *node) {
        if (m->place && grant_node(m->place) == node)
                return m->place;
        for (const GangMember *o = m->place ? m->gang->members : NULL; o; o = o->next)
                if (may_swap(m, o) && grant_node(o->place) == node)
                        return o->place;
        return NULL;
}

bool gang_plan_is_sound(const GangMember *m) {
        const LedgerNode *n = grant_node(m->place);
        const LedgerCard *cards = ledger_node_cards(n);
        size_t n_slices;
        const Slice *slices = grant_slices(m->place, &n_slices);

        for (size_t i = 0; i < n_slices; i++) {
                bool good = false;

                for (size_t k = 0; k < ledger_node_n_cards(n) && !good; k++)
                        good = cards[k].index == slices[i].card && cards[k].healthy && cards[k].units > 0;
                if (!good)
                        return false;
        }
        return true;
}

/* ---- all places ---- */

/* A member to place, with the nodes that were offered to its kind. */
typedef struct Turn {
        GangMember *member;
        size_t n_offered; /* SIZE_MAX: no offer is known */
        const GangKind *kind;
        uint64_t size;
        bool doubtful;
} Turn;

static int compare_turns(const void *a, const void *b) {
        const Turn *x = a, *y = b;

        if (x->doubtful != y->doubtful)
                return x->doubtful ? 1 : -1;
        if (x->n_offered != y->n_offered)
                return x->n_offered < y->n_offered ? -1 : 1;
        if (x->size != y->size)
                return x->size > y->size ? -1 : 1;
        if (x->kind != y->kind)
                return x->kind < y->kind ? -1 : 1;
        if (x->member->kind != y->member->kind)
                return x->member->kind < y->member->kind ? -1 : 1;
        return strcmp(x->member->uid, y->member->uid);
}

/* While its Binding is under way a member has its own grant. */
static bool is_missing(const GangMember *m) {
        return gang_table_is_ready(m) && !m->released;
}

static bool is_able(const GangMember *m) {
        return is_missing(m) && !gang_table_has_failed(m);
}

static bool is_to_place(const GangMember *m) {
        return is_able(m) && m->request && !m->place;
}

/* The members to place, sorted in the order in which they get places; free() it. NULL: out of
 * memory. placed_too: also those that have a place. doubtful_last: those that kube-scheduler called
 * unschedulable come last. */
static Turn *turns_of(const Gang *g, bool placed_too, bool doubtful_last, size_t *ret_n) {
        Turn *turns;
        size_t n = 0;

        for (const GangMember *m = g->members; m; m = m->next)
                n++;
        turns = calloc(n + 1, sizeof *turns);
        n = 0;
        for (GangMember *m = g->members; m && turns; m = m->next) {
                if (!is_to_place(m) && !(placed_too && is_missing(m) && m->request))
                        continue;
                turns[n] = (Turn){.member = m,
                                  .kind = gang_table_kind(m->gang, m),
                                  .doubtful = doubtful_last && m->doubtful};
                turns[n].n_offered =
                        turns[n].kind && turns[n].kind->known ? turns[n].kind->n_offered : SIZE_MAX;
                turns[n++].size = ((uint64_t) m->request->cards * m->request->mem) << 7 | m->request->core;
        }
        if (turns)
                qsort(turns, n, sizeof *turns, compare_turns);
        *ret_n = n;
        return turns;
}

static int place_turn(const Turn *turn, Ledger *l, const LedgerNode **nodes, size_t n_nodes) {
        if (turn->n_offered == SIZE_MAX) {
                const LedgerNode *best = placement_choose_node(l, turn->member->request);

                return best ? make_place(turn->member, l, best) : 1;
        }
        return gang_plan_place(turn->member, l, nodes, n_nodes);
}

/* Collects the nodes that were offered to a kind. place_each() uses the array for all its
 * members. */
static size_t nodes_of(const GangKind *kind, const Ledger *l, const LedgerNode **nodes) {
        size_t n = 0;

        for (size_t i = 0; i < ledger_n_nodes(l); i++)
                if (is_offered(kind, ledger_node_at(l, i)))
                        nodes[n++] = ledger_node_at(l, i);
        return n;
}

static int place_each(const Turn *turns, size_t n, Ledger *l, const LedgerNode **nodes) {
        size_t n_nodes = turns->n_offered != SIZE_MAX ? nodes_of(turns->kind, l, nodes) : 0;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = place_turn(&turns[i], l, nodes, n_nodes);
        return r < 0 ? r : 0;
}

/* ---- whole cards ---- */

/* The node with room for the most of these pods; of those the one that placement_rank() likes best
 * for all of them. NULL: none has room. */
static const LedgerNode *roomiest_node(const LedgerNode *const *nodes, size_t n_nodes, const Request *request,
                                       uint32_t most, uint32_t *ret_pods) {
        Search s = {.best = NULL};
        uint32_t best = 0;

        for (size_t i = 0; i < n_nodes; i++) {
                uint32_t pods = job_placement_room(nodes[i], request, most);
                Request all = *request;

                if (pods == 0 || pods < best)
                        continue;
                all.cards *= pods;
                if (pods > best)
                        s = (Search){.best = NULL};
                best = pods;
                s.request = &all;
                look_at(&s, nodes[i]);
        }
        *ret_pods = best;
        return s.best;
}

static int place_on(const Turn *turns, uint32_t pods, Ledger *l, const LedgerNode *node) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement *parts = arena_new(&arena, Placement, pods);
        int r = parts ? job_placement_choose(node, turns->member->request, pods, &arena, parts) : -ENOMEM;

        for (uint32_t i = 0; r == 0 && i < pods; i++)
                r = charge_member(turns[i].member, l, node, &parts[i]);
        return r;
}

/* The members of one kind together: on the fewest nodes, and there on the best set of cards. */
static int place_together(const Turn *turns, size_t n, Ledger *l, const LedgerNode **nodes) {
        size_t n_nodes = nodes_of(turns->kind, l, nodes);

        while (n > 0) {
                uint32_t pods = 0;
                const LedgerNode *node =
                        roomiest_node(nodes, n_nodes, turns->member->request, (uint32_t) n, &pods);
                int r = node ? place_on(turns, pods, l, node) : 0;

                if (r < 0 || !node)
                        return r;
                turns += pods;
                n -= pods;
        }
        return 0;
}

static int place_all(const Turn *turns, size_t n, Ledger *l, const LedgerNode **nodes) {
        int r = 0;

        for (size_t i = 0, end; r == 0 && i < n; i = end) {
                bool together = turns[i].kind && turns[i].member->request->whole;

                for (end = i + 1; end < n && turns[i].kind && turns[end].kind == turns[i].kind;)
                        end++;
                r = (together ? place_together : place_each)(turns + i, end - i, l, nodes);
        }
        return r;
}

static int place_members(Gang *g, Ledger *l, bool doubtful_last) {
        size_t n = 0;
        _cleanup_free_ Turn *turns = turns_of(g, false, doubtful_last, &n);
        _cleanup_free_ const LedgerNode **nodes =
                (const LedgerNode **) calloc(ledger_n_nodes(l) + 1, sizeof *nodes);
        int able = 0;

        if (!turns || !nodes || place_all(turns, n, l, nodes) < 0)
                return -ENOMEM;
        for (const GangMember *m = g->members; m; m = m->next)
                able += is_able(m) && (!m->request || m->place);
        return able;
}

static bool has_doubtful(const Gang *g) {
        for (const GangMember *m = g->members; m; m = m->next)
                if (m->doubtful && is_able(m))
                        return true;
        return false;
}

static bool falls_short(const Gang *g, int able) {
        return able >= 0 && gang_table_n_bound(g) + (uint32_t) able < g->count.min;
}

static int place_anew(Gang *g, Ledger *l, bool doubtful_last) {
        for (GangMember *m = g->members; m; m = m->next)
                m->place = grant_free(m->place); /* filter has not answered with these places yet */
        return place_members(g, l, doubtful_last);
}

/* First plans with doubtful members last. If too few members get places, the second plan treats
 * them like others, and the third forgets earlier offers. */
int gang_plan_make(Gang *g, Ledger *l) {
        int able = place_members(g, l, true);

        if (falls_short(g, able) && has_doubtful(g))
                able = place_anew(g, l, false);
        if (falls_short(g, able) && gang_plan_forget_offered(g, g->attempt))
                able = place_anew(g, l, true);
        return able;
}

/* ---- the cluster without pods ---- */

static void free_trials(PlacementTrial **trials, size_t n) {
        for (size_t i = 0; i < n; i++)
                placement_trial_free(trials[i]);
        free((void *) trials);
}

/* A copy of each node, without the grants of pods. NULL: out of memory. */
static PlacementTrial **empty_nodes(const Ledger *l) {
        size_t n = ledger_n_nodes(l);
        PlacementTrial **trials = (PlacementTrial **) calloc(n + 1, sizeof *trials);

        for (size_t i = 0; i < n && trials; i++) {
                if (placement_trial_new(ledger_node_at(l, i), &trials[i]) < 0) {
                        free_trials(trials, i);
                        return NULL;
                }
                for (const Grant *g = ledger_node_grants(ledger_node_at(l, i)); g; g = grant_next(g))
                        placement_trial_take(trials[i], g);
        }
        return trials;
}

/* The most tries to place a member on a node without room, so that filter need not wait long. Each
 * kind of a gang with GANG_KINDS_MAX kinds may try all nodes of a large cluster. */
enum { LOOKS_MAX = 100 * 1000 };

int gang_plan_room_when_empty(const Gang *g, const Ledger *l) {
        size_t n = 0, at = 0, looks = 0, n_nodes = ledger_n_nodes(l);
        _cleanup_free_ Turn *turns = turns_of(g, true, false, &n);
        PlacementTrial **trials = empty_nodes(l);
        int room = 0;

        if (!turns || !trials) {
                free_trials(trials, trials ? n_nodes : 0);
                return -ENOMEM;
        }
        for (const GangMember *m = g->members; m; m = m->next)
                room += is_missing(m) && !m->request;
        for (size_t i = 0; i < n && looks < LOOKS_MAX; i++) {
                /* Where one request found no room, an equal one finds none either. */
                if (i == 0 || turns[i].member->kind != turns[i - 1].member->kind)
                        at = 0;
                for (; at < n_nodes && !placement_trial_place(trials[at], turns[i].member->request); looks++)
                        at++;
                room += at < n_nodes;
        }
        free_trials(trials, n_nodes);
        return looks < LOOKS_MAX ? room : -E2BIG;
}
