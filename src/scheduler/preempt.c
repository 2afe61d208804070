/* SPDX-License-Identifier: Apache-2.0 */

/* Decides which pods must go so that the pod finds its cards. For each candidate node
 * kube-scheduler sends the victims that free enough of the node's sums, by UID (nodeCacheCapable)
 * or whole; it knows no cards. The answer names victims by UID:
 *
 *   - the proposed ones as they are, where the pod fits when they are gone;
 *   - otherwise the cheapest set that frees the cards (victims.h), if the pods that it adds may
 *     stand for those that it leaves out;
 *   - otherwise the proposed ones, and the cheapest set that frees the cards besides them;
 *   - nothing for a node where no eviction makes room, nor where a proposed victim belongs to a
 *     gang that is being placed;
 *   - nothing at all while cards of a gang are not settled, if cheaper victims, or none, would do
 *     afterwards (unsettled.h);
 *   - nothing at all for a member of a gang that is not satisfied: the victims of one member would
 *     die for a gang that then finds no room for the others.
 *
 * What kube-scheduler does with the answer (pkg/scheduler/extender.go and
 * framework/preemption/preemption.go, v1.22 to v1.36): it turns each UID into the pod of that UID
 * on that node in its own snapshot. A UID that is not there fails the whole preemption of this pod
 * until its next try (convertPodUIDToPod). A node without victims fails it too (callExtenders).
 *
 * It takes NumPDBViolations from the answer and the highest priority from the first pod
 * (pickOneNodeForPreemption), so that victims are written most important first. It does not run its
 * filters again: a victim that is left out must be outweighed here. */

#include <errno.h>

#include "scheduler/args.h"
#include "scheduler/gang/gang_nodes.h"
#include "scheduler/policy_filter.h"
#include "scheduler/unsettled.h"
#include "scheduler/verbs.h"
#include "wire/json_field.h"
#include "wire/json_write.h"

enum {
        VICTIMS_MAX = 4096,        /* more than a node runs */
        STEPS_OF_A_CALL = 1 << 20, /* of the search for victims, over all candidate nodes */
};

typedef struct Victims {
        Str *uids;   /* each once */
        Str *sorted; /* the same, for is_proposed() */
        size_t n, room;
        int64_t violations; /* NumPDBViolations */
} Victims;

typedef struct Preempt {
        const VerbContext *context;
        Arena scratch; /* of the node that is being answered */
        bool ours, final;
        bool waits; /* a member of a gang that is not satisfied */
        Str namespace_, name, uid;
        Request request;
        PodProfile profile;
        uint64_t steps;   /* left */
        bool any;         /* a node has been answered */
        VictimCost best;  /* of the answered nodes */
        PlanNodes plan;   /* of the gang that is being placed */
        bool unsettled;   /* victims would do when the cards of gangs are settled (unsettled.h) */
        VictimCost later; /* the cheapest of those */
        JsonWriter writer;
} Preempt;

/* ---- reading ---- */

static void victim_add(JsonReader *r, Arena *arena, Victims *v, Str uid) {
        if (v->n == VICTIMS_MAX) {
                json_fault(r, "more victims than a node runs");
                return;
        }
        if (v->n == v->room) {
                size_t room = v->room > 0 ? v->room * 2 : 16;
                Str *uids = arena_new(arena, Str, room);

                if (!uids) {
                        json_no_memory(r);
                        return;
                }
                if (v->n > 0)
                        memcpy(uids, v->uids, v->n * sizeof *uids);
                v->uids = uids;
                v->room = room;
        }
        v->uids[v->n++] = uid;
}

static const JsonField uid_fields[] = {{STR("uid"), json_field_str, 0}};

static void read_metadata(JsonReader *r, Arena *arena, void *ret_str) {
        json_field_decode(r, arena, uid_fields, ELEMENTSOF(uid_fields), ret_str);
}

/* A MetaPod {UID} or a v1.Pod: the first has no metadata, the second has its UID there alone. */
static void read_victim(JsonReader *r, Arena *arena, Victims *v) {
        Str uid = {NULL, 0}, key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "UID"))
                        json_string(r, arena, &uid);
                else if (json_key_is(key, "metadata"))
                        read_metadata(r, arena, &uid);
                else
                        json_skip(r);
        }
        if (!json_failed(r))
                victim_add(r, arena, v, uid);
}

