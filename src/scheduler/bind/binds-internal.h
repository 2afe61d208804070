/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The binds that are under way, as the parts of the binder (binder.h) see them: their states, their
 * beginning and every end, with reservation, answer, Event and metric. A bind passes through these
 * files in this order:
 *
 *     binder.c        the request: answers at once, fetches the pod, asks the gang
 *     bind_cards.c    chooses the cards, reserves them, writes the annotations
 *     bind_post.c     the queue of calls; the Binding and its answer
 *     bind_confirm.c  asks the API server what became of a Binding without an answer */

#include <systemd/sd-event.h>

#include "scheduler/bind/binder.h"

typedef enum BindState {
        BIND_NEW,
        BIND_HELD,
        BIND_FETCHING,
        BIND_QUEUED,
        BIND_POSTED,
        BIND_ASKING,
        BIND_WAITING,
        BIND_ASK_QUEUED
} BindState;

struct Bind {
        Binder *binder;
        Bind *next, **link;
        BindState state;
        Str namespace_, name, uid, node; /* point into `texts` */
        ViewPod *pod;                    /* not dropped while pod->bind is set */
        BinderDone done;                 /* NULL: kube-scheduler has its answer */
        void *userdata;
        KubeCall *call;
        sd_event_source *timer;
        /* Assume time (realtime, ns): tells the annotations of this bind from those of another
         * one. */
        uint64_t assume_time;
        unsigned attempt;  /* GETs without a clear answer, for the back-off */
        bool conflict;     /* the Binding was answered with 409: this one was not carried out */
        bool unbound_once; /* a GET after a lost answer found the pod not bound */
        Fault fault;       /* why the Binding failed */
        Bind *queue_next;  /* next in the queue, in BIND_QUEUED and BIND_ASK_QUEUED */
        Buf annotations;   /* for the Binding; a JSON object */
        Buf labels;        /* that the pod's ResourcePolicy unit adds, for the Binding */
        Buf more;          /* annotations that the unit adds; filled when the pod is counted */
        bool counted;      /* in its unit; bind_end of UnitHooks ends it */
        bool has_turn;     /* one of TURNS_MAX: a Binding with the GET after it, or a later GET */
        Buf placed;        /* the cards in words, for the Event; empty: the pod has no share */
        char texts[];
};

struct Binder {
        SchedulerContext *context;
        usec_t confirm;
        Bind *open;
        size_t n_open, n_turns;
        Bind *queue, **queue_end; /* first come, first served */
        void (*idle)(void *userdata);
        void *idle_userdata;
};

#define POD_FMT       "pod " STR_FMT "/" STR_FMT
#define POD_ARG(bind) STR_ARG((bind)->namespace_), STR_ARG((bind)->name)

/* Adds a bind to the open ones, in state BIND_NEW, and sets pod->bind. NULL: out of memory. */
Bind *bind_new(Binder *b, const BindingArgs *a, ViewPod *pod);

/* Frees a bind without an answer to kube-scheduler; its reservation stays. */
void bind_free(Bind *bind);

/* The only function that changes a state; logs the change. */
void bind_set_state(Bind *bind, BindState state);

/* Answers kube-scheduler, if that has not been done yet; the bind goes on. error: "" when the pod
 * is bound. */
void bind_answer(Bind *bind, const char *error);

/* All of these end the bind and free it. outcome: the metric that counts it.
 *   succeed      the pod is bound to the node: the reservation becomes the grant
 *   fail         the reservation is given back, unless the pod's own object has replaced it
 *   failf        the same with a format
 *   fail_as      the same; kube-scheduler is told `answer`, log and Event say `error`
 *   answer_only  the same for a bind without a reservation, without an Event
 *   leave        no GET can be sent for want of memory: the reservation counts as the grant until
 *                the next list */
void bind_succeed(Bind *bind, MetricsBind outcome);
void bind_fail(Bind *bind, MetricsBind outcome, const char *error);
void bind_failf(Bind *bind, MetricsBind outcome, const char *format, ...) _printf_(3, 4);
void bind_fail_as(Bind *bind, MetricsBind outcome, const char *error, const char *answer);
void bind_answer_only(Bind *bind, const char *why);
void bind_leave(Bind *bind);

/* Whether the API server answered with 2xx. */
bool bind_is_success(const KubeReply *reply);
