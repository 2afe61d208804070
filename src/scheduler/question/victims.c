/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/victims.h"

#include <errno.h>
#include <stdlib.h>

/* ---- costs ---- */

/* Priorities have 32 bits. With this offset each is at least 0, so each further pod adds to the
 * sum. */
#define PRIORITY_OFFSET (INT64_C(1) << 31)

static const VictimCost no_cost = {.highest = INT64_MIN, .start = INT64_MAX};

static int compare_i64(int64_t a, int64_t b) {
        return (a > b) - (a < b);
}

/* Compares all but the start, for which a larger set may be the better one. */
static int compare_but_start(const VictimCost *a, const VictimCost *b) {
        int r = compare_i64(a->violations, b->violations);

        r = r != 0 ? r : compare_i64(a->highest, b->highest);
        r = r != 0 ? r : compare_i64(a->sum, b->sum);
        return r != 0 ? r : compare_i64(a->number, b->number);
}

int victim_cost_compare(const VictimCost *a, const VictimCost *b) {
        int r = compare_but_start(a, b);

        return r != 0 ? r : compare_i64(b->start, a->start);
}

int victim_compare(const void *a, const void *b) {
        const Profile *x = *(const Profile *const *) a, *y = *(const Profile *const *) b;
        int r = compare_i64(y->is.priority, x->is.priority);

        r = r != 0 ? r : compare_i64(x->is.start, y->is.start);
        return r != 0 ? r : str_compare(x->uid, y->uid);
}

static VictimCost cost_with(VictimCost cost, const Profile *pod, bool violates) {
        cost.violations += violates;
        cost.number++;
        cost.sum += pod->is.priority + PRIORITY_OFFSET;
        if (pod->is.priority > cost.highest) {
                cost.highest = pod->is.priority;
                cost.start = pod->is.start;
        } else if (pod->is.priority == cost.highest && pod->is.start < cost.start)
                cost.start = pod->is.start;
        return cost;
}

/* ---- budgets ---- */

/* How many more disruptions a budget allows while pods are taken, most important first
 * (filterPodsWithPDBViolation). */
typedef struct Allowance {
        const Budget *budget;
        int64_t left;
} Allowance;

typedef struct Candidate {
        const Profile *profile;
        const Grant *grant;
        size_t allowances[BUDGETS_OF_A_POD_MAX]; /* indexes into Allowances.items */
        size_t n_allowances;
        /* gone: it is in the set. violates: if all pods before it are gone, it violates a budget */
        bool gone, violates;
} Candidate;

typedef struct Allowances {
        Allowance *items;
        size_t n;
} Allowances;

static size_t allowance_of(Allowances *a, const Budget *budget) {
        size_t i = 0;

        while (i < a->n && a->items[i].budget != budget)
                i++;
        if (i == a->n)
                a->items[a->n++] = (Allowance){budget, budget_allowed(budget)};
        return i;
}

static int allowances_init(Allowances *a, const Budgets *budgets, Candidate *candidates, size_t n,
                           Arena *arena) {
        const Budget *found[BUDGETS_OF_A_POD_MAX];

        a->n = 0;
        a->items = arena_new(arena, Allowance, n * BUDGETS_OF_A_POD_MAX + 1);
        if (!a->items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                candidates[i].n_allowances = budgets_of(budgets, candidates[i].profile, found);
                for (size_t k = 0; k < candidates[i].n_allowances; k++)
                        candidates[i].allowances[k] = allowance_of(a, found[k]);
        }
        return 0;
}

/* Takes the pod from the allowances of its budgets. Returns whether it violates one of them. */
static bool spend_budgets(Allowances *a, const Candidate *c) {
        bool violates = false;

        for (size_t i = 0; i < c->n_allowances; i++)
                violates |= --a->items[c->allowances[i]].left < 0;
        return violates;
}

static void give_back(Allowances *a, const Candidate *c) {
        for (size_t i = 0; i < c->n_allowances; i++)
                a->items[c->allowances[i]].left++;
}

/* ---- the search ---- */

typedef struct Search {
        const VictimQuestion *question;
        PlacementTrial *trial; /* a copy of the node without the candidates that are gone */
        Candidate *candidates; /* most important first */
        size_t n;
        Allowances allowances;
        uint64_t steps; /* left */
        bool *best;     /* of each candidate: whether it is in the best set */
        VictimCost best_cost;
        bool found, blocked; /* blocked: the result is VICTIMS_E_BUDGETS */
} Search;

static void set_gone(Search *s, Candidate *c, bool gone) {
        if (c->gone == gone)
                return;
        c->gone = gone;
        if (gone)
                placement_trial_take(s->trial, c->grant);
        else
                placement_trial_put_back(s->trial, c->grant);
}

static bool fits_without(const Search *s) {
        return placement_trial_fits(s->trial, s->question->request);
}

static void consider_set(Search *s, const VictimCost *cost) {
        if (s->found && victim_cost_compare(cost, &s->best_cost) >= 0)
                return;
        s->found = true;
        s->best_cost = *cost;
        for (size_t i = 0; i < s->n; i++)
                s->best[i] = s->candidates[i].gone;
}

