/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods that no node takes, and the nodes that refused them for their cards alone, by the last
 * filter call about each. The evictor picks from them. Bounded: of more pods those of the highest
 * priority are kept, and of each pod the first nodes. A waiter without nodes rests: it is not
 * picked, and only its number of tries is kept until the next filter call. */

#include "base/buf.h"
#include "base/clock.h"
#include "scheduler/question/filter_result.h"

enum { WAITERS_MAX = 64, WAITER_TEXT_MAX = 253 };

/* kube-scheduler preempts by itself where it can: the evictor leaves a pod to it for this time. */
#define WAITER_DELAY (2 * USEC_PER_SEC)

/* How long the answer of a filter call about nodes counts. Later a node may be cordoned or
 * tainted. */
#define WAITER_FRESH (30 * USEC_PER_SEC)

/* kube-scheduler tries every pending pod again after five minutes
 * (podMaxInUnschedulablePodsDuration). A pod that it has not asked about for longer is gone, or
 * another scheduler has it. A pod with tries is kept until waiters_drop(). */
#define WAITER_STALE (330 * USEC_PER_SEC)

typedef struct Waiter {
        usec_t due;       /* when the pod may be picked; 0: the slot is free */
        usec_t seen;      /* the last filter call */
        unsigned attempt; /* tries and looks that freed no card for it */
        int64_t priority;
        char uid[WAITER_TEXT_MAX + 1], namespace_[WAITER_TEXT_MAX + 1], name[WAITER_TEXT_MAX + 1];
        Buf nodes; /* their names, each followed by a newline; empty: it rests */
} Waiter;

typedef struct Waiters {
        Waiter slots[WAITERS_MAX];
        void (*on_news)(void *userdata); /* a pod was noted; may be NULL */
        void *userdata;
} Waiters;

/* Takes over the answer of the last filter call. A pod that is known and does not rest keeps its
 * due time. Priority, and whether the pod may preempt, come from the watch: without them, as where
 * a node fits, it rests. */
void waiters_filtered(Waiters *w, const View *v, const FilterResult *result, usec_t now);

/* The pod waits for no card now. Its number of tries is kept. */
void waiters_rest(Waiters *w, Str uid);
void waiters_drop(Waiters *w, Str uid);
void waiters_clear(Waiters *w);

/* The waiter of the highest priority among those that are due, then the one that has been due
 * longest; NULL: none. A waiter rests from now on when its last filter call is WAITER_FRESH old and
 * not later than the time `since`. Stale waiters are dropped. */
Waiter *waiters_next(Waiters *w, usec_t now, usec_t since);
Waiter *waiters_find(Waiters *w, Str uid);
bool waiters_any(const Waiters *w); /* whether one does not rest */
