/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bind/binds-internal.h"

#include <stdarg.h>

#include "base/log.h"
#include "scheduler/bind/bind_post.h"

static const char *const state_names[] = {[BIND_NEW] = "new",           [BIND_HELD] = "held",
                                          [BIND_FETCHING] = "fetching", [BIND_QUEUED] = "queued",
                                          [BIND_POSTED] = "posted",     [BIND_ASKING] = "asking",
                                          [BIND_WAITING] = "waiting",   [BIND_ASK_QUEUED] = "ask-queued"};

static Str put_text(char **at, Str s) {
        Str copy = str_put(at, s);

        *at += 1; /* its NUL */
        return copy;
}

Bind *bind_new(Binder *b, const BindingArgs *a, ViewPod *pod) {
        Bind *bind = calloc(1, sizeof *bind + a->namespace_.len + a->name.len + a->uid.len + a->node.len + 4);
        char *at;

        if (!bind)
                return NULL;
        at = bind->texts;
        bind->namespace_ = put_text(&at, a->namespace_);
        bind->name = put_text(&at, a->name);
        bind->uid = put_text(&at, a->uid);
        bind->node = put_text(&at, a->node);
        bind->binder = b;
        bind->pod = pod;
        pod->bind = bind;
        bind->next = b->open;
        bind->link = &b->open;
        if (bind->next)
                bind->next->link = &bind->next;
        b->open = bind;
        b->n_open++;
        return bind;
}

void bind_free(Bind *bind) {
        Binder *b = bind->binder;
        void (*idle)(void *userdata) = b->n_open == 1 ? TAKE_PTR(b->idle) : NULL;

        bind_post_unqueue(bind);
        *bind->link = bind->next;
        if (bind->next)
                bind->next->link = bind->link;
        b->n_open--;
        bind->pod->bind = NULL;
        view_pod_drop_if_unused(b->context->view, bind->pod);
        kube_call_free(bind->call);
        sd_event_source_disable_unref(bind->timer);
        buf_done(&bind->placed);
        buf_done(&bind->annotations);
        buf_done(&bind->labels);
        buf_done(&bind->more);
        free(bind);
        if (idle)
                idle(b->idle_userdata);
}

void bind_set_state(Bind *bind, BindState state) {
        log_debug("bind pod=" STR_FMT "/" STR_FMT " node=" STR_FMT " %s -> %s", STR_ARG(bind->namespace_),
                  STR_ARG(bind->name), STR_ARG(bind->node), state_names[bind->state], state_names[state]);
        bind->state = state;
}

/* ---- the end ---- */

void bind_answer(Bind *bind, const char *error) {
        BinderDone done = bind->done;

        bind->done = NULL;
        if (done)
                done(bind->userdata, error);
}

/* Tells the pod's gang how the bind ended. */
static void tell_peers(const Bind *bind, bool bound) {
        const PeerHooks *peers = &bind->binder->context->peers;

        if (peers->userdata)
                peers->ended(peers->userdata, bind->uid, bound);
}

/* Ends the count that bind_post_count() began. bound: the pod counts in the unit of its node, as of
 * the current list of pods. */
static void end_count(const Bind *bind, bool bound) {
        const UnitHooks *units = &bind->binder->context->units;

        if (units->userdata)
                units->bind_end(units->userdata, bind->uid, bind->node, bound,
                                bind->binder->context->view->kinds[VIEW_PODS].generation);
}

static void bind_write_event(Bind *bind, const char *type, const char *reason, const char *note) {
        KubeEvent event = {
                .kind = "Pod",
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .type = type,
                .reason = reason,
                .note = note,
        };

        if (bind->binder->context->recorder)
                kube_event(bind->binder->context->recorder, &event);
}

void bind_succeed(Bind *bind, MetricsBind outcome) {
        View *v = bind->binder->context->view;
        ViewPod *pod = bind->pod;

        if (pod->reserved) {
                /* a list that was begun before may show the pod unbound */
                pod->bound_in = v->kinds[VIEW_PODS].generation;
                pod->reserved = false;
                free(pod->request);
                pod->request = NULL;
                pod->bound_at = outcome == METRICS_BIND_BOUND ? clock_monotonic_usec() : 0;
        } else if (pod->grant && outcome == METRICS_BIND_BOUND)
                histogram_observe(&v->stats.lag, 0); /* the watch was faster than the answer */
        pod->asks_nothing = false;
        end_count(bind, true);
        log_info("bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT, STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node));
        bind->binder->context->metrics->binds[outcome]++;
        if (bind->placed.len > 0 && buf_result(&bind->placed) == 0)
                bind_write_event(bind, "Normal", "GPUAssigned", bind->placed.data);
        bind_answer(bind, "");
        tell_peers(bind, true);
        bind_free(bind);
}

void bind_fail_as(Bind *bind, MetricsBind outcome, const char *error, const char *answer) {
        ViewPod *pod = bind->pod;

        if (pod->reserved) {
                pod->grant = grant_free(pod->grant);
                pod->reserved = false;
                view_pod_settle(bind->binder->context->view, pod);
        }
        end_count(bind, false);
        log_info("not bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT ": %s", STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node), error);
        bind->binder->context->metrics->binds[outcome]++;
        bind_write_event(bind, "Warning", "FailedBinding", error);
        bind_answer(bind, answer);
        tell_peers(bind, false);
        bind_free(bind);
}

void bind_fail(Bind *bind, MetricsBind outcome, const char *error) {
        bind_fail_as(bind, outcome, error, error);
}

void bind_failf(Bind *bind, MetricsBind outcome, const char *format, ...) {
        char text[sizeof((Fault *) NULL)->text];
        va_list args;

        va_start(args, format);
        if (vsnprintf(text, sizeof text, format, args) < 0)
                text[0] = '\0';
        va_end(args);
        bind_fail(bind, outcome, text);
}

/* Without an Event: kube-scheduler writes one with the answer, and the gang tells the rest. */
void bind_answer_only(Bind *bind, const char *why) {
        log_info("not bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT ": %s", STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node), why);
        bind->binder->context->metrics->binds[METRICS_BIND_REFUSED]++;
        end_count(bind, false);
        bind_answer(bind, why);
        tell_peers(bind, false);
        bind_free(bind);
}

void bind_leave(Bind *bind) {
        bind->pod->generation = bind->pod->bound_in =
                bind->binder->context->view->kinds[VIEW_PODS].generation;
        bind->pod->reserved = false;
        end_count(bind, true);
        bind_answer(bind, "out of memory; the next list of pods will tell whether the pod was bound");
        tell_peers(bind, false);
        bind_free(bind);
}

bool bind_is_success(const KubeReply *reply) {
        return reply->outcome == KUBE_DONE && reply->status >= 200 && reply->status < 300;
}