static VictimCost cost_of_gone(Search *s) {
        VictimCost cost = no_cost;

        for (size_t i = 0; i < s->n; i++)
                if (s->candidates[i].gone)
                        cost = cost_with(cost, s->candidates[i].profile,
                                         spend_budgets(&s->allowances, &s->candidates[i]));
        for (size_t i = 0; i < s->n; i++)
                if (s->candidates[i].gone)
                        give_back(&s->allowances, &s->candidates[i]);
        return cost;
}

static void spare_each(Search *s, bool violating) {
        for (size_t i = 0; i < s->n; i++) {
                if (!s->candidates[i].gone || s->candidates[i].violates != violating)
                        continue;
                set_gone(s, &s->candidates[i], false);
                if (!fits_without(s))
                        set_gone(s, &s->candidates[i], true);
        }
}

/* Tries kube-scheduler's way. Before it all candidates are gone, and the pod fits. */
static void spare_victims(Search *s) {
        VictimCost cost;

        for (size_t i = 0; i < s->n; i++)
                s->candidates[i].violates = spend_budgets(&s->allowances, &s->candidates[i]);
        for (size_t i = 0; i < s->n; i++)
                give_back(&s->allowances, &s->candidates[i]);
        spare_each(s, true);
        spare_each(s, false);
        cost = cost_of_gone(s);
        consider_set(s, &cost);
}

/* Branch and bound: decides candidate i, first spared, then gone. Candidates before i are decided,
 * i and those behind it are gone, and the pod fits. cost: of the candidates before i that are gone.
 * A branch is cut when its cost exceeds the best one, because each further pod adds to it. */
static void branch_at(Search *s, size_t i, VictimCost cost) {
        Candidate *c = &s->candidates[i];
        VictimCost more;

        if (i == s->n) {
                consider_set(s, &cost);
                return;
        }
        if (s->steps == 0)
                return;
        s->steps--;
        set_gone(s, c, false);
        if (fits_without(s))
                branch_at(s, i + 1, cost);
        set_gone(s, c, true);
        more = cost_with(cost, c->profile, spend_budgets(&s->allowances, c));
        if (!s->found || compare_but_start(&more, &s->best_cost) <= 0)
                branch_at(s, i + 1, more);
        give_back(&s->allowances, c);
}

/* The Eviction API refuses a pod with a budget that allows no disruption (429). It also refuses a
 * pod with more than one budget, whatever they allow (500: checkAndDecrement handles one;
 * registry/core/pod/storage/eviction.go). */
static bool is_refused(const Search *s, const Candidate *c) {
        return c->n_allowances > 1 ||
               (c->n_allowances == 1 && s->allowances.items[c->allowances[0]].left <= 0);
}

static void all_gone(Search *s) {
        for (size_t i = 0; i < s->n; i++)
                set_gone(s, &s->candidates[i], true);
}

/* Removes the candidates that the Eviction API refuses. Before it all candidates are gone, and the
 * pod fits. */
static void leave_refused_out(Search *s) {
        size_t n = 0;

        for (size_t i = 0; i < s->n; i++)
                if (is_refused(s, &s->candidates[i]))
                        set_gone(s, &s->candidates[i], false);
                else
                        s->candidates[n++] = s->candidates[i];
        s->n = n;
        s->blocked = !fits_without(s);
}

