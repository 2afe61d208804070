/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/evictor_plan.h"

#include "scheduler/question/policy_filter.h"

static bool is_nominated_to(const View *v, Str node) {
        for (const Profile *p = v->profiles.nominated; p; p = p->hh.next)
                if (str_eq(p->is.nominated_node, node))
                        return true;
        return false;
}

/* What the plan of a pod is made from. */
typedef struct Search {
        const View *view;
        const PendingPod *pod;
        const Request *request;
        uint64_t *steps;
        Arena *arena;
} Search;

/* Adds the cheapest victims once gangs have settled to plan->later. Returns 0 or -ENOMEM. */
static int consider_unsettled(const Search *s, const VictimQuestion *q, EvictorPlan *plan) {
        VictimQuestion later = *q;
        UnsettledGrants open;
        VictimChoice choice;
        int r = unsettled_grants(s->view, q->node, 0, s->arena, &open);

        if (r < 0 || open.n_plans + open.n_soon == 0)
                return r;
        later.gone = open.plans;
        later.n_gone = open.n_plans;
        later.soon = open.soon;
        later.n_soon = open.n_soon;
        r = victims_choose(&later, s->arena, &choice);
        if (r == 0 && choice.cost.violations == 0)
                unsettled_add(&plan->later, &choice.cost);
        return r < 0 ? r : 0;
}

/* Takes the victims on the node where they are the cheapest so far. */
static void consider_choice(LedgerNode *node, const VictimChoice *choice, EvictorPlan *plan) {
        if (choice->cost.violations > 0)
                plan->blocked = true;
        else if (!plan->node || victim_cost_compare(&choice->cost, &plan->choice.cost) < 0) {
                plan->node = node;
                plan->choice = *choice;
        }
}

/* Judges one node and improves the plan by it. Returns 0 or -ENOMEM. */
static int consider_node(const Search *s, Str name, EvictorPlan *plan) {
        const View *v = s->view;
        DirectoryNode *node = directory_find(v->directory, name);
        VictimQuestion q = {.profiles = &v->profiles,
                            .budgets = &v->budgets,
                            .request = s->request,
                            .priority = s->pod->priority,
                            .by_eviction = true,
                            .steps = s->steps};
        VictimChoice choice;
        Refusal refusal;
        int r;

        if (!node || is_nominated_to(v, name) || !policy_filter_may_preempt(v->policies, s->pod->uid, node))
                return 0;
        q.node = node->ledger_node;
        if (placement_check(q.node, s->request, &refusal) == 0) {
                plan->fits = true;
                return 0;
        }
        if (!refusal_is_for_cards(refusal.code))
                return 0;
        r = consider_unsettled(s, &q, plan);
        if (r < 0)
                return r;
        r = victims_choose(&q, s->arena, &choice);
        plan->blocked |= r == VICTIMS_E_BUDGETS;
        if (r != 0 || choice.n == 0) /* no set helps, or waiting for pods under deletion suffices */
                return r < 0 ? r : 0;
        consider_choice(node->ledger_node, &choice, plan);
        return 0;
}

int evictor_plan_make(const View *v, const PendingPod *w, const Request *request, uint64_t *steps,
                      Arena *arena, EvictorPlan *ret) {
        Search search = {.view = v, .pod = w, .request = request, .steps = steps, .arena = arena};
        Str rest = buf_str(&w->nodes);
        int r = 0;

        *ret = (EvictorPlan){0};
        while (r == 0 && !ret->fits && !str_is_empty(rest))
                r = consider_node(&search, str_split(&rest, '\n'), ret);
        return r;
}
