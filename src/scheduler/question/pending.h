/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that wait, by the last call about each while this replica leads: what was asked, what
 * people were told, and what the pod waits for. Filter, preempt, the waker and the evictor read and
 * write it.
 *
 * A pod comes in when filter finds no node for it, or when its preemption waits for a gang, which
 * filter may never be asked about. The watch may come later than the question.
 *
 * A pod is forgotten when the watch shows that it waits no more: it is bound, has ended or is gone.
 * One that the watch does not have is forgotten after a list, and when cards get free. Beyond
 * PENDING_MAX pods the one that was asked about longest ago is, of those that do not wait for a
 * gang.
 *
 * For PENDING_TRIES_MAX pods the evictor may free cards. Of more those of the highest priority keep
 * their place, and of each pod the first nodes are kept. A pod without nodes rests: it is not
 * picked, and only its number of tries is kept until the next filter call. */

#include "kube/event.h"
#include "scheduler/question/filter_result.h"
#include "scheduler/view/view.h"

enum { PENDING_MAX = 4096, PENDING_TRIES_MAX = 64, PENDING_TEXT_MAX = 253 };

/* How long the evictor leaves a pod to kube-scheduler, which preempts by itself where it can. */
#define PENDING_DELAY (2 * USEC_PER_SEC)

/* How long filter's answer about nodes is used for evictions. Later a node may have been cordoned
 * or tainted. */
#define PENDING_FRESH (30 * USEC_PER_SEC)

/* kube-scheduler tries every pending pod again after five minutes
 * (podMaxInUnschedulablePodsDuration). A pod that it has not asked about for longer loses its place
 * in `tries`, if the evictor has not tried it. */
#define PENDING_STALE (330 * USEC_PER_SEC)

/* Least time between two Events about one pod, and the most Events of all pods in a minute. filter
 * is asked about a pending pod each time that another pod ends, and each time its cards may
 * differ. */
#define PENDING_EVENT_REST (60 * USEC_PER_SEC)
enum { PENDING_EVENTS_PER_MINUTE = 120 };

typedef struct PendingPod {
        UT_hash_handle hh; /* by uid; iterated by the time of the last question, the oldest first */
        Str uid, namespace_, name;
        /* The Event about it. */
        uint64_t told; /* hash of the text (nearest.h); 0: none was written */
        usec_t told_at;
        /* What it waits for. */
        bool refused;        /* for cards: the last filter call found no node */
        bool lost_to_plan;   /* as in FilterResult */
        bool waits_for_plan; /* its preemption waits for a gang (unsettled.h): wake it when the plan ends */
        usec_t deferred;     /* when a decision about it was first put off for a gang; 0: never */
        usec_t woken;        /* when it was last woken for room; 0: not since it was refused */
        usec_t seen;         /* time of the last filter call */
        /* For the evictor. */
        usec_t due;       /* when it may be picked; 0: it is not in `tries` */
        unsigned attempt; /* number of tries that freed no card for it */
        int64_t priority;
        Buf nodes; /* that refused it for their cards, each with a newline; empty: it rests */
        char texts[];
} PendingPod;

typedef struct Pending {
        PendingPod *by_uid;
        PendingPod *tries[PENDING_TRIES_MAX]; /* the pods that the evictor may help; NULL: a free place */
        void (*on_news)(void *userdata);      /* a pod has come into `tries`; NULL: the evictor is off */
        void *userdata;
        usec_t minute; /* when the minute began in which n_told counts Events */
        unsigned n_told;
} Pending;

/* Takes over the answer of a filter call. Returns the pod, or NULL when it is not in the table. A
 * pod in `tries` that does not rest keeps its due time. Its priority, and whether it may preempt,
 * come from the watch. */
PendingPod *pending_filtered(Pending *p, const View *v, const FilterResult *result, usec_t now);

/* Writes an Event about the nearest cards, if no node takes the pod, the watch knows it, the text
 * differs from its last Event, and the rates allow it. The API server keeps one such Event per pod
 * and replaces its text. */
void pending_tell(Pending *p, PendingPod *pod, KubeEventRecorder *recorder, const View *v,
                  const FilterResult *result, usec_t now);

/* Adds the pod, or makes it the youngest: no node takes it. NULL when out of memory, or when a text
 * is longer than the API server takes. kube-scheduler's own retry must do then. */
PendingPod *pending_note(Pending *p, Str namespace_, Str name, Str uid);
PendingPod *pending_find(const Pending *p, Str uid);

/* The view has taken over the pod's object, or a complete list of pods: forgets pods that do not
 * wait. */
void pending_pod(Pending *p, const View *v, const Pod *object, ReflectorEvent event);
void pending_listed(Pending *p, const View *v);

/* The pod needs no card now, so the evictor passes over it. Its number of tries is kept. */
void pending_rest(Pending *p, Str uid);
/* Empties `tries`; the pods stay known. */
void pending_clear_tries(Pending *p);

/* The pod to help next: of those that are due the one of the highest priority, then the one due
 * longest; NULL: none. A pod rests when its last filter call is PENDING_FRESH old and was not after
 * `since`. */
PendingPod *pending_next(Pending *p, usec_t now, usec_t since);
bool pending_any(const Pending *p); /* whether a pod in `tries` does not rest */

void pending_forget(Pending *p, PendingPod *pod);
void pending_done(Pending *p);
