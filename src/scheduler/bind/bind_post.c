/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bind/bind_post.h"

#include "scheduler/bind/bind_confirm.h"
#include "scheduler/bind/binds-internal.h"

/* The most Bindings, and GETs after lost answers, that are under way at once. Together with
 * watches, Events and single calls they are fewer than the client's connections
 * (KUBE_MAX_CONNECTIONS): no call's time-out runs while it waits for a connection. */
enum { TURNS_MAX = 32 };

/* ---- the queue and the turns ---- */

static void queue_remove(Binder *b, const Bind *bind) {
        Bind **at = &b->queue;

        while (*at != bind)
                at = &(*at)->queue_next;
        *at = bind->queue_next;
        if (!*at)
                b->queue_end = at;
}

static void take_turn(Bind *bind) {
        bind->binder->n_turns++;
        bind->has_turn = true;
}

void bind_post_end_turn(Bind *bind) {
        bind->binder->n_turns -= bind->has_turn;
        bind->has_turn = false;
}

void bind_post_unqueue(Bind *bind) {
        bind_post_end_turn(bind);
        if (bind->state == BIND_QUEUED || bind->state == BIND_ASK_QUEUED)
                queue_remove(bind->binder, bind);
}

/* ---- the Binding ---- */

static void bind_judge(Bind *bind, const KubeReply *reply) {
        bool heard = reply->outcome == KUBE_DONE;

        bind->call = NULL;
        bind->fault = reply->fault;
        if (bind_is_success(reply)) {
                bind_succeed(bind, METRICS_BIND_BOUND);
                return;
        }
        /* A 4xx is answered before anything is written. 409 may mean that an earlier Binding of
         * this bind was carried out and its answer lost. 5xx may also come after the write
         * (time-outs of etcd). */
        if (reply->outcome == KUBE_NOT_SENT || (heard && reply->status < 500 && reply->status != 409)) {
                bind_fail(bind, METRICS_BIND_REJECTED, reply->fault.text);
                return;
        }
        bind->conflict = heard && reply->status == 409;
        if (!bind->conflict)
                bind->binder->context->metrics->binds[METRICS_BIND_UNKNOWN]++;
        bind_confirm(bind);
}

static void on_posted(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Binder *b = bind->binder;

        bind_judge(bind, reply);
        bind_post_queued(b);
}

/* bind: taken out of the queue before. May end the bind. */
static void bind_send(Bind *bind) {
        KubeBinding binding = {
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .node = bind->node,
                .annotations = buf_str(&bind->annotations),
                .labels = buf_str(&bind->labels),
        };
        const SchedulerContext *o = bind->binder->context;
        const char *why_not = scheduler_context_may_not_act(o);

        if (why_not) {
                bind_fail(bind, METRICS_BIND_REFUSED, why_not);
                return;
        }
        if (kube_bind(o->client, &binding, on_posted, bind, &bind->call) < 0) {
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
                return;
        }
        take_turn(bind);
}

void bind_post_queued(Binder *b) {
        while (b->queue && b->n_turns < TURNS_MAX) {
                Bind *bind = b->queue;

                queue_remove(b, bind);
                if (bind->state == BIND_ASK_QUEUED) {
                        take_turn(bind);
                        bind_confirm(bind);
                } else {
                        bind_set_state(bind, BIND_POSTED);
                        bind_send(bind);
                }
        }
}

/* state: BIND_QUEUED or BIND_ASK_QUEUED. The call may be sent at once. */
static void put_in_queue(Bind *bind, BindState state) {
        Binder *b = bind->binder;

        bind_set_state(bind, state);
        bind->queue_next = NULL;
        *b->queue_end = bind;
        b->queue_end = &bind->queue_next;
        bind_post_queued(b);
}

void bind_post_queue_get(Bind *bind) {
        put_in_queue(bind, BIND_ASK_QUEUED);
}

/* ---- what a Binding carries ---- */

bool bind_post_count(Bind *bind) {
        const SchedulerContext *o = bind->binder->context;
        Fault why = FAULT_NULL;
        int r;

        if (bind->counted)
                return true;
        r = o->units.userdata
                    ? o->units.bind_begin(o->units.userdata, bind->namespace_, bind->uid, bind->node,
                                          clock_monotonic_usec(), &bind->more, &bind->labels, &why)
                    : 0;
        bind->counted = r == 0;
        if (r > 0) {
                o->metrics->refusals[REFUSAL_POLICY]++;
                bind_fail(bind, METRICS_BIND_REFUSED, why.text);
        } else if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        return r == 0;
}

/* Adds the annotations of the pod's ResourcePolicy unit to those of the bind, a JSON object. */
static void add_unit_annotations(Bind *bind) {
        Buf *all = &bind->annotations;
        const Buf *more = &bind->more;

        if (more->len == 0 || all->len == 0)
                return;
        all->len--; /* take off the closing brace */
        buf_append(all, more->data + (all->len == 1), more->len - (all->len == 1));
        buf_append_char(all, '}');
}

void bind_post(Bind *bind, Str annotations) {
        buf_clear(&bind->annotations);
        buf_append_str(&bind->annotations, annotations);
        if (!bind_post_count(bind))
                return;
        add_unit_annotations(bind);
        if (buf_result(&bind->annotations) < 0) {
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
                return;
        }
        put_in_queue(bind, BIND_QUEUED);
}