static void read_victims(JsonReader *r, Arena *arena, Victims *v) {
        Str key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                if (args_key_is(key, "NumPDBViolations"))
                        json_i64(r, &v->violations);
                else if (!args_key_is(key, "Pods"))
                        json_skip(r);
                else if (json_array_begin(r))
                        while (json_array_next(r))
                                read_victim(r, arena, v);
        }
}

/* ---- sets of UIDs ---- */

static int compare_uids(const void *a, const void *b) {
        return str_compare(*(const Str *) a, *(const Str *) b);
}

static bool has_uid(const Str *sorted, size_t n, Str uid) {
        return n > 0 && bsearch(&uid, sorted, n, sizeof uid, compare_uids);
}

typedef struct NamedPod {
        Str uid;
        size_t at; /* in the list */
} NamedPod;

static int compare_named(const void *a, const void *b) {
        const NamedPod *x = a, *y = b;
        int r = str_compare(x->uid, y->uid);

        return r != 0 ? r : (x->at > y->at) - (x->at < y->at);
}

/* Keeps the first one of equal UIDs, in their order, and fills v->sorted. 0 or -ENOMEM. */
static int victims_unique(Victims *v, Arena *arena) {
        NamedPod *named = arena_new(arena, NamedPod, v->n + 1);
        bool *again = arena_new(arena, bool, v->n + 1);
        size_t n = 0, sorted = 0;

        v->sorted = arena_new(arena, Str, v->n + 1);
        if (!named || !again || !v->sorted)
                return -ENOMEM;
        for (size_t i = 0; i < v->n; i++)
                named[i] = (NamedPod){.uid = v->uids[i], .at = i};
        qsort(named, v->n, sizeof *named, compare_named);
        for (size_t i = 0; i < v->n; i++) {
                again[named[i].at] = i > 0 && str_eq(named[i].uid, named[i - 1].uid);
                if (!again[named[i].at])
                        v->sorted[sorted++] = named[i].uid;
        }
        for (size_t i = 0; i < v->n; i++)
                if (!again[i])
                        v->uids[n++] = v->uids[i];
        v->n = n;
        return 0;
}

/* ---- the pods of one node ---- */

typedef struct NodeCase {
        const LedgerNode *node;
        const Victims *proposed;
        const Grant **grants; /* of plans, then of the proposed victims, each once */
        size_t n_plans, n_grants;
        VictimSoon *soon; /* members whose Binding is under way */
        size_t n_soon;
        bool settled;          /* those of plans count as gone, and those members may go */
        const Request **first; /* of pods that are nominated here and come before this one */
        size_t n_first;
} NodeCase;

/* Finds the victims' grants on this node, each once. A victim without a slice frees none. */
static int find_grants(Preempt *p, NodeCase *f) {
        const Victims *v = f->proposed;
        size_t n;

        f->n_plans = unsettled_plans(p->context->view, f->node, NULL);
        f->grants = (const Grant **) arena_alloc(&p->scratch, f->n_plans + v->n + 1, sizeof(Grant *));
        if (!f->grants)
                return -ENOMEM;
        n = unsettled_plans(p->context->view, f->node, f->grants);
        for (size_t i = 0; i < v->n; i++) {
                const ViewPod *pod = view_pod_find(p->context->view, v->uids[i]);

                if (pod && pod->grant && grant_node(pod->grant) == f->node)
                        f->grants[n++] = pod->grant;
        }
        f->n_grants = n - f->n_plans;
        return 0;
}

/* kube-scheduler counts a pod that is nominated to a node as being there when its priority is not
 * lower (RunFilterPluginsWithNominatedPods). So does this answer. */
