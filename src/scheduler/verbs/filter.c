/* SPDX-License-Identifier: Apache-2.0 */

/* Decides which of the offered nodes could take the pod now. Nodes that fit are copied from the
 * request while it is read, neighbours together. The others are kept, and get their reasons at the
 * end, when the number of reasons is known (reason_tally.h).
 *
 * With --filter-best only the best nodes are answered, so that kube-scheduler scores no others.
 * Nodes that are left out are in neither list of failures. kube-scheduler calls extenders after its
 * own filters, for nodes that passed them (findNodesThatPassExtenders, schedule_one.go), so any
 * answered node can take the pod. Nodes without a status matter only when no node is left, because
 * an extender behind this one refused them. kube-scheduler then takes them for nodes that no
 * eviction helps, and names no reason for them in the Event (NewDefaultNodeToStatus,
 * framework/interface.go; FitError.Error, framework/types.go). The pod's next attempt gets all
 * nodes.
 *
 * If a chooser decides about the pod (candidates.h), the nodes are decided after the last one. */

#include <errno.h>
#include <stdlib.h>

#include "scheduler/question/args.h"
#include "scheduler/question/best.h"
#include "scheduler/question/candidates.h"
#include "scheduler/question/filter_result.h"
#include "scheduler/verbs/verbs.h"
#include "share/cluster_cards.h"
#include "share/placement.h"
#include "wire/json_write.h"
#include "wire/pod_preference.h"

/* A node that is refused; allocated in the request's arena. */
typedef struct Failure {
        struct Failure *next;
        Str raw, name; /* as in ArgsNode */
        unsigned reason;
        bool may_pass;
} Failure;

typedef struct Filter {
        SchedulerContext *context;
        bool by_name;
        bool ours;  /* the pod asks for our resources */
        bool final; /* no node can ever take it */
        HoldAsker asker;
        Request request;
        Refusal refusal; /* when final */
        Buf *out;
        FilterResult result;
        Failure *failures, **failures_end; /* in the order of the request */
        const Failure *last_failure;
        const Failure *nearest_failure; /* the one in `failures`, or NULL */
        bool no_memory;
        PlanNodes plan; /* of the gang that is being placed */
        Best best;      /* max 0: all nodes that fit are answered */
        /* text of neighbours in the request that fit and have not been written yet */
        const char *run, *run_end;
        bool any;                 /* a node was written */
        bool taken[CHOOSERS_MAX]; /* which choosers decide about the pod */
        void *states[CHOOSERS_MAX];
        size_t n_taken; /* number of these; if > 0, the nodes are collected */
        Candidate *candidates, **candidates_end;
} Filter;

/* Decides how many nodes to answer. All of them if the pod prefers some nodes: kube-scheduler's
 * scores are to decide, as far as the extender's weight lets them. All of them, too, after a failed
 * attempt: something behind this filter may have refused the best (another extender, a volume, a
 * Binding). The pod's condition says so to every replica. */
static int choose_number(Filter *f, const ExtenderArgs *args) {
        SchedulerContext *c = f->context;
        PodPreference p = {0};
        int r;

        if (c->filter_best == 0 || !f->ours || f->final)
                return 0;
        r = pod_preference_decode(args->pod_text, c->arena, &p, NULL);
        if (r < 0)
                return r;
        if (r > 0 || p.prefers || p.failed)
                return 0;
        f->best.nodes = arena_new(c->arena, BestNode, c->filter_best);
        if (!f->best.nodes)
                return -ENOMEM;
        f->best.max = c->filter_best;
        return 0;
}

static int ask_choosers(Filter *f, const ExtenderArgs *args) {
        SchedulerContext *c = f->context;
        CandidatesPod pod = {.args = args,
                             .request = f->result.request,
                             .priority = f->asker.priority,
                             .now = c->now,
                             .arena = c->arena};

        for (size_t i = 0; i < c->n_choosers; i++) {
                int r = c->choosers[i].takes(c->choosers[i].userdata, &pod, &f->states[i]);

                if (r < 0)
                        return r;
                f->taken[i] = r > 0;
                f->n_taken += r > 0;
        }
        return 0;
}

static int on_pod(void *userdata, const ExtenderArgs *args) {
        Filter *f = userdata;
        int r;

        f->by_name = args->by_name;
        f->result.uid = args->pod.meta.uid;
        f->result.namespace_ = args->pod.meta.namespace_;
        f->result.name = args->pod.meta.name;
        f->asker = (HoldAsker){.uid = f->result.uid,
                               .priority = view_pod_priority(f->context->view, f->result.uid)};
        r = request_from_pod(&args->pod, f->context->arena, &f->request, &f->refusal);
        if (r < 0)
                return r;
        f->ours = r != REQUEST_E_NONE;
        f->final = r == REQUEST_E_REFUSED;
        f->result.request = r == 0 ? &f->request : NULL;
        if (f->final)
                f->refusal.unit_mib = cluster_cards_of(f->context->view->ledger, NULL).unit_mib;
        buf_append_str(f->out, args->by_name ? STR("{\"Nodes\":null,\"NodeNames\":[")
                                             : STR("{\"NodeNames\":null,\"Nodes\":{\"items\":["));
        r = ask_choosers(f, args);
        if (r == 0 && f->context->peers.userdata)
                r = f->context->peers.plan(f->context->peers.userdata, f->context->arena, &f->plan);
        if (r < 0)
                return r;
        return !f->ours && f->n_taken == 0 && args->by_name ? ARGS_ALL : choose_number(f, args);
}

