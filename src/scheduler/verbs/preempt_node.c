/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/verbs/preempt_node.h"

#include <errno.h>

#include "scheduler/verbs/victim_swap.h"

/* ---- the pods of the node ---- */

/* Collects the grants of the proposed victims on this node, each once. A victim without a slice has
 * none. */
static void find_grants(const Preemptor *p, PreemptNode *f) {
        for (size_t i = 0; i < f->proposed->n; i++) {
                const ViewPod *pod = view_pod_find(p->view, f->proposed->uids[i]);

                if (pod && pod->grant && grant_node(pod->grant) == f->node)
                        f->open.plans[f->open.n_plans + f->n_grants++] = pod->grant;
        }
}

/* Collects the pods nominated to this node that come before this one. kube-scheduler counts those
 * of no lower priority as being there (RunFilterPluginsWithNominatedPods). */
static int find_first(Preemptor *p, PreemptNode *f) {
        const View *v = p->view;

        f->first = (const Request **) arena_alloc(&p->scratch, HASH_COUNT(v->profiles.nominated) + 1,
                                                  sizeof(Request *));
        if (!f->first)
                return -ENOMEM;
        for (const Profile *n = v->profiles.nominated; n; n = n->hh.next) {
                const ViewPod *pod = view_pod_find(v, n->uid);

                if (pod && pod->request && n->is.priority >= p->profile.priority && !str_eq(n->uid, p->uid) &&
                    str_eq(n->is.nominated_node, ledger_node_name(f->node)))
                        f->first[f->n_first++] = pod->request;
        }
        return 0;
}

int preempt_node_init(Preemptor *p, const LedgerNode *node, const VictimList *proposed, PreemptNode *ret) {
        int r;

        *ret = (PreemptNode){.node = node, .proposed = proposed};
        r = unsettled_grants(p->view, node, proposed->n, &p->scratch, &ret->open);
        if (r < 0)
                return r;
        find_grants(p, ret);
        return find_first(p, ret);
}

/* ---- choosing ---- */

/* gone: whether the proposed victims count as gone. */
static VictimQuestion question_of(Preemptor *p, const PreemptNode *f, bool gone) {
        const View *v = p->view;
        HoldAsker asker = {.uid = p->uid, .priority = view_pod_priority(v, p->uid)};
        size_t kept = f->settled ? 0 : f->open.n_plans;

        return (VictimQuestion){
                .node = f->node,
                .profiles = &v->profiles,
                .budgets = &v->budgets,
                .request = &p->request,
                .priority = p->profile.priority,
                .hold = hold_yields_to(&v->hold, &asker, f->node) ? v->hold.grant : NULL,
                .first = f->first,
                .n_first = f->n_first,
                .gone = f->open.plans + kept,
                .n_gone = f->open.n_plans - kept + (gone ? f->n_grants : 0),
                .soon = f->open.soon,
                .n_soon = f->settled ? f->open.n_soon : 0,
                .steps = &p->steps,
        };
}

/* gone: as in question_of(). */
static int choose_on_node(Preemptor *p, const PreemptNode *f, bool gone, VictimChoice *ret) {
        VictimQuestion q = question_of(p, f, gone);

        return victims_choose(&q, &p->scratch, ret);
}

/* ---- the two answers ---- */

static int answer_of(Preemptor *p, const Profile **pods, size_t n, PreemptAnswer *ret) {
        int r = victims_cost(&p->view->budgets, pods, n, &p->scratch, &ret->cost);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                ret->victims.uids[ret->victims.n++] = pods[i]->uid;
        ret->victims.violations = ret->cost.violations;
        return 0;
}

static int answer_init(Preemptor *p, size_t room, PreemptAnswer *ret, const Profile ***ret_pods) {
        Arena *arena = &p->scratch;

        *ret = (PreemptAnswer){0};
        ret->victims.uids = arena_new(arena, Str, room + 1);
        *ret_pods = arena_new(arena, const Profile *, room + 1);
        return ret->victims.uids && *ret_pods ? 0 : -ENOMEM;
}