static int find_first(Preempt *p, NodeCase *f) {
        const View *v = p->context->view;

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

static int case_init(Preempt *p, const LedgerNode *node, const Victims *proposed, NodeCase *ret) {
        const View *view = p->context->view;
        int r;

        *ret = (NodeCase){.node = node, .proposed = proposed, .n_soon = unsettled_members(view, node, NULL)};
        ret->soon = arena_new(&p->scratch, VictimSoon, ret->n_soon + 1);
        if (!ret->soon)
                return -ENOMEM;
        (void) unsettled_members(view, node, ret->soon);
        r = find_grants(p, ret);
        return r < 0 ? r : find_first(p, ret);
}

/* gone: whether the proposed victims count as gone. */
static VictimQuestion question(Preempt *p, const NodeCase *f, bool gone) {
        const View *v = p->context->view;
        HoldAsker asker = {.uid = p->uid, .priority = view_pod_priority(v, p->uid)};
        size_t kept = f->settled ? 0 : f->n_plans;

        return (VictimQuestion){
                .node = f->node,
                .profiles = &v->profiles,
                .budgets = &v->budgets,
                .request = &p->request,
                .priority = p->profile.priority,
                .hold = hold_yields_to(&v->hold, &asker, f->node) ? v->hold.grant : NULL,
                .first = f->first,
                .n_first = f->n_first,
                .gone = f->grants + kept,
                .n_gone = f->n_plans - kept + (gone ? f->n_grants : 0),
                .soon = f->soon,
                .n_soon = f->settled ? f->n_soon : 0,
                .steps = &p->steps,
        };
}

/* gone: as above. */
static int choose(Preempt *p, const NodeCase *f, bool gone, VictimChoice *ret) {
        VictimQuestion q = question(p, f, gone);

        return victims_choose(&q, &p->scratch, ret);
}

/* ---- leaving proposed victims out ---- */

static bool is_proposed(const Victims *v, Str uid) {
        return has_uid(v->sorted, v->n, uid);
}

/* What one pod requests of one resource. */
typedef struct Part {
        PodResource of;
        bool added; /* the pod is added; otherwise it is left out */
} Part;

static int compare_parts(const void *a, const void *b) {
        return str_compare(((const Part *) a)->of.name, ((const Part *) b)->of.name);
}

/* What the choice adds and what it leaves out, where it replaces the proposed victims. */
typedef struct Exchange {
        const Profile **left_out, **added;
        size_t n_left_out, n_added;
        bool unknown;  /* a pod is left out that may free more than resources */
        bool settling; /* a pod is added whose requests are not known yet */
} Exchange;

static bool may_leave_out(const Preempt *p, const Profile *pod) {
        return pod && !pod->too_large && !pod->is.holds_more && !pod->is.affine &&
               !pod->is.requests_unknown && !p->profile.affine;
}

/* 0 or -ENOMEM. */
static int exchange_init(Preempt *p, const Victims *v, const VictimChoice *c, Exchange *ret) {
        Str *chosen = arena_new(&p->scratch, Str, c->n + 1);

        *ret = (Exchange){.left_out = arena_new(&p->scratch, const Profile *, v->n + 1),
                          .added = arena_new(&p->scratch, const Profile *, c->n + 1)};
        if (!chosen || !ret->left_out || !ret->added)
                return -ENOMEM;
        for (size_t i = 0; i < c->n; i++) {
                chosen[i] = c->pods[i]->uid;
                if (is_proposed(v, chosen[i]))
                        continue;
                ret->added[ret->n_added++] = c->pods[i];
                ret->settling |= c->pods[i]->settling;
        }
        qsort(chosen, c->n, sizeof *chosen, compare_uids);
        for (size_t i = 0; i < v->n; i++) {
                const Profile *pod;

                if (has_uid(chosen, c->n, v->uids[i]))
                        continue;
                pod = profiles_find(&p->context->view->profiles, v->uids[i]);
                ret->unknown |= !may_leave_out(p, pod);
                ret->left_out[ret->n_left_out++] = pod;
        }
        return 0;
}

static void put_parts(const Profile *const *pods, size_t n, bool added, Part *parts, size_t *n_parts) {
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < pods[i]->is.n_requests && !pods[i]->is.requests_unknown; k++)
                        parts[(*n_parts)++] = (Part){.of = pods[i]->is.requests[k], .added = added};
}

static size_t n_requests_of(const Profile *const *pods, size_t n) {
        size_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += pods[i]->is.n_requests;
        return sum;
}

/* Compares the parts of one resource, from parts[*at] on: whether the added pods request as much of
 * it as those that are left out. */
static bool outweighs(const Part *parts, size_t n, size_t *at) {
        int64_t left_out = 0, added = 0;
        Str name = parts[*at].of.name;
        bool overflow = false;

        for (; *at < n && str_eq(parts[*at].of.name, name); ++*at) {
                int64_t *sum = parts[*at].added ? &added : &left_out;

                overflow |= __builtin_add_overflow(*sum, parts[*at].of.milli, sum);
        }
        return !overflow && added >= left_out;
}

/* Whether the choice may stand for the proposed victims. A proposed victim is left out only under
 * two conditions. The added pods request at least as much of every resource, and are as many. And
 * nothing but resources can have been the reason to propose it. A member whose Binding is under way
 * counts as if it requested enough: the decision waits then.
 *
 * Returns 0 or -ENOMEM. */
