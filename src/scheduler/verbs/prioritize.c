/* SPDX-License-Identifier: Apache-2.0 */

/* Ranks the nodes. kube-scheduler takes scores from 0 to 10 (MaxExtenderPriority), multiplies them
 * by the weight of this extender, and adds the scores of its own plugins. The highest sum wins;
 * among equals any node does.
 *
 * Ten steps cannot express the order of thousands of nodes, and need not, because one pod goes to
 * one node. The ten best nodes get 10 to 1, in their order, and all others 0. Those are left out of
 * the answer: kube-scheduler adds the scores by name, and a node without one keeps its sum
 * (prioritizeNodes, generic_scheduler.go in v1.22, schedule_one.go in v1.36).
 *
 * A pod that asks for nothing gets no scores. With --spare-idle-cards nodes without an idle card
 * get 1, so that pods without cards do not take cpu and memory that whole cards need. Within each
 * of the two classes kube-scheduler's own scores decide. */

#include "scheduler/question/args.h"
#include "scheduler/question/best.h"
#include "scheduler/verbs/verbs.h"
#include "share/placement.h"
#include "wire/json_write.h"

enum { MAX_SCORE = 10 };

typedef struct Prioritize {
        SchedulerContext *context;
        bool by_name;
        bool fits_somewhere; /* the pod asks for cards, and its request is valid */
        Request request;
        Str uid;
        BestNode kept[BEST_KEPT];
        Best best;
        Buf *out;
        bool spares; /* prefer nodes without an idle card */
        bool any_idle;
} Prioritize;

static int on_pod(void *userdata, const ExtenderArgs *args) {
        Prioritize *p = userdata;
        Refusal refusal;
        int r;

        p->by_name = args->by_name;
        p->uid = args->pod.meta.uid;
        r = request_from_pod(&args->pod, p->context->arena, &p->request, &refusal);
        p->fits_somewhere = r == 0;
        p->spares = r == REQUEST_E_NONE && p->context->spare_idle_cards;
        buf_append_char(p->out, '[');
        if (r == REQUEST_E_NONE && !p->spares && args->by_name)
                return ARGS_ALL;
        return r < 0 ? r : 0;
}

static void on_all(void *userdata, Str names) {
}

static void put_host(Prioritize *p, Str raw, Str name) {
        buf_append_str(p->out, p->out->len > 1 ? STR(",{\"Host\":") : STR("{\"Host\":"));
        if (p->by_name)
                buf_append_str(p->out, raw);
        else
                json_write_quoted(p->out, name);
}

static void spare(Prioritize *p, const ArgsNode *c) {
        if (c->node && ledger_node_has_idle_card(c->node->ledger_node)) {
                p->any_idle = true;
                return;
        }
        put_host(p, c->raw, c->name);
        buf_append_str(p->out, STR(",\"Score\":1}"));
}

static void on_node(void *userdata, const ArgsNode *c) {
        Prioritize *p = userdata;
        Refusal refusal;

        if (p->spares)
                spare(p, c);
        if (!p->fits_somewhere || !c->node)
                return;
        /* Another pod may have taken the room since filter: then the node gets no score. */
        if (placement_check(c->node->ledger_node, &p->request, &refusal) == 0)
                best_offer(&p->best, &(BestNode){.rank = placement_rank(c->node->ledger_node, &p->request),
                                                 .name = c->name,
                                                 .node = c->node->ledger_node,
                                                 .raw = c->raw});
}

/* Moves nodes that pods on their way would fill behind the others; each group keeps its order. Then
 * promises the pod to the first node. */
static void mind_promises(Prioritize *p) {
        SchedulerContext *c = p->context;
        BestNode sorted[BEST_KEPT];
        size_t n = 0;
        bool room[BEST_KEPT];

        best_sort(&p->best);
        promises_drop_bound(&c->promises, c->view);
        for (size_t i = 0; i < p->best.n; i++)
                room[i] = promises_leave_room(&c->promises, p->kept[i].node, &p->request, p->uid, c->now);
        for (int want = 1; want >= 0; want--)
                for (size_t i = 0; i < p->best.n; i++)
                        if (room[i] == want)
                                sorted[n++] = p->kept[i];
        memcpy(p->kept, sorted, n * sizeof *sorted);
        if (n > 0)
                promises_make(&c->promises, p->uid, ledger_node_name(sorted[0].node), &p->request, c->now);
        p->best.n = n < MAX_SCORE ? n : MAX_SCORE;
}

static int finish(Prioritize *p) {
        /* If no node has an idle card, all would get the same score, so none gets one. */
        if (p->spares && !p->any_idle) {
                buf_clear(p->out);
                buf_append_char(p->out, '[');
        }
        for (size_t i = 0; i < p->best.n; i++) {
                put_host(p, p->kept[i].raw, p->kept[i].name);
                buf_appendf(p->out, ",\"Score\":%zu}", MAX_SCORE - i);
        }
        buf_append_char(p->out, ']');
        return buf_result(p->out);
}

unsigned verb_prioritize(SchedulerContext *c, Str body, Buf *out) {
        Prioritize p = {.context = c, .out = out};
        ArgsVisitor visitor = {.pod = on_pod, .node = on_node, .all = on_all, .userdata = &p};
        Fault fault = FAULT_NULL;
        int r;

        p.best = (Best){.nodes = p.kept, .max = BEST_KEPT};
        r = args_read(body, c->view->directory, c->arena, &visitor, &fault);
        if (r == 0) {
                mind_promises(&p);
                r = finish(&p);
        }
        return r == 0 ? 200 : verb_failed(r, &fault, out);
}
