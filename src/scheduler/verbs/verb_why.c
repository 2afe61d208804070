/* SPDX-License-Identifier: Apache-2.0 */

/* GET /why/UID: for each node, nearest first, what keeps a pending pod off its cards. Nodes are
 * judged by their cards alone; kube-scheduler's own rules (taints, cpu) are not part of it. */

#include <errno.h>

#include "scheduler/question/reason_tally.h"
#include "scheduler/verbs/verbs.h"
#include "share/card_lack.h"
#include "share/refusal_format.h"

/* Nodes that are shown with their cards. Further ones are only counted by their reasons, to keep
 * the answer short in a large cluster. */
enum { NODES_SHOWN = 20 };

typedef struct Judged {
        const LedgerNode *node;
        bool fits;
        Refusal refusal;
        uint64_t distance; /* card_lack_node_distance(); 0: it fits */
} Judged;

typedef struct Why {
        SchedulerContext *context;
        const Request *request;
        HoldAsker asker;
        Judged *nodes;
        size_t n, n_fit;
        Buf *out;
} Why;

/* Whether the cards' amounts explain the answer of the node. */
static bool is_about_cards(const Judged *j) {
        return j->fits || refusal_has_cards(j->refusal.code);
}

static int compare_judged(const void *a, const void *b) {
        const Judged *x = a, *y = b;

        if (x->distance != y->distance)
                return x->distance < y->distance ? -1 : 1;
        return str_compare(ledger_node_name(x->node), ledger_node_name(y->node));
}

/* Judges the nodes and sorts them by distance. Nodes without cards and without a GPU label are left
 * out. Returns 0 or -ENOMEM. */
static int judge_all(Why *w) {
        const View *v = w->context->view;
        size_t n = directory_size(v->directory);

        w->nodes = arena_new(w->context->arena, Judged, n + 1);
        if (!w->nodes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                Judged j = {.node = directory_at(v->directory, i)->ledger_node};
                int r;

                if (ledger_node_n_cards(j.node) == 0 && ledger_node_mode(j.node) == SHARE_MODE_NONE)
                        continue;
                r = hold_check(&v->hold, &w->asker, j.node, w->request, &j.refusal);
                if (r < 0)
                        return r;
                j.fits = r == 0;
                w->n_fit += j.fits;
                j.distance = j.fits ? 0 : card_lack_node_distance(j.node, w->request, &j.refusal);
                w->nodes[w->n++] = j;
        }
        qsort(w->nodes, w->n, sizeof *w->nodes, compare_judged);
        return 0;
}

static void write_cards(const Why *w, const LedgerNode *node) {
        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                const LedgerCard *c = &ledger_node_cards(node)[i];
                CardLack lack = card_lack_of(node, c, w->request);

                buf_appendf(w->out, "  gpu%u  ", c->index);
                card_lack_format_free(node, c, w->request, w->out);
                buf_appendf(w->out, ", %u pod%s", c->pods, c->pods == 1 ? "" : "s");
                if (!card_lack_is_none(&lack)) {
                        buf_append_str(w->out, STR("  "));
                        card_lack_format(&lack, node, c, w->out);
                }
                buf_append_char(w->out, '\n');
        }
}

static void write_node(const Why *w, const Judged *j) {
        RefusalReason reason;

        buf_appendf(w->out, "\n" STR_FMT ": ", STR_ARG(ledger_node_name(j->node)));
        if (j->fits)
                buf_append_str(w->out, STR("fits"));
        else if (is_about_cards(j)) {
                refusal_reason(&j->refusal, &reason);
                buf_append_str(w->out, refusal_reason_str(&reason));
        } else
                refusal_format(&j->refusal, w->out);
        buf_append_char(w->out, '\n');
        if (is_about_cards(j))
                write_cards(w, j->node);
}

static void write_rest(const Why *w) {
        ReasonTally tally = {0};
        size_t fit = 0;

        if (w->n <= NODES_SHOWN)
                return;
        for (size_t i = NODES_SHOWN; i < w->n; i++)
                if (w->nodes[i].fits)
                        fit++;
                else
                        (void) reason_tally_count(&tally, &w->nodes[i].refusal);
        buf_appendf(w->out, "\nand %zu more nodes:\n", w->n - NODES_SHOWN);
        if (fit > 0)
                buf_appendf(w->out, "  %zu fit\n", fit);
        for (unsigned i = 0; i < tally.n; i++) {
                Str text = reason_tally_text(&tally, i);

                buf_appendf(w->out, "  %u " STR_FMT "\n", tally.items[i].nodes, STR_ARG(text));
        }
}

static void write_head(const Why *w) {
        const Request *r = w->request;

        if (r->whole)
                buf_appendf(w->out, "asks for %u whole card%s", r->cards, r->cards == 1 ? "" : "s");
        else
                buf_appendf(w->out, "asks for %u of gpu-mem", r->mem);
        if (r->core > 0)
                buf_appendf(w->out, " and %u percent of compute", r->core);
        if (!r->whole && r->cards > 1)
                buf_appendf(w->out, " on each of %u cards", r->cards);
        else if (!r->whole)
                buf_append_str(w->out, STR(" on one card"));
        buf_appendf(w->out, "; %zu of %zu GPU nodes can take it now, by their cards\n", w->n_fit, w->n);
}

unsigned verb_why(SchedulerContext *c, Str uid, Buf *out) {
        const ViewPod *pod = view_pod_find(c->view, uid);
        Why w = {
                .context = c, .asker = {.uid = uid, .priority = view_pod_priority(c->view, uid)}, .out = out};

        if (!pod || !pod->request) {
                buf_appendf(out, "no pending pod with a share has the UID \"%.*s\"\n", STR_CUT(uid, 64));
                return 404;
        }
        w.request = pod->request;
        if (judge_all(&w) < 0)
                return verb_failed(-1, NULL, out);
        write_head(&w);
        for (size_t i = 0; i < w.n && i < NODES_SHOWN; i++)
                write_node(&w, &w.nodes[i]);
        write_rest(&w);
        return buf_result(out) == 0 ? 200 : verb_failed(-1, NULL, out);
}
