/* SPDX-License-Identifier: Apache-2.0 */

/* Ranks the nodes. kube-scheduler takes scores from 0 to 10 (MaxExtenderPriority), multiplies them
 * by the weight of this extender, and adds the scores of its own plugins. It takes the highest sum,
 * and any node among equals.
 *
 * Ten steps cannot carry the order of thousands of nodes, and need not, because one pod goes to one
 * node. The ten best nodes get 10 to 1, in their order, and all others 0. */

#include "scheduler/args.h"
#include "scheduler/verbs.h"
#include "share/placement.h"
#include "wire/json_write.h"

enum {
        MAX_SCORE = 10,
        KEPT = 32, /* more than ten: some may be full of pods on their way */
};

typedef struct Ranked {
        uint64_t rank; /* smaller is better; ties by name, so that every replica answers the same */
        Str name;
        size_t at; /* offset of the score's digit in the answer */
        const LedgerNode *node;
} Ranked;

typedef struct Prioritize {
        const VerbContext *context;
        bool by_name;
        bool fits_somewhere; /* the pod is ours and its request is sound */
        Request request;
        Str uid;
        Ranked best[KEPT]; /* in order */
        size_t n_best;
        Buf *out;
        Buf quoted;
} Prioritize;

static int on_pod(void *userdata, const ExtenderArgs *args) {
        Prioritize *p = userdata;
        Refusal refusal;
        int r;

        p->by_name = args->by_name;
        p->uid = args->pod.meta.uid;
        r = request_from_pod(&args->pod, p->context->arena, &p->request, &refusal);
        p->fits_somewhere = r == 0;
        buf_append_char(p->out, '[');
        return r < 0 ? r : 0;
}

/* `{"Host":"n1","Score":0}`: written with one check for room, because there are thousands. Returns
 * where the digit stands. */
static size_t put_host(Buf *out, Str quoted) {
        static const Str host = STR(",{\"Host\":"), score = STR(",\"Score\":0}");
        bool first = out->len == 1;
        char *p;

        if (!buf_reserve(out, host.len + quoted.len + score.len))
                return 0;
        p = out->data + out->len;
        p = mempcpy(p, host.data + first, host.len - first);
        p = mempcpy(p, quoted.data, quoted.len);
        p = mempcpy(p, score.data, score.len);
        *p = '\0';
        out->len = (size_t) (p - out->data);
        return out->len - 2;
}

static bool is_better(const Ranked *a, const Ranked *b) {
        return a->rank != b->rank ? a->rank < b->rank : str_compare(a->name, b->name) < 0;
}

static void keep_if_best(Prioritize *p, const Ranked *new) {
        size_t i = p->n_best;

        if (i == KEPT && !is_better(new, &p->best[--i]))
                return;
        for (; i > 0 && is_better(new, &p->best[i - 1]); i--)
                p->best[i] = p->best[i - 1];
        p->best[i] = *new;
        if (p->n_best < KEPT)
                p->n_best++;
}

static void on_node(void *userdata, const ArgsNode *c) {
        Prioritize *p = userdata;
        Str quoted = c->raw;
        Refusal refusal;
        size_t at;

        if (!p->by_name) {
                buf_clear(&p->quoted);
                json_write_quoted(&p->quoted, c->name);
                quoted = buf_str(&p->quoted);
        }
        at = put_host(p->out, quoted);
        if (!p->fits_somewhere || !c->node)
                return;
        /* Another pod may have taken the room since the filter: such a node gets no points. */
        if (placement_check(c->node->ledger_node, &p->request, &refusal) == 0)
                keep_if_best(p, &(Ranked){placement_rank(c->node->ledger_node, &p->request), c->name, at,
                                          c->node->ledger_node});
}

/* Nodes that pods on their way would fill go behind the other nodes; each group keeps its order.
 * Notes that this pod is on its way to the first. */
static void mind_promises(Prioritize *p) {
        const VerbContext *c = p->context;
        Ranked sorted[KEPT];
        size_t n = 0;
        bool room[KEPT];

        promises_drop_bound(c->promises, c->view);
        for (size_t i = 0; i < p->n_best; i++)
                room[i] = promises_leave_room(c->promises, p->best[i].node, &p->request, p->uid, c->now);
        for (int want = 1; want >= 0; want--)
                for (size_t i = 0; i < p->n_best; i++)
                        if (room[i] == want)
                                sorted[n++] = p->best[i];
        memcpy(p->best, sorted, n * sizeof *sorted);
        if (n > 0)
                promises_make(c->promises, p->uid, ledger_node_name(sorted[0].node), &p->request, c->now);
        p->n_best = n < MAX_SCORE ? n : MAX_SCORE;
}

/* Writes the scores over the zeros. Only the best has two digits, and moves the text behind it. */
static int finish(Prioritize *p) {
        Buf *out = p->out;

        buf_append_char(out, ']');
        out->broken |= p->quoted.broken;
        if (!buf_reserve(out, 1))
                return buf_result(out);
        for (size_t i = 1; i < p->n_best; i++)
                out->data[p->best[i].at] = (char) ('0' + MAX_SCORE - i);
        if (p->n_best > 0) {
                char *digit = out->data + p->best[0].at;

                memmove(digit + 1, digit, out->len + 1 - p->best[0].at);
                digit[0] = '1';
                out->len++;
        }
        return 0;
}

unsigned verb_prioritize(const VerbContext *c, Str body, Buf *out) {
        Prioritize p = {.context = c, .out = out};
        ArgsVisitor visitor = {.pod = on_pod, .node = on_node, .userdata = &p};
        Fault fault = FAULT_NULL;
        int r;

        r = args_read(body, c->view->directory, c->arena, &visitor, &fault);
        if (r == 0) {
                mind_promises(&p);
                r = finish(&p);
        }
        buf_done(&p.quoted);
        return r == 0 ? 200 : verb_failed(r, &fault, out);
}