static int may_stand_for(Preempt *p, const Victims *v, const VictimChoice *c, bool *ret) {
        size_t n = 0, at = 0;
        Exchange e;
        Part *parts;
        int r = exchange_init(p, v, c, &e);

        if (r < 0)
                return r;
        *ret = !e.unknown && e.n_added >= e.n_left_out;
        if (!*ret || e.settling)
                return 0;
        parts = arena_new(&p->scratch, Part,
                          n_requests_of(e.left_out, e.n_left_out) + n_requests_of(e.added, e.n_added) + 1);
        if (!parts)
                return -ENOMEM;
        put_parts(e.left_out, e.n_left_out, false, parts, &n);
        put_parts(e.added, e.n_added, true, parts, &n);
        qsort(parts, n, sizeof *parts, compare_parts);
        while (*ret && at < n)
                *ret = outweighs(parts, n, &at);
        return 0;
}

/* ---- the two answers ---- */

typedef struct Answer {
        Victims victims; /* most important first */
        VictimCost cost; /* of the victims that are known */
} Answer;

static int answer_of(Preempt *p, const Profile **pods, size_t n, Answer *ret) {
        int r = victims_cost(&p->context->view->budgets, pods, n, &p->scratch, &ret->cost);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                ret->victims.uids[ret->victims.n++] = pods[i]->uid;
        ret->victims.violations = ret->cost.violations;
        return 0;
}

static int answer_init(Preempt *p, size_t room, Answer *ret, const Profile ***ret_pods) {
        Arena *arena = &p->scratch;

        *ret = (Answer){0};
        ret->victims.uids = arena_new(arena, Str, room + 1);
        *ret_pods = arena_new(arena, const Profile *, room + 1);
        return ret->victims.uids && *ret_pods ? 0 : -ENOMEM;
}

static const Profile *profile_of(const Preempt *p, const NodeCase *f, Str uid) {
        for (size_t i = 0; i < f->n_soon; i++)
                if (str_eq(f->soon[i].profile.uid, uid))
                        return &f->soon[i].profile;
        return profiles_find(&p->context->view->profiles, uid);
}

/* The priority of pods that hold no slice is not known here. kube-scheduler's own order says where
 * they belong: before the others if its first one is such a pod. */
