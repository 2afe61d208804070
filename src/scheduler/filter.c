/* SPDX-License-Identifier: Apache-2.0 */

/* Decides which of these nodes could take the pod now. The answer is written while the request is
 * read: nodes that fit are copied from its text, neighbours together, and each other node gets its
 * sentence. */

#include "scheduler/args.h"
#include "scheduler/verbs.h"
#include "share/placement.h"
#include "share/refusal_format.h"
#include "wire/json_write.h"

typedef struct Filter {
        const VerbContext *context;
        bool by_name;
        bool ours;  /* the pod asks for our resources */
        bool final; /* no node can ever take it */
        Pod pod;
        HoldAsker asker;
        Request request;
        Refusal refusal;          /* when final */
        Buf *out;                 /* nodes that fit */
        Buf failed, unresolvable; /* members of FailedNodes and of FailedAndUnresolvableNodes */
        Buf sentence, quoted;
        /* Names of nodes refused for their cards alone, each with a newline. */
        Buf for_cards;
        const char *run, *run_end; /* neighbours in the request that fit and are not written yet */
        bool any;
} Filter;

static int on_pod(void *userdata, const ExtenderArgs *args) {
        Filter *f = userdata;
        int r;

        f->by_name = args->by_name;
        f->pod = args->pod;
        f->asker = (HoldAsker){.uid = f->pod.meta.uid,
                               .priority = view_pod_priority(f->context->view, f->pod.meta.uid)};
        r = request_from_pod(&args->pod, f->context->arena, &f->request, &f->refusal);
        if (r < 0)
                return r;
        f->ours = r != REQUEST_E_NONE;
        f->final = r == REQUEST_E_REFUSED;
        if (f->final)
                refusal_format(&f->refusal, &f->sentence);
        buf_append_str(f->out, args->by_name ? STR("{\"Nodes\":null,\"NodeNames\":[")
                                             : STR("{\"NodeNames\":null,\"Nodes\":{\"items\":["));
        return 0;
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

static void accept(Filter *f, Str raw) {
        if (!f->run || raw.data != f->run_end + 1 || *f->run_end != ',') {
                flush_run(f);
                f->run = raw.data;
        }
        f->run_end = raw.data + raw.len;
}

static void append_failure(Buf *members, Str quoted_name, Str quoted_sentence) {
        if (members->len > 0)
                buf_append_char(members, ',');
        buf_append_str(members, quoted_name);
        buf_append_char(members, ':');
        buf_append_str(members, quoted_sentence);
}

static void refuse(Filter *f, const ArgsNode *c, const Refusal *refusal) {
        _cleanup_buf_ Buf name = BUF_NULL;
        Str quoted_name = c->raw;

        f->context->metrics->refusals[refusal->code]++;
        if (!f->by_name) {
                json_write_quoted(&name, c->name);
                quoted_name = buf_str(&name);
        }
        if (!f->final) {
                buf_clear(&f->sentence);
                refusal_format(refusal, &f->sentence);
        }
        if (!f->final || f->quoted.len == 0) {
                buf_clear(&f->quoted);
                json_write_quoted(&f->quoted, buf_str(&f->sentence));
        }
        append_failure(&f->failed, quoted_name, buf_str(&f->quoted));
        /* kube-scheduler 1.22 and later does not try evictions on nodes that
         * FailedAndUnresolvableNodes names. Older versions know FailedNodes alone, so every refused
         * node stands there too; where both name a node, the former counts. */
        if (!refusal_may_pass(refusal->code))
                append_failure(&f->unresolvable, quoted_name, buf_str(&f->quoted));
}

static void on_node(void *userdata, const ArgsNode *c) {
        Filter *f = userdata;
        Refusal refusal;

        if (!f->ours)
                accept(f, c->raw);
        else if (f->final)
                refuse(f, c, &f->refusal);
        else if (!c->node)
                refuse(f, c, &(Refusal){.code = REFUSAL_NODE_UNKNOWN});
        else if (hold_check(&f->context->view->hold, &f->asker, c->node->ledger_node, &f->request,
                            &refusal) == 0)
                accept(f, c->raw);
        else {
                refuse(f, c, &refusal);
                if (f->context->waiters && refusal_is_for_cards(refusal.code))
                        buf_appendf(&f->for_cards, STR_FMT "\n", STR_ARG(c->name));
        }
}

/* The evictor may help a pod that no node takes, and that some nodes refuse for their cards alone.
 * Its priority, and whether it may preempt, come from the watch: any client can send a request with
 * this body. */
static void note_waiter(const Filter *f) {
        const VerbContext *c = f->context;
        const ViewPod *known = view_pod_find(c->view, f->pod.meta.uid);
        WaiterNews news = {.namespace_ = f->pod.meta.namespace_,
                           .name = f->pod.meta.name,
                           .uid = f->pod.meta.uid,
                           .priority = f->asker.priority,
                           .nodes = buf_str(&f->for_cards)};

        if (!c->waiters || !f->ours)
                return;
        if (f->any || f->for_cards.len == 0 || f->for_cards.broken || f->asker.priority == INT64_MIN ||
            known->never_preempts)
                waiters_rest(c->waiters, f->pod.meta.uid);
        else
                waiters_note(c->waiters, &news, c->now);
}

static int finish(Filter *f) {
        flush_run(f);
        buf_append_str(f->out, f->by_name ? STR("],\"FailedNodes\":{") : STR("]},\"FailedNodes\":{"));
        buf_append_str(f->out, buf_str(&f->failed));
        buf_append_str(f->out, STR("},\"FailedAndUnresolvableNodes\":{"));
        buf_append_str(f->out, buf_str(&f->unresolvable));
        buf_append_str(f->out, STR("},\"Error\":\"\"}"));
        f->out->broken |=
                f->failed.broken || f->unresolvable.broken || f->sentence.broken || f->quoted.broken;
        return buf_result(f->out);
}

unsigned verb_filter(const VerbContext *c, Str body, Buf *out) {
        Filter f = {.context = c, .out = out};
        ArgsVisitor visitor = {.pod = on_pod, .node = on_node, .userdata = &f};
        Fault fault = FAULT_NULL;
        int r;

        r = args_read(body, c->view->directory, c->arena, &visitor, &fault);
        if (r == 0)
                r = finish(&f);
        if (r == 0)
                note_waiter(&f);
        buf_done(&f.for_cards);
        buf_done(&f.failed);
        buf_done(&f.unresolvable);
        buf_done(&f.sentence);
        buf_done(&f.quoted);
        return r == 0 ? 200 : verb_failed(r, &fault, out);
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
