/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/evictor_try.h"

#include <errno.h>

static int copy_victim(EvictorTry *t, const Profile *p) {
        EvictorPod *victim = &t->victims[t->n++];

        victim->namespace_ = arena_str(&t->arena, p->namespace_);
        victim->name = arena_str(&t->arena, p->name);
        victim->uid = arena_str(&t->arena, p->uid);
        return victim->namespace_.data && victim->name.data && victim->uid.data ? 0 : -ENOMEM;
}

static int copy_victims(EvictorTry *t, const Budgets *budgets, const VictimChoice *choice) {
        const Budget *found[BUDGETS_OF_A_POD_MAX];
        int r = 0;

        /* One element more: evict_next() takes the address behind the last victim. */
        t->victims = arena_new(&t->arena, EvictorPod, choice->n + 1);
        if (!t->victims)
                return -ENOMEM;
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; r == 0 && i < choice->n; i++)
                        if ((budgets_of(budgets, choice->pods[i], found) > 0) == (pass == 0))
                                r = copy_victim(t, choice->pods[i]);
        return r;
}

static void name_cards(EvictorTry *t, const Placement *placement) {
        size_t len = 0;

        for (size_t i = 0; i < placement->n_slices && len < sizeof t->cards; i++)
                if (i == 0 || placement->slices[i].card != placement->slices[i - 1].card)
                        len += (size_t) snprintf(t->cards + len, sizeof t->cards - len, "%sgpu%u",
                                                 len > 0 ? ", " : "", placement->slices[i].card);
}

int evictor_try_copy(EvictorTry *t, const Budgets *budgets, const PendingPod *w, const EvictorPlan *plan) {
        t->namespace_ = arena_str(&t->arena, w->namespace_);
        t->name = arena_str(&t->arena, w->name);
        t->uid = arena_str(&t->arena, w->uid);
        t->node = arena_str(&t->arena, ledger_node_name(plan->node));
        if (!t->namespace_.data || !t->name.data || !t->uid.data || !t->node.data)
                return -ENOMEM;
        t->priority = w->priority;
        name_cards(t, &plan->choice.placement);
        return copy_victims(t, budgets, &plan->choice);
}

void evictor_try_done(EvictorTry *t) {
        arena_done(&t->arena);
        *t = (EvictorTry){0};
}

/* Whether the agent reports, on the node, slices of this pod that processes hold after its end. */
static bool is_held(const LedgerNode *node, Str uid) {
        for (const Grant *g = node ? ledger_node_held(node) : NULL; g; g = grant_next(g))
                if (str_eq(grant_uid(g), uid))
                        return true;
        return false;
}

bool evictor_try_is_drained(const EvictorTry *t, const View *v) {
        const LedgerNode *node = ledger_node_find(v->ledger, t->node);

        for (size_t i = 0; i < t->n; i++) {
                Str uid = t->victims[i].uid;
                const ViewPod *pod = view_pod_find(v, uid);

                if ((pod && pod->grant && grant_node(pod->grant) == node) || is_held(node, uid))
                        return false;
        }
        return true;
}
