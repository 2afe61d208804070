/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which pods must go so that the pod finds its cards. For each candidate node
 * kube-scheduler sends the victims that free enough of the node's summed resources, by UID
 * (nodeCacheCapable) or whole; it knows no cards. The answer names victims by UID:
 *
 *   - the proposed ones as they are, if the pod fits when they are gone;
 *   - otherwise the cheapest set that frees the cards (victims.h), if the pods that it adds may
 *     stand for those that it leaves out;
 *   - otherwise the proposed ones, and the cheapest set that frees the cards besides them;
 *   - nothing for a node where no eviction makes room, nor where a proposed victim is an unbound
 *     member of a gang that is not satisfied: its eviction frees nothing that stays taken;
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
 * (pickOneNodeForPreemption), so victims are written most important first. It does not run its
 * filters again: a victim that is left out must be outweighed (victim_swap.h). */

#include "scheduler/question/args.h"
#include "scheduler/verbs/preempt_node.h"
#include "scheduler/verbs/verbs.h"

enum { STEPS_OF_A_CALL = 1 << 20 }; /* most steps of the search for victims, over all candidate nodes */

typedef struct Preempt {
        SchedulerContext *context;
        Preemptor pod;
        bool ours, final;
        bool waits; /* the pod is a member of a gang that is not satisfied */
        Str namespace_, name;
        bool any;        /* a node has been written into the answer */
        VictimCost best; /* the cheapest set among the answered nodes */
        PlanNodes plan;  /* of the gang that is being placed */
        bool left_out;   /* a node was left out for an unbound member; set for a pod without cards */
        Unsettled later;
        JsonWriter writer;
} Preempt;

/* ---- answering ---- */

/* Whether a victim is an unbound member of a gang. kube-scheduler may take it for placed until it
 * has read that its Bind failed. The preemption would then wait for the deletion of a pod that is
 * on no node. */
static bool has_unbound_member(const Preempt *p, const VictimList *v) {
        const PeerHooks *peers = &p->context->peers;

        for (size_t i = 0; peers->userdata && i < v->n; i++)
                if (peers->is_unbound(peers->userdata, v->uids[i]))
                        return true;
        return false;
}

/* Whether evictions can help the pod at all, and it may preempt. */
static bool may_answer(const Preempt *p) {
        return !p->final && !p->pod.profile.never_preempts;
}

/* Adds the cost of the node's answer after the gangs have settled. Returns 0 or -ENOMEM. */
static int consider_unsettled(Preempt *p, const PreemptNode *f, bool assumed) {
        PreemptAnswer answer;
        int r = preempt_node_answer_settled(&p->pod, f, assumed, &answer);

        if (r == 0)
                unsettled_add(&p->later, &answer.cost);
        return r < 0 ? r : 0;
}

static void write_answer(Preempt *p, Str name, const VictimList *v) {
        p->any = true;
        victim_list_write(&p->writer, name, v);
}

static int answer_ours(Preempt *p, Str name, const LedgerNode *node, const VictimList *v, bool unbound) {
        const PlanNode *plan = plan_nodes_find(&p->plan, node);
        PreemptNode f;
        PreemptAnswer answer;
        int r = preempt_node_init(&p->pod, node, v, &f);

        if (r == 0)
                r = consider_unsettled(p, &f, unbound || (plan && plan->assumed));
        if (r == 0 && !unbound)
                r = preempt_node_answer(&p->pod, &f, &answer);
        if (r != 0 || unbound)
                return r < 0 ? r : 0;
        if (!p->any || victim_cost_compare(&answer.cost, &p->best) < 0)
                p->best = answer.cost;
        write_answer(p, name, &answer.victims);
        return 0;
}

static int answer_node(Preempt *p, Str name, const VictimList *v) {
        DirectoryNode *node = directory_find(p->context->view->directory, name);
        PlanNode *plan = node ? plan_nodes_find(&p->plan, node->ledger_node) : NULL;
        const UnitHooks *units = &p->context->units;
        bool unbound = has_unbound_member(p, v);

        if (plan)
                plan->asked = true;
        if (p->waits || (units->userdata && !units->may_preempt(units->userdata, p->pod.uid, node)))
                return 0;
        if (p->ours)
                return may_answer(p) && node && v->n > 0 ? answer_ours(p, name, node->ledger_node, v, unbound)
                                                         : 0;
        p->left_out |= unbound;
        if (!unbound)
                write_answer(p, name, v);
        return 0;
}

/* Considers nodes of the plan for which kube-scheduler proposes no victims, because their summed
 * resources suffice. Filter noted only whether it offered the pod any of them. Returns 0 or
 * -ENOMEM. */
static int consider_others(Preempt *p) {
        SchedulerContext *c = p->context;
        const PendingPod *pod = c->leading ? pending_find(&c->pending, p->pod.uid) : NULL;
        const VictimList none = {0};
        PreemptNode f;
        int r = 0;

        for (size_t i = 0; r == 0 && pod && pod->lost_to_plan && i < p->plan.n; i++) {
                if (p->plan.nodes[i].asked)
                        continue;
                arena_reset(&p->pod.scratch);
                r = preempt_node_init(&p->pod, p->plan.nodes[i].node, &none, &f);
                if (r == 0)
                        r = consider_unsettled(p, &f, false);
        }
        return r;
}

/* ---- reading ---- */