static void flush_run(Filter *f) {
        if (!f->run)
                return;
        if (f->any)
                buf_append_char(f->out, ',');
        buf_append(f->out, f->run, (size_t) (f->run_end - f->run));
        f->any = true;
        f->run = NULL;
}

static void accept_text(Filter *f, Str raw) {
        if (!f->run || raw.data != f->run_end + 1 || *f->run_end != ',') {
                flush_run(f);
                f->run = raw.data;
        }
        f->run_end = raw.data + raw.len;
}

static void on_all(void *userdata, Str names) {
        accept_text(userdata, names);
}

static void offer_node(Filter *f, const ArgsNode *c) {
        f->result.fits = true;
        if (f->best.max == 0)
                accept_text(f, c->raw);
        else
                best_offer(&f->best, &(BestNode){.rank = placement_rank(c->node->ledger_node, &f->request),
                                                 .name = c->name,
                                                 .raw = c->raw});
}

static int by_position(const void *a, const void *b) {
        const char *p = ((const BestNode *) a)->raw.data, *q = ((const BestNode *) b)->raw.data;

        return (p > q) - (p < q);
}

/* Writes the best nodes in the order of the request. */
static void accept_best(Filter *f) {
        if (f->best.n > 0)
                qsort(f->best.nodes, f->best.n, sizeof *f->best.nodes, by_position);
        for (size_t i = 0; i < f->best.n; i++)
                accept_text(f, f->best.nodes[i].raw);
}

static void refuse_node(Filter *f, const ArgsNode *c, const Refusal *refusal) {
        Failure *failure = arena_new(f->context->arena, Failure, 1);

        f->context->metrics->refusals[refusal->code]++;
        if (!failure) {
                f->no_memory = true;
                return;
        }
        *failure = (Failure){.raw = c->raw,
                             .name = c->name,
                             .reason = reason_tally_count(&f->result.reasons, refusal),
                             .may_pass = refusal_may_pass(refusal->code)};
        f->last_failure = failure;
        *f->failures_end = failure;
        f->failures_end = &failure->next;
}

/* The grant of cards that a chooser keeps for the pod on the node, or NULL. */
static const Grant *place_on(const Filter *f, const LedgerNode *node) {
        SchedulerContext *c = f->context;

        for (size_t i = 0; i < c->n_choosers && f->n_taken > 0; i++)
                if (f->taken[i] && c->choosers[i].place_on)
                        return c->choosers[i].place_on(c->choosers[i].userdata, f->states[i], node,
                                                       f->n_taken > 1);
        return NULL;
}

/* placement_check() as this pod sees the node: cards that are held or planned for it count as free.
 * Also -ENOMEM. */
static int check_room(const Filter *f, const LedgerNode *node, Refusal *ret) {
        SchedulerContext *c = f->context;
        const Grant *place = place_on(f, node);

        if (place)
                return placement_check_without(node, &f->request, &place, 1, ret);
        return hold_check(&c->view->hold, &f->asker, node, &f->request, ret);
}

/* Judges the node by its cards alone. */
static void judge_node(Filter *f, const ArgsNode *c, Refusal *ret) {
        int r = 1;

        ret->code = REFUSAL_NONE;
        if (!f->ours)
                return;
        if (f->final)
                *ret = f->refusal;
        else if (!c->node)
                *ret = (Refusal){.code = REFUSAL_NODE_UNKNOWN};
        else
                r = check_room(f, c->node->ledger_node, ret);
        f->no_memory |= r < 0;
}

/* Updates the nearest node. For a pod that no node can ever take there is none. */
static void note_nearest(Filter *f, const ArgsNode *c, const Refusal *refusal) {
        if (f->result.fits || !f->result.request || f->no_memory)
                return;
        if (nearest_add(&f->result.nearest, c->name, c->node ? c->node->ledger_node : NULL, &f->request,
                        refusal))
                f->nearest_failure = f->last_failure;
}