static const Profile *profile_of(const Preemptor *p, const PreemptNode *f, Str uid) {
        for (size_t i = 0; i < f->open.n_soon; i++)
                if (str_eq(f->open.soon[i].profile.uid, uid))
                        return &f->open.soon[i].profile;
        return profiles_find(&p->view->profiles, uid);
}

/* Makes the answer of the proposed victims and the choice together. Pods without a slice have no
 * known priority. They keep kube-scheduler's side: before the others if its first victim is one of
 * them, else behind. */
static int unite_victims(Preemptor *p, const PreemptNode *f, const VictimChoice *c, PreemptAnswer *ret) {
        const VictimList *v = f->proposed;
        const Profile **pods;
        bool unknown_first = v->n > 0 && !profile_of(p, f, v->uids[0]);
        size_t n = 0;
        int r = answer_init(p, v->n + c->n, ret, &pods);

        if (r < 0)
                return r;
        for (size_t i = 0; i < v->n; i++) {
                const Profile *pod = profile_of(p, f, v->uids[i]);

                if (pod)
                        pods[n++] = pod;
                else if (unknown_first)
                        ret->victims.uids[ret->victims.n++] = v->uids[i];
        }
        for (size_t i = 0; i < c->n; i++)
                pods[n++] = c->pods[i];
        r = answer_of(p, pods, n, ret);
        for (size_t i = 0; i < v->n && !unknown_first; i++)
                if (!profile_of(p, f, v->uids[i]))
                        ret->victims.uids[ret->victims.n++] = v->uids[i];
        if (ret->victims.violations < v->violations)
                ret->victims.violations = v->violations;
        return r;
}

static int replace_victims(Preemptor *p, const VictimChoice *c, PreemptAnswer *ret) {
        const Profile **pods;
        int r = answer_init(p, c->n, ret, &pods);

        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n; i++)
                pods[i] = c->pods[i];
        return answer_of(p, pods, c->n, ret);
}

/* Answers with the proposed victims and `besides`, or with another set instead of both if that is
 * allowed and cheaper. Returns 0 or -ENOMEM. */
static int choose_victims(Preemptor *p, const PreemptNode *f, const VictimChoice *besides,
                          PreemptAnswer *ret) {
        VictimChoice instead;
        VictimSwap swap;
        PreemptAnswer replaced;
        bool may;
        int r;

        r = unite_victims(p, f, besides, ret);
        if (r < 0)
                return r;
        r = choose_on_node(p, f, false, &instead);
        if (r != 0 || instead.n == 0)
                return r < 0 ? r : 0;
        swap = (VictimSwap){.profiles = &p->view->profiles,
                            .preemptor = &p->profile,
                            .proposed = f->proposed,
                            .chosen = &instead};
        r = victim_swap_is_allowed(&swap, &p->scratch, &may);
        if (r < 0 || !may)
                return r;
        r = replace_victims(p, &instead, &replaced);
        if (r == 0 && victim_cost_compare(&replaced.cost, &ret->cost) < 0)
                *ret = replaced;
        return r;
}

int preempt_node_answer(Preemptor *p, const PreemptNode *f, PreemptAnswer *ret) {
        VictimChoice besides;
        int r = choose_on_node(p, f, true, &besides);

        if (r != 0)
                return r;
        if (besides.n > 0)
                return choose_victims(p, f, &besides, ret);
        r = unite_victims(p, f, &besides, ret);
        ret->victims = *f->proposed;
        return r;
}

int preempt_node_answer_settled(Preemptor *p, const PreemptNode *f, bool assumed, PreemptAnswer *ret) {
        const VictimList none = {0};
        PreemptNode later = *f;

        if (f->open.n_plans + f->open.n_soon == 0 && !assumed)
                return VICTIMS_E_NONE;
        later.settled = true;
        if (assumed) {
                later.proposed = &none;
                later.n_grants = 0;
        }
        return preempt_node_answer(p, &later, ret);
}