static int unite(Preempt *p, const NodeCase *f, const VictimChoice *c, Answer *ret) {
        const Victims *v = f->proposed;
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

static int replace(Preempt *p, const VictimChoice *c, Answer *ret) {
        const Profile **pods;
        int r = answer_init(p, c->n, ret, &pods);

        if (r < 0)
                return r;
        for (size_t i = 0; i < c->n; i++)
                pods[i] = c->pods[i];
        return answer_of(p, pods, c->n, ret);
}

/* ---- answering ---- */

static void write_victims(Preempt *p, Str name, const Victims *v) {
        JsonWriter *w = &p->writer;

        p->any = true;
        json_write_key(w, name);
        json_write_object(w, NULL);
        json_write_array(w, "Pods");
        for (size_t i = 0; i < v->n; i++) {
                json_write_object(w, NULL);
                json_write_str(w, "UID", v->uids[i]);
                json_write_object_end(w);
        }
        json_write_array_end(w);
        json_write_i64(w, "NumPDBViolations", v->violations);
        json_write_object_end(w);
}

static bool has_member_being_placed(const Preempt *p, const Victims *v) {
        const Gangs *gangs = p->context->gangs;

        for (size_t i = 0; gangs && i < v->n; i++)
                if (gangs_is_being_placed(gangs, v->uids[i]))
                        return true;
        return false;
}

/* Whether pods may be evicted for cards of the pod. */
static bool may_answer(const Preempt *p) {
        return !p->final && !p->profile.never_preempts;
}

/* Tries both kinds of answer, and takes the cheaper one where both are possible. 0, VICTIMS_E_NONE
 * or -ENOMEM. */
static int choose_victims(Preempt *p, const NodeCase *f, const VictimChoice *besides, Answer *ret) {
        VictimChoice instead;
        Answer replaced;
        bool may;
        int r;

        r = unite(p, f, besides, ret);
        if (r < 0)
                return r;
        r = choose(p, f, false, &instead);
        if (r != 0 || instead.n == 0)
                return r < 0 ? r : 0;
        r = may_stand_for(p, f->proposed, &instead, &may);
        if (r < 0 || !may)
                return r;
        r = replace(p, &instead, &replaced);
        if (r == 0 && victim_cost_compare(&replaced.cost, &ret->cost) < 0)
                *ret = replaced;
        return r;
}

/* What kube-scheduler is answered for the node: 0, VICTIMS_E_NONE or -ENOMEM. */
static int answer_case(Preempt *p, const NodeCase *f, Answer *ret) {
        VictimChoice besides;
        int r = choose(p, f, true, &besides);

        if (r != 0)
                return r;
        if (besides.n > 0)
                return choose_victims(p, f, &besides, ret);
        r = unite(p, f, &besides, ret);
        ret->victims = *f->proposed;
        return r;
}

/* The answer when the cards of the gangs are settled (unsettled.h). Where kube-scheduler counts a
 * member as placed, the proposed victims may be no longer needed once its gang gives its cards
 * back, because its cpu and memory come free, too.
 *
 * Returns 0 or -ENOMEM. */
static int consider_unsettled(Preempt *p, const NodeCase *f, bool assumed) {
        const Victims none = {0};
        NodeCase later = *f;
        Answer answer;
        int r;

        if (f->n_plans + f->n_soon == 0 && !assumed)
                return 0;
        later.settled = true;
        if (assumed) {
                later.proposed = &none;
                later.n_grants = 0;
        }
        r = answer_case(p, &later, &answer);
        if (r == 0 && (!p->unsettled || victim_cost_compare(&answer.cost, &p->later) < 0)) {
                p->unsettled = true;
                p->later = answer.cost;
        }
        return r < 0 ? r : 0;
}

static int answer_ours(Preempt *p, Str name, const LedgerNode *node, const Victims *v, bool being_placed) {
        const PlanNode *plan = gang_nodes_find(&p->plan, node);
        NodeCase f;
        Answer answer;
        int r = case_init(p, node, v, &f);

        if (r == 0)
                r = consider_unsettled(p, &f, being_placed || (plan && plan->assumed));
        if (r == 0 && !being_placed)
                r = answer_case(p, &f, &answer);
        if (r != 0 || being_placed)
                return r < 0 ? r : 0;
        if (!p->any || victim_cost_compare(&answer.cost, &p->best) < 0)
                p->best = answer.cost;
        write_victims(p, name, &answer.victims);
        return 0;
}

static int answer_node(Preempt *p, Str name, const Victims *v) {
        DirectoryNode *node = directory_find(p->context->view->directory, name);
        PlanNode *plan = node ? gang_nodes_find(&p->plan, node->ledger_node) : NULL;
        bool being_placed = has_member_being_placed(p, v);

        if (plan)
                plan->asked = true;
        if (p->waits || !policy_filter_may_preempt(p->context->view->policies, p->uid, node))
                return 0;
        if (p->ours)
                return may_answer(p) && node && v->n > 0
                               ? answer_ours(p, name, node->ledger_node, v, being_placed)
                               : 0;
        if (!being_placed)
                write_victims(p, name, v);
        return 0;
}

/* Nodes of the plan where kube-scheduler proposes no victims, because they have enough of every
 * sum. Which of them it offers the pod is known of all together. */
static int consider_others(Preempt *p) {
        const Sleepers *s = p->context->sleepers;
        const Sleeper *note = s ? sleepers_find(s, p->uid) : NULL;
        const Victims none = {0};
        NodeCase f;
        int r = 0;

        for (size_t i = 0; r == 0 && note && note->lost_to_plan && i < p->plan.n; i++) {
                if (p->plan.nodes[i].asked)
                        continue;
                arena_reset(&p->scratch);
                r = case_init(p, p->plan.nodes[i].node, &none, &f);
                if (r == 0)
                        r = consider_unsettled(p, &f, false);
        }
        return r;
}

/* The key as text. With its quotes around it, it is a JSON string like any other. */
static Str name_of(Str raw_key, Arena *arena) {
        Str name = raw_key;
        JsonReader r;

        if (str_is_empty(raw_key) || !memchr(raw_key.data, '\\', raw_key.len))
                return name;
        json_init(&r, (Str){raw_key.data - 1, raw_key.len + 2});
        json_string(&r, arena, &name);
        return name;
}

static int read_nodes(Preempt *p, Str text, Fault *fault) {
        Arena *arena = &p->scratch;
        JsonReader r;
        Str raw_key;
        int k = 0;

        json_init(&r, text);
        if (json_object_begin(&r))
                while (k >= 0 && json_object_next(&r, &raw_key)) {
                        Victims v = {0};
                        Str name;

                        arena_reset(arena);
                        name = name_of(raw_key, arena);

                        read_victims(&r, arena, &v);
                        if (json_failed(&r))
                                continue;
                        k = victims_unique(&v, arena);
                        if (k == 0)
                                k = answer_node(p, name, &v);
                }
        if (k < 0)
                return k;
        k = json_finish(&r, fault);
        return k > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "victims") : k;
}

