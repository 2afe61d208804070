/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bind/bind_confirm.h"

#include "scheduler/bind/bind_post.h"
#include "scheduler/bind/binds-internal.h"

#define BACKOFF_BASE (100 * USEC_PER_MSEC)
#define BACKOFF_CAP  (10 * USEC_PER_SEC)

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        bind_post_queue_get(userdata);
        return 0;
}

static void bind_wait(Bind *bind, usec_t delay) {
        sd_event *event = kube_client_event(bind->binder->context->client);

        bind->timer = sd_event_source_disable_unref(bind->timer);
        /* The timer may be late by an eighth of the delay. Accuracy 0 would mean sd-event's default
         * of 250 ms. */
        if (sd_event_add_time_relative(event, &bind->timer, CLOCK_MONOTONIC, delay, delay / 8 + 1, on_timer,
                                       bind) < 0) {
                bind_leave(bind);
                return;
        }
        bind_set_state(bind, BIND_WAITING);
}

/* The pod is not bound. After a lost answer that may be too early, because the API server may still
 * be writing: a second GET a little later decides. */
static void bind_is_unbound(Bind *bind) {
        if (bind->conflict || bind->unbound_once) {
                bind_fail(bind, METRICS_BIND_REJECTED, bind->fault.text);
                return;
        }
        bind->unbound_once = true;
        bind_answer(bind, bind->fault.text);
        bind_wait(bind, bind->binder->confirm);
}

static bool is_ours(const Bind *bind, const Pod *pod) {
        uint64_t time;

        if (!str_eq(pod->node_name, bind->node))
                return false;
        return bind->assume_time == 0 /* a pod without a share */ ||
               (str_to_u64(pod->annotations.assume_time, &time) && time == bind->assume_time);
}

/* Hands the pod's object to the view, and ends the bind by what it says. False when the view has no
 * memory for it. */
static bool bind_is_bound(Bind *bind, const Pod *pod) {
        bool ours = is_ours(bind, pod);

        /* Without a reservation the watch tells the rest. It may be ahead of this answer: the pod
         * has ended. */
        if (bind->pod->reserved && view_pod_set(bind->binder->context->view, pod, REFLECTOR_MODIFIED) < 0)
                return false;
        if (ours)
                bind_succeed(bind, METRICS_BIND_BOUND);
        else
                bind_failf(bind, METRICS_BIND_ELSEWHERE,
                           POD_FMT " has been bound to node " STR_FMT " by somebody else", POD_ARG(bind),
                           STR_ARG(pod->node_name));
        return true;
}

static void bind_ask_later(Bind *bind, const KubeReply *reply) {
        char error[sizeof((Fault *) NULL)->text + 256];

        (void) snprintf(error, sizeof error,
                        "it is not known yet whether " POD_FMT " was bound to node " STR_FMT ": %s",
                        POD_ARG(bind), STR_ARG(bind->node), reply->fault.text);
        bind_answer(bind, error);
        bind_wait(bind, kube_backoff(bind->attempt++, BACKOFF_BASE, BACKOFF_CAP, reply->retry_after));
}

static void judge_asked(Bind *bind, const KubeReply *reply) {
        Arena *arena = &bind->binder->context->view->arena;
        Fault fault = FAULT_NULL;
        Pod pod;

        bind->call = NULL;
        /* the answer to a GET may be older than the deletion */
        if (bind->pod->gone || (reply->outcome == KUBE_DONE && reply->status == 404)) {
                bind_failf(bind, METRICS_BIND_REJECTED, POD_FMT " is gone", POD_ARG(bind));
                return;
        }
        arena_reset(arena);
        if (!bind_is_success(reply) || pod_decode(reply->body, arena, &pod, &fault) != 0)
                bind_ask_later(bind, reply);
        else if (!str_eq(pod.meta.uid, bind->uid))
                bind_failf(bind, METRICS_BIND_REJECTED, POD_FMT " is gone, another one has its name",
                           POD_ARG(bind));
        else if (str_is_empty(pod.node_name))
                bind_is_unbound(bind);
        else if (!bind_is_bound(bind, &pod))
                bind_ask_later(bind, reply);
}

/* The turn ends only here: while the API server answers no GET, no new Bindings are sent. */
static void on_asked(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Binder *b = bind->binder;

        bind_post_end_turn(bind);
        judge_asked(bind, reply);
        bind_post_queued(b);
}

void bind_confirm(Bind *bind) {
        bind_set_state(bind, BIND_ASKING);
        if (kube_get_pod(bind->binder->context->client, bind->namespace_, bind->name, on_asked, bind,
                         &bind->call) < 0)
                bind_leave(bind);
}
