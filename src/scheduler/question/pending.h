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

/* kube-scheduler preempts by itself where it can: the evictor leaves a pod to it for this time. */
#define PENDING_DELAY (2 * USEC_PER_SEC)

/* How long the answer of a filter call about nodes counts. Later a node may be cordoned or
 * tainted. */
#define PENDING_FRESH (30 * USEC_PER_SEC)

/* kube-scheduler tries every pending pod again after five minutes
 * (podMaxInUnschedulablePodsDuration). Without tries, a pod that it has not asked about for longer
 * loses its place for tries. */
#define PENDING_STALE (330 * USEC_PER_SEC)

/* Between two Events about one pod, and the most Events of all pods in one minute. A pending pod is
 * asked about each time that another pod ends, and each time its cards may differ. */
#define PENDING_EVENT_REST (60 * USEC_PER_SEC)
enum { PENDING_EVENTS_PER_MINUTE = 120 };

typedef struct PendingPod {
        UT_hash_handle hh; /* by uid; the order of the table is that of the last questions */
        Str uid, namespace_, name;
        /* What people were told. */
        uint64_t told; /* hash of the last Event about the nearest cards (nearest.h); 0: none */
        usec_t told_at;
        /* What it waits for. */
        bool refused;        /* cards: by the last filter call no node takes it */
        bool lost_to_plan;   /* as in FilterResult */
        bool waits_for_plan; /* its preemption does (unsettled.h): wake it when the plan ends */
        usec_t deferred;     /* when a decision about it first waited for a gang; 0: never */
        usec_t woken;        /* when it was last woken for room; 0: not since it was refused */
        /* For the evictor. */
        usec_t due;       /* when the pod may be picked; 0: it has no place for tries */
        usec_t seen;      /* the last filter call */
        unsigned attempt; /* tries and looks that freed no card for it */
        int64_t priority;
        Buf nodes; /* that refused it for their cards, each followed by a newline; empty: it rests */
        char texts[];
} PendingPod;

typedef struct Pending {
        PendingPod *by_uid;
        PendingPod *tries[PENDING_TRIES_MAX]; /* NULL: free */
        void (*on_news)(void *userdata);      /* a pod may be tried; NULL: the evictor is off */
        void *userdata;
        usec_t minute; /* when the minute began of which Events are counted */
        unsigned n_told;
} Pending;

/* Takes over the answer of the last filter call. Returns the pod; NULL: it is not in the table. A
 * pod that may be tried and does not rest keeps its due time. Its priority, and whether it may
 * preempt, come from the watch. */
PendingPod *pending_filtered(Pending *p, const View *v, const FilterResult *result, usec_t now);

/* Writes an Event about the nearest cards when no node takes the pod, and the watch knows it. It
 * does when the text differs from the last one about this pod, and the rates allow. The API server
 * keeps one such Event for a pod: the text is replaced. */
void pending_tell(Pending *p, PendingPod *pod, KubeEventRecorder *recorder, const View *v,
                  const FilterResult *result, usec_t now);

/* No node takes the pod. NULL without memory, or with longer texts than the API server takes: the
 * pod is not noted, and is tried again when kube-scheduler does so by itself. */
PendingPod *pending_note(Pending *p, Str namespace_, Str name, Str uid);
PendingPod *pending_find(const Pending *p, Str uid);

/* Whether the watch has it as a pod with a share that is not bound. */
bool pending_is_known(const View *v, Str uid);

/* The view has taken over the pod's object; or a list of pods. */
void pending_pod(Pending *p, const View *v, const Pod *object, ReflectorEvent event);
void pending_listed(Pending *p, const View *v);

/* The pod waits for no card now. Its number of tries is kept. */
void pending_rest(Pending *p, Str uid);
void pending_clear_tries(Pending *p);

/* The pod of the highest priority among those that are due, then the one that has been due longest;
 * NULL: none. A pod rests from now on when its last filter call is PENDING_FRESH old and not later
 * than the time `since`. */
PendingPod *pending_next(Pending *p, usec_t now, usec_t since);
bool pending_any(const Pending *p); /* whether one may be tried and does not rest */

void pending_forget(Pending *p, PendingPod *pod);
void pending_done(Pending *p);