/* The key without JSON escapes. The quotes around it are part of the text, so it can be read as a
 * string. */
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
        Arena *arena = &p->pod.scratch;
        JsonReader r;
        Str raw_key;
        int k = 0;

        json_init(&r, text);
        if (json_object_begin(&r))
                while (k >= 0 && json_object_next(&r, &raw_key)) {
                        VictimList v = {0};
                        Str name;

                        arena_reset(arena);
                        name = name_of(raw_key, arena);
                        victim_list_read(&r, arena, &v);
                        if (json_failed(&r))
                                continue;
                        k = victim_list_unique(&v, arena);
                        if (k == 0)
                                k = answer_node(p, name, &v);
                }
        if (k < 0)
                return k;
        k = json_finish(&r, fault);
        return k > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "victims") : k;
}

static int take_pod(Preempt *p, Str text, Fault *fault) {
        const PeerHooks *peers = &p->context->peers;
        Refusal refusal;
        Pod pod;
        int r;

        if (str_is_empty(text))
                return fault_set(fault, ARGS_E_MALFORMED, "Pod is missing");
        r = pod_decode(text, p->context->arena, &pod, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "Pod") : r;
        r = pod_profile_decode(text, p->context->arena, &p->pod.profile, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, ARGS_E_MALFORMED, "Pod") : r;
        p->namespace_ = pod.meta.namespace_;
        p->name = pod.meta.name;
        p->pod.uid = pod.meta.uid;
        p->waits = peers->userdata && peers->waits(peers->userdata, p->pod.uid);
        r = request_from_pod(&pod, p->context->arena, &p->pod.request, &refusal);
        p->ours = r != REQUEST_E_NONE;
        p->final = r == REQUEST_E_REFUSED;
        if (r < 0)
                return r;
        return peers->userdata ? peers->plan(peers->userdata, p->context->arena, &p->plan) : 0;
}

static void take_member(JsonReader *r, Str *ret) {
        Str raw = {NULL, 0};
        bool null = json_peek(r) == JSON_NULL;

        json_raw(r, &raw);
        if (!null)
                *ret = raw;
}

/* Members of ExtenderPreemptionArgs as text; empty: absent or null. */
typedef struct PreemptArgs {
        Str pod, victims, meta;
} PreemptArgs;

static int read_args(Str body, PreemptArgs *ret, Fault *fault) {
        JsonReader r;
        Str key;
        int k;

        *ret = (PreemptArgs){0};
        json_init(&r, body);
        if (json_peek(&r) != JSON_OBJECT)
                json_fault(&r, "ExtenderPreemptionArgs must be an object");
        else if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        if (args_key_is(key, "Pod"))
                                take_member(&r, &ret->pod);
                        else if (args_key_is(key, "NodeNameToVictims"))
                                take_member(&r, &ret->victims);
                        else if (args_key_is(key, "NodeNameToMetaVictims"))
                                take_member(&r, &ret->meta);
                        else
                                json_skip(&r);
                }
        k = json_finish(&r, fault);
        return k > 0 ? ARGS_E_MALFORMED : k;
}

/* ---- the verb ---- */

static int answer_nodes(Preempt *p, Str body, Fault *fault) {
        PreemptArgs args;
        int k = read_args(body, &args, fault);

        if (k == 0)
                k = take_pod(p, args.pod, fault);
        if (k != 0)
                return k;
        json_write_object(&p->writer, NULL);
        json_write_object(&p->writer, "NodeNameToMetaVictims");
        if (!str_is_empty(args.meta) || !str_is_empty(args.victims))
                k = read_nodes(p, str_is_empty(args.meta) ? args.victims : args.meta, fault);
        if (k == 0 && p->ours && !p->waits && may_answer(p))
                k = consider_others(p);
        if (k != 0)
                return k;
        json_write_object_end(&p->writer);
        json_write_object_end(&p->writer);
        return 0;
}

/* Whether to put the preemption off until the gang's plan ends. A pod that asks for cards waits if
 * victims would then be cheaper. Any other pod waits if no node was answered and one was left out
 * for an unbound member. */
static bool is_to_wait(const Preempt *p) {
        return p->ours ? unsettled_is_cheaper(&p->later, p->any ? &p->best : NULL) : p->left_out && !p->any;
}

/* Whether the preemption waits for a gang; then notes the pod, so that the waker wakes it when the
 * plan ends. */
static bool waits_for_plan(const Preempt *p) {
        SchedulerContext *c = p->context;
        PendingPod *pod;

        if (!c->leading || !is_to_wait(p))
                return false;
        pod = pending_note(&c->pending, p->namespace_, p->name, p->pod.uid);
        if (!pod || (p->ours && !unsettled_may_wait(pod, c->now)))
                return false;
        pod->waits_for_plan = true;
        return true;
}

unsigned verb_preempt(SchedulerContext *c, Str body, Buf *out) {
        Preempt p = {.context = c, .pod = {.view = c->view, .steps = STEPS_OF_A_CALL}};
        Fault fault = FAULT_NULL;
        bool waits;
        int r;

        json_write_init(&p.writer, out);
        r = answer_nodes(&p, body, &fault);
        arena_done(&p.pod.scratch);
        waits = r == 0 && waits_for_plan(&p);
        if (waits) {
                buf_clear(out);
                buf_append_str(out, STR("{\"NodeNameToMetaVictims\":{}}"));
        }
        if (r == 0)
                r = buf_result(out);
        if (r == 0 && (p.any || waits) && c->leading)
                /* kube-scheduler evicts pods for it now or later, so the evictor need not. */
                pending_rest(&c->pending, p.pod.uid);
        return r == 0 ? 200 : verb_failed(r, &fault, out);
}
