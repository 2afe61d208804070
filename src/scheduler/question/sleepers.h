/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods that no node takes, by the last filter call about each. Unlike waiters.h it keeps all of
 * them, whatever their priority, and no nodes: waker.h looks for those that fit a node that has
 * more room now. preempt notes pods that wait for a gang, which filter may never be asked about.
 * Bounded: beyond SLEEPERS_MAX the one that was asked about longest ago is forgotten, of those that
 * do not wait for a gang. */

#include "base/clock.h"
#include "base/hash.h"
#include "scheduler/question/filter_result.h"

enum { SLEEPERS_MAX = 4096, SLEEPER_TEXT_MAX = 253 };

typedef struct Sleeper {
        UT_hash_handle hh;   /* by uid; the order of the table is age */
        usec_t woken;        /* when it was last woken for room; 0: never */
        bool waits_for_gang; /* its preemption does (unsettled.h): wake it when the plan ends */
        bool lost_to_plan;   /* filter refused it for its cards a node on which a plan has some */
        Str namespace_, name, uid;
        char texts[];
} Sleeper;

typedef struct Sleepers {
        Sleeper *by_uid;
} Sleepers;

/* Returns the note, which keeps what it says. NULL without memory, or with longer texts than the
 * API server takes: the pod is not noted, and is tried again when kube-scheduler does so by
 * itself. */
Sleeper *sleepers_note(Sleepers *s, Str namespace_, Str name, Str uid);

/* Takes over the answer of the last filter call, also of a pod that the watch does not know yet. */
void sleepers_filtered(Sleepers *s, const FilterResult *result);

/* The pod waits no more. */
void sleepers_forget(Sleepers *s, Str uid);
Sleeper *sleepers_find(const Sleepers *s, Str uid);
void sleepers_done(Sleepers *s);
