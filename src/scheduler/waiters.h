/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods that no node takes, and which nodes refused them for their cards alone, by the last filter
 * call about each. The evictor picks from them. Bounded: of more pods those of the highest priority
 * are kept, and of each the first nodes. A waiter without nodes rests: it is not picked, and only
 * the number of its tries is kept, until the next filter call. */

#include "base/buf.h"
#include "base/clock.h"

enum { WAITERS_MAX = 64, WAITER_NODES_MAX = 64, WAITER_TEXT_MAX = 253 };

/* kube-scheduler preempts by itself where it can: the evictor leaves a pod to it for this time. */
#define WAITER_DELAY (2 * USEC_PER_SEC)

/* What a filter call said about nodes counts for this time: after it a node may be cordoned or
 * tainted. */
#define WAITER_FRESH (30 * USEC_PER_SEC)

/* kube-scheduler tries every pending pod again after five minutes
 * (podMaxInUnschedulablePodsDuration): a pod about which it has not asked for longer is gone, or is
 * left to another scheduler. A pod with tries is kept until waiters_drop(). */
#define WAITER_STALE (330 * USEC_PER_SEC)

typedef struct Waiter {
        usec_t due;       /* 0: free; not before this time */
        usec_t seen;      /* the last filter call */
        unsigned attempt; /* tries, and looks at it, that freed no card for it */
        int64_t priority;
        char uid[WAITER_TEXT_MAX + 1], namespace_[WAITER_TEXT_MAX + 1], name[WAITER_TEXT_MAX + 1];
        Buf nodes; /* their names, each with a new line behind it; empty: it rests */
} Waiter;

typedef struct Waiters {
        Waiter slots[WAITERS_MAX];
        void (*on_news)(void *userdata); /* a pod was noted. may be NULL */
        void *userdata;
} Waiters;

typedef struct WaiterNews {
        Str namespace_, name, uid;
        int64_t priority;
        Str nodes; /* as in Waiter */
} WaiterNews;

/* Takes over what the last filter call said. A pod that is known and does not rest keeps its due
 * time. */
void waiters_note(Waiters *w, const WaiterNews *news, usec_t now);

/* This pod waits for no card now. It keeps its number of tries. */
void waiters_rest(Waiters *w, Str uid);
void waiters_drop(Waiters *w, Str uid);
void waiters_clear(Waiters *w);

/* Of those that are due, the one of the highest priority, then the one that has been due longest;
 * NULL: none. Those whose last filter call is WAITER_FRESH old, and not later than the time
 * `since`, rest from now on. Drops what is stale. */
Waiter *waiters_next(Waiters *w, usec_t now, usec_t since);
Waiter *waiters_find(Waiters *w, Str uid);
bool waiters_any(const Waiters *w); /* one that does not rest */