static uint64_t smaller_of(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

static void search_sets(Search *s) {
        uint64_t *left = s->question->steps;
        uint64_t allowed;

        all_gone(s);
        if (!fits_without(s))
                return;
        if (s->question->by_eviction)
                leave_refused_out(s);
        if (s->blocked)
                return;
        allowed = s->n <= VICTIMS_EXACT ? VICTIMS_STEPS : smaller_of(*left, VICTIMS_STEPS);
        spare_victims(s);
        if (*left == 0)
                return;
        all_gone(s);
        s->steps = allowed;
        branch_at(s, 0, no_cost);
        *left -= smaller_of(allowed - s->steps, *left);
}

/* ---- candidates ---- */

static const Profile *profile_of(const VictimQuestion *q, const Grant *g) {
        for (size_t i = 0; i < q->n_soon; i++)
                if (q->soon[i].grant == g)
                        return &q->soon[i].profile;
        return profiles_find(q->profiles, grant_uid(g));
}

static bool is_gone(const VictimQuestion *q, const Grant *g) {
        const Profile *p = profile_of(q, g);

        if (p && p->ending)
                return true;
        for (size_t i = 0; i < q->n_gone; i++)
                if (q->gone[i] == g)
                        return true;
        return g == q->hold;
}

/* Whether the grant is a candidate. A pod without a profile may have its Binding under way:
 * kube-scheduler refuses the whole answer for a victim that it does not find on the node
 * (convertPodUIDToPod). */
static bool may_go(const VictimQuestion *q, const Grant *g) {
        const Profile *p = profile_of(q, g);

        return p && !p->mirror && !p->too_large && !p->is.labels_cut && p->is.priority < q->priority &&
               !is_gone(q, g);
}

static bool touches_card(const Grant *g, uint32_t card) {
        const Slice *slices;
        size_t n;

        slices = grant_slices(g, &n);
        for (size_t i = 0; i < n; i++)
                if (slices[i].card == card)
                        return true;
        return false;
}

/* Whether removing the grant can help on this card. One that is not on a card yet counts on every
 * card. */
static bool matters_for(const VictimQuestion *q, const Grant *g, bool one_card, uint32_t card) {
        return !one_card || touches_card(g, card) || grant_pending(g) > 0 ||
               placement_is_mixed_out_by(q->node, q->request, g);
}

static int compare_candidates(const void *a, const void *b) {
        return victim_compare(&((const Candidate *) a)->profile, &((const Candidate *) b)->profile);
}

/* one_card: the candidates are the grants that matter on this card. */
static int search_among(const VictimQuestion *q, PlacementTrial *trial, bool one_card, uint32_t card,
                        Arena *arena, Search *ret) {
        size_t room = 0;
        int r;

        for (const Grant *g = ledger_node_grants(q->node); g; g = grant_next(g))
                room++;
        *ret = (Search){.question = q, .trial = trial};
        ret->candidates = arena_new(arena, Candidate, room + 1);
        ret->best = arena_new(arena, bool, room + 1);
        if (!ret->candidates || !ret->best)
                return -ENOMEM;
        for (const Grant *g = ledger_node_grants(q->node); g; g = grant_next(g))
                if (may_go(q, g) && matters_for(q, g, one_card, card))
                        ret->candidates[ret->n++] = (Candidate){.grant = g, .profile = profile_of(q, g)};
        qsort(ret->candidates, ret->n, sizeof *ret->candidates, compare_candidates);
        r = allowances_init(&ret->allowances, q->budgets, ret->candidates, ret->n, arena);
        if (r < 0)
                return r;
        search_sets(ret);
        for (size_t i = 0; i < ret->n; i++)
                set_gone(ret, &ret->candidates[i], false);
        return 0;
}

static int search_each_card(const VictimQuestion *q, PlacementTrial *trial, Arena *arena, Search *best) {
        const LedgerCard *cards = ledger_node_cards(q->node);

        for (size_t i = 0; i < ledger_node_n_cards(q->node); i++) {
                Search s;
                int r = search_among(q, trial, true, cards[i].index, arena, &s);

                if (r < 0)
                        return r;
                best->blocked |= s.blocked;
                if (s.found && (!best->found || victim_cost_compare(&s.best_cost, &best->best_cost) < 0))
                        *best = s;
        }
        return 0;
}

/* ---- the answer ---- */

static int trial_begin(const VictimQuestion *q, PlacementTrial **ret) {
        int r = placement_trial_new(q->node, ret);

        if (r < 0)
                return r;
        for (const Grant *g = ledger_node_grants(q->node); g; g = grant_next(g))
                if (is_gone(q, g))
                        placement_trial_take(*ret, g);
        for (size_t i = 0; i < q->n_first; i++)
                (void) placement_trial_place(*ret, q->first[i]); /* one that does not fit goes on waiting */
        return 0;
}

static int take_best(const VictimQuestion *q, Search *s, Arena *arena, VictimChoice *ret) {
        VictimChoice choice = {.cost = s->best_cost};
        Refusal refusal;

        choice.pods = arena_new(arena, const Profile *, s->n + 1);
        if (!choice.pods)
                return -ENOMEM;
        for (size_t i = 0; i < s->n; i++)
                if (s->best[i]) {
                        choice.pods[choice.n++] = s->candidates[i].profile;
                        set_gone(s, &s->candidates[i], true);
                }
        *ret = choice;
        return placement_trial_choose_cards(s->trial, q->request, arena, &ret->placement, &refusal);
}

int victims_choose(const VictimQuestion *q, Arena *arena, VictimChoice *ret) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        Search best = {0};
        int r;

        r = trial_begin(q, &trial);
        if (r < 0)
                return r;
        if (placement_trial_fits(trial, q->request))
                best = (Search){.trial = trial, .found = true, .best_cost = no_cost};
        else if (q->request->cards == 1)
                r = search_each_card(q, trial, arena, &best);
        else
                r = search_among(q, trial, false, 0, arena, &best);
        if (r < 0)
                return r;
        if (!best.found)
                return best.blocked ? VICTIMS_E_BUDGETS : VICTIMS_E_NONE;
        return take_best(q, &best, arena, ret);
}

int victims_cost(const Budgets *budgets, const Profile **pods, size_t n, Arena *arena, VictimCost *ret) {
        Candidate *candidates = arena_new(arena, Candidate, n + 1);
        Allowances allowances;
        VictimCost cost = no_cost;
        int r;

        if (!candidates)
                return -ENOMEM;
        qsort(pods, n, sizeof *pods, victim_compare);
        for (size_t i = 0; i < n; i++)
                candidates[i].profile = pods[i];
        r = allowances_init(&allowances, budgets, candidates, n, arena);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                cost = cost_with(cost, pods[i], spend_budgets(&allowances, &candidates[i]));
        *ret = cost;
        return 0;
}
