/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Wakes pods that fit now. kube-scheduler tries a pod that an extender refused again when a pod, a
 * node or a volume changes, and else after five minutes (podMaxInUnschedulablePodsDuration). It
 * knows nothing of a fence that lifts, nor of held or planned cards that are given back. Any
 * change of the pod itself wakes it, an annotation too (isPodUpdated,
 * backend/queue/scheduling_queue.go), so the leader writes ANNOTATION_KICK into it.
 *
 * Bounded: WAKER_NODES nodes with more room are remembered. A turn, one a second, wakes WAKER_BURST
 * pods, and a pod is woken for room once in WAKER_AGAIN. A node is forgotten when no pod is left
 * that fits and was not woken since the node got its room. */

#include "scheduler/question/scheduler_context.h"

enum { WAKER_NODES = 64, WAKER_BURST = 16 };
#define WAKER_AGAIN (30 * USEC_PER_SEC)

typedef struct Waker Waker;

/* Listens to the view's fences, and to the end of its hold and of a gang's Bindings. 0, -ENOMEM or
 * the error of sd-event. */
int waker_new(SchedulerContext *context, Waker **ret);
Waker *waker_free(Waker *w); /* before context and view */

/* Pods that wait may fit on the node soon. */
void waker_room(Waker *w, Str node);

/* A gang has given planned cards back: pods whose preemption waited for that (unsettled.h) are
 * woken, whether they fit or not. So they are when the last Binding of a gang has ended, and when
 * the attempt of a gang without cards has. */
void waker_settled(Waker *w);

DEFINE_CLEANUP(Waker *, waker_free)