static int take_pod(Preempt *p, Str text, Fault *fault) {
        Refusal refusal;
        Pod pod;
        int r;

        if (str_is_empty(text))
                return fault_set(fault, ARGS_E_MALFORMED, "Pod is missing");
        r = pod_decode(text, p->context->arena, &pod, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "Pod") : r;
        r = pod_profile_decode(text, p->context->arena, &p->profile, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "Pod") : r;
        p->namespace_ = pod.meta.namespace_;
        p->name = pod.meta.name;
        p->uid = pod.meta.uid;
        p->waits = p->context->gangs && gangs_waits(p->context->gangs, p->uid);
        r = request_from_pod(&pod, p->context->arena, &p->request, &refusal);
        p->ours = r != REQUEST_E_NONE;
        p->final = r == REQUEST_E_REFUSED;
        return r < 0 ? r : gang_nodes_of(p->context->gangs, p->context->arena, &p->plan);
}

static void take_member(JsonReader *r, Str *ret) {
        Str raw = {NULL, 0};
        bool null = json_peek(r) == JSON_NULL;

        json_raw(r, &raw);
        if (!null)
                *ret = raw;
}

static int answer(Preempt *p, Str body, Fault *fault) {
        Str pod = {NULL, 0}, victims = {NULL, 0}, meta = {NULL, 0}, key;
        JsonReader r;
        int k;

        json_init(&r, body);
        if (json_peek(&r) != JSON_OBJECT)
                json_fault(&r, "ExtenderPreemptionArgs must be an object");
        else if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        if (args_key_is(key, "Pod"))
                                take_member(&r, &pod);
                        else if (args_key_is(key, "NodeNameToVictims"))
                                take_member(&r, &victims);
                        else if (args_key_is(key, "NodeNameToMetaVictims"))
                                take_member(&r, &meta);
                        else
                                json_skip(&r);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return k > 0 ? ARGS_E_MALFORMED : k;
        k = take_pod(p, pod, fault);
        if (k != 0)
                return k;
        json_write_object(&p->writer, NULL);
        json_write_object(&p->writer, "NodeNameToMetaVictims");
        if (!str_is_empty(meta) || !str_is_empty(victims))
                k = read_nodes(p, str_is_empty(meta) ? victims : meta, fault);
        if (k == 0 && p->ours && !p->waits && may_answer(p))
                k = consider_others(p);
        if (k != 0)
                return k;
        json_write_object_end(&p->writer);
        json_write_object_end(&p->writer);
        return 0;
}

/* Whether the decision waits for a gang. The waker then wakes the pod when the plan ends. */
static bool waits_for_gang(const Preempt *p) {
        const VerbContext *c = p->context;
        Sleeper *note;

        if (!c->sleepers || !p->unsettled || (p->any && victim_cost_compare(&p->later, &p->best) >= 0) ||
            !unsettled_may_wait(view_pod_find(c->view, p->uid), c->now))
                return false;
        note = sleepers_note(c->sleepers, p->namespace_, p->name, p->uid);
        if (note)
                note->waits_for_gang = true;
        return note != NULL;
}

unsigned verb_preempt(const VerbContext *c, Str body, Buf *out) {
        Preempt p = {.context = c, .steps = STEPS_OF_A_CALL};
        Fault fault = FAULT_NULL;
        bool waits;
        int r;

        json_write_init(&p.writer, out);
        r = answer(&p, body, &fault);
        arena_done(&p.scratch);
        waits = r == 0 && waits_for_gang(&p);
        if (waits) {
                buf_clear(out);
                buf_append_str(out, STR("{\"NodeNameToMetaVictims\":{}}"));
        }
        if (r == 0)
                r = buf_result(out);
        if (r == 0 && (p.any || waits) && c->waiters)
                /* kube-scheduler evicts for it, or does so later; the evictor need not. */
                waiters_rest(c->waiters, p.uid);
        return r == 0 ? 200 : verb_failed(r, &fault, out);
}
