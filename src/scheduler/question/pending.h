/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that wait, by the last call about each while this replica leads: what was asked, what
 * people were told, and what the pod waits for.
 *
 * A pod comes in when filter finds no node for it, or when its preemption waits for a gang, which
 * filter may never be asked about. The watch may come later than the question.
 *
 * A pod is forgotten when the watch shows that it waits no more: it is bound, has ended or is gone.
 * One that the watch does not have is forgotten after a list, and when cards get free. Beyond
 * PENDING_MAX pods the one that was asked about longest ago is, of those that do not wait for a
 * gang. */

#include "scheduler/question/filter_result.h"

enum { PENDING_MAX = 4096, PENDING_TEXT_MAX = 253 };

typedef struct PendingPod {
        UT_hash_handle hh; /* by uid; the order of the table is that of the last questions */
        Str uid, namespace_, name;
        /* What people were told. */
        uint64_t nearest_told; /* hash of the last Event of nearest.h; 0: none */
        usec_t nearest_at;     /* when that was written */
        /* What it waits for. */
        bool refused;        /* cards: by the last filter call no node takes it */
        bool lost_to_plan;   /* as in FilterResult */
        bool waits_for_gang; /* its preemption does (unsettled.h): wake it when the plan ends */
        usec_t deferred;     /* when a decision about it first waited for a gang; 0: never */
        usec_t woken;        /* when it was last woken for room; 0: not since it was refused */
        char texts[];
} PendingPod;

typedef struct Pending {
        PendingPod *by_uid;
} Pending;

/* Takes over the answer of the last filter call. Returns the pod; NULL: it is not in the table. */
PendingPod *pending_filtered(Pending *p, const FilterResult *result);

/* No node takes the pod. NULL without memory, or with longer texts than the API server takes: the
 * pod is not noted, and is tried again when kube-scheduler does so by itself. */
PendingPod *pending_note(Pending *p, Str namespace_, Str name, Str uid);
PendingPod *pending_find(const Pending *p, Str uid);

/* Whether the watch has it as a pod with a share that is not bound. */
bool pending_is_known(const View *v, Str uid);

/* The view has taken over the pod's object; or a list of pods. */
void pending_pod(Pending *p, const View *v, const Pod *pod, ReflectorEvent event);
void pending_listed(Pending *p, const View *v);

void pending_forget(Pending *p, PendingPod *pod);
void pending_done(Pending *p);
