/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bind/bind_cards.h"

#include <assert.h>
#include <errno.h>

#include "scheduler/bind/bind_post.h"
#include "scheduler/bind/binds-internal.h"
#include "share/placement.h"
#include "share/pod_grant_write.h"
#include "share/refusal_format.h"
#include "share/refusal_reason.h"

enum { DNS_NAME_MAX = 253 }; /* longest name of a node (apimachinery, DNS1123SubdomainMaxLength) */

/* The Event and the log name the cards of the node; the answer has the reason as filter words
 * it. */
void bind_cards_refuse(Bind *bind, const Refusal *refusal, const char *before) {
        _cleanup_buf_ Buf text = BUF_NULL, answer = BUF_NULL;
        RefusalReason reason;

        bind->binder->context->metrics->refusals[refusal->code]++;
        buf_append_str(&text, str_from(before));
        buf_append_str(&answer, str_from(before));
        refusal_format(refusal, &text);
        refusal_reason(refusal, &reason);
        buf_append_str(&answer, refusal_reason_str(&reason));
        if (buf_result(&text) < 0 || buf_result(&answer) < 0)
                bind_fail(bind, METRICS_BIND_REFUSED, "out of memory");
        else
                bind_fail_as(bind, METRICS_BIND_REFUSED, text.data, answer.data);
}

static void bind_refuse_on_node(Bind *bind, const Refusal *refusal) {
        char before[sizeof "node : " + DNS_NAME_MAX];

        (void) snprintf(before, sizeof before, "node %.*s: ", STR_CUT(bind->node, DNS_NAME_MAX));
        bind_cards_refuse(bind, refusal, before);
}

/* `3 GiB and 30 percent of gpu0 on gpu-worker-01`; with several cards `8 GiB of each of gpu0, gpu1
 * on gpu-worker-01`. Slices stand by card. */
static void bind_note_place(Bind *bind, const Request *request, const Placement *p, const LedgerNode *node) {
        Buf *out = &bind->placed;

        buf_clear(out);
        memory_unit_format_amount(request->mem, ledger_node_unit(node), out);
        if (request->core > 0)
                buf_appendf(out, " and %u percent", request->core);
        buf_append_str(out, request->cards > 1 ? STR(" of each of ") : STR(" of "));
        for (size_t i = 0; i < p->n_slices; i++)
                if (i == 0 || p->slices[i].card != p->slices[i - 1].card)
                        buf_appendf(out, "%sgpu%u", i > 0 ? ", " : "", p->slices[i].card);
        buf_appendf(out, " on " STR_FMT, STR_ARG(bind->node));
}

static int bind_reserve(Bind *bind, const Request *request, const Placement *p) {
        GrantSpec spec = {
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .node = bind->node,
                .slices = p->slices,
                .n_slices = p->n_slices,
                .has_core = request->core > 0,
                .whole = request->whole,
                .app = request->app,
                .cpu = request->cpu,
        };
        int r;

        assert(!bind->pod->grant); /* an earlier grant would leak */
        r = grant_new(bind->binder->context->view->ledger, &spec, &bind->pod->grant);
        bind->pod->reserved = r == 0;
        return r;
}

static int write_annotations(const Bind *bind, const Placement *p, const LedgerNode *node, Buf *out) {
        const PeerHooks *peers = &bind->binder->context->peers;
        bool job[CARD_INDEX_MAX + 1] = {0};

        if (peers->userdata)
                peers->mark_cards(peers->userdata, bind->uid, node, job);
        pod_grant_write_of_job(p->slices, p->n_slices, node, bind->assume_time, bind->pod->carried, job, out);
        return buf_result(out);
}

void bind_cards_choose(Bind *bind, const Request *request) {
        View *v = bind->binder->context->view;
        DirectoryNode *node = directory_find(v->directory, bind->node);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf annotations = BUF_NULL;
        Refusal refusal = {.code = REFUSAL_NODE_UNKNOWN};
        HoldAsker asker = {.uid = bind->uid, .priority = view_pod_priority(v, bind->uid)};
        Placement placement = {0};
        const PeerHooks *peers = &bind->binder->context->peers;
        int r = !node ? PLACEMENT_E_REFUSED
                : peers->userdata
                        ? peers->take_place(peers->userdata, bind->uid, bind->node, &arena, &placement)
                        : 1;
        bool planned = r == 0;

        if (node && r > 0)
                r = hold_choose_cards(&v->hold, &asker, node->ledger_node, request, &arena, &placement,
                                      &refusal);
        if (r == PLACEMENT_E_REFUSED) {
                bind_refuse_on_node(bind, &refusal);
                return;
        }
        if (r == 0)
                bind_note_place(bind, request, &placement, node->ledger_node);
        bind->assume_time = clock_realtime_nsec();
        if (r == 0)
                r = bind_reserve(bind, request, &placement);
        if (r == 0 && planned)
                view_pod_take_plan(v, bind->pod);
        if (r == 0)
                r = write_annotations(bind, &placement, node->ledger_node, &annotations);
        if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}

void bind_cards_none(Bind *bind) {
        _cleanup_buf_ Buf annotations = BUF_NULL;

        pod_grant_write(NULL, 0, NULL, false, 0, bind->pod->carried, &annotations);
        if (buf_result(&annotations) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}