static void settle_node(Filter *f, const ArgsNode *c, const Refusal *refusal) {
        FilterResult *result = &f->result;

        if (refusal->code != REFUSAL_NONE) {
                refuse_node(f, c, refusal);
                note_nearest(f, c, refusal);
                if (!refusal_is_for_cards(refusal->code))
                        return;
                result->lost_to_plan |= plan_nodes_find(&f->plan, c->node->ledger_node) != NULL;
                if (result->n_for_cards < FILTER_RESULT_NODES_MAX)
                        result->for_cards[result->n_for_cards++] = c->name;
        } else if (f->ours)
                offer_node(f, c);
        else
                accept_text(f, c->raw);
}

static void collect_node(Filter *f, const ArgsNode *c, const Refusal *refusal) {
        Candidate *candidate = arena_new(f->context->arena, Candidate, 1);

        if (!candidate) {
                f->no_memory = true;
                return;
        }
        *candidate = (Candidate){.is = *c, .refusal = *refusal};
        *f->candidates_end = candidate;
        f->candidates_end = &candidate->next;
}

static void on_node(void *userdata, const ArgsNode *c) {
        Filter *f = userdata;
        Refusal refusal;

        judge_node(f, c, &refusal);
        if (f->n_taken > 0)
                collect_node(f, c, &refusal);
        else
                settle_node(f, c, &refusal);
}

static int choose_nodes(Filter *f) {
        SchedulerContext *c = f->context;

        for (size_t i = 0; i < c->n_choosers && !f->no_memory; i++) {
                int r = f->taken[i]
                                ? c->choosers[i].choose(c->choosers[i].userdata, f->states[i], f->candidates)
                                : 0;

                if (r < 0)
                        return r;
        }
        for (const Candidate *n = f->candidates; n; n = n->next)
                settle_node(f, &n->is, &n->refusal);
        return 0;
}

static void write_failure(const Filter *f, const Failure *n, bool *any) {
        if (*any)
                buf_append_char(f->out, ',');
        *any = true;
        if (f->by_name)
                buf_append_str(f->out, n->raw);
        else
                json_write_quoted(f->out, n->name);
        buf_append_char(f->out, ':');
        json_write_quoted(f->out, n == f->nearest_failure ? refusal_reason_str(&f->result.nearest.reason)
                                                          : reason_tally_text(&f->result.reasons, n->reason));
}

/* Writes the refused nodes with their reasons as members of an object: the nearest node first, the
 * others in the order of the request. unresolvable: without those that evictions may help. */
static void write_failures(const Filter *f, bool unresolvable) {
        bool any = false;

        if (f->nearest_failure && !(unresolvable && f->nearest_failure->may_pass))
                write_failure(f, f->nearest_failure, &any);
        for (const Failure *n = f->failures; n; n = n->next)
                if (n != f->nearest_failure && !(unresolvable && n->may_pass))
                        write_failure(f, n, &any);
}

/* Writes the end of the answer. kube-scheduler 1.22 and later tries no evictions on nodes in
 * FailedAndUnresolvableNodes. Older versions know FailedNodes alone, so every refused node is in
 * that, too; if both name a node, the former counts. */
static int finish_answer(Filter *f) {
        if (f->no_memory)
                return -ENOMEM;
        accept_best(f);
        flush_run(f);
        reason_tally_fold(&f->result.reasons, refusal_reason_str(&f->result.nearest.reason));
        buf_append_str(f->out, f->by_name ? STR("],\"FailedNodes\":{") : STR("]},\"FailedNodes\":{"));
        write_failures(f, false);
        buf_append_str(f->out, STR("},\"FailedAndUnresolvableNodes\":{"));
        write_failures(f, true);
        buf_append_str(f->out, STR("},\"Error\":\"\"}"));
        return buf_result(f->out);
}

static void tell_result(SchedulerContext *c, const FilterResult *result) {
        PendingPod *pod = c->leading ? pending_filtered(&c->pending, c->view, result, c->now) : NULL;

        if (pod && c->recorder)
                pending_tell(&c->pending, pod, c->recorder, c->view, result, c->now);
}

unsigned verb_filter(SchedulerContext *c, Str body, Buf *out) {
        Filter f = {.context = c, .out = out};
        ArgsVisitor visitor = {.pod = on_pod, .node = on_node, .all = on_all, .userdata = &f};
        Fault fault = FAULT_NULL;
        int r;

        f.failures_end = &f.failures;
        f.candidates_end = &f.candidates;
        r = args_read(body, c->view->directory, c->arena, &visitor, &fault);
        if (r == 0 && f.n_taken > 0)
                r = choose_nodes(&f);
        if (r == 0)
                r = finish_answer(&f);
        if (r != 0)
                return verb_failed(r, &fault, out);
        tell_result(c, &f.result);
        return 200;
}

unsigned verb_failed(int r, const Fault *fault, Buf *out) {
        buf_clear(out);
        if (r < 0) {
                buf_append_str(out, STR("out of memory\n"));
                return 503;
        }
        buf_append_str(out, str_from(fault->text));
        buf_append_char(out, '\n');
        return 400;
}
