/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Wakes pods that fit now. kube-scheduler tries a pod that an extender refused again when a pod, a
 * node or a volume changes, and else after five minutes (podMaxInUnschedulablePodsDuration). It
 * knows nothing of a fence that lifts, nor of held or planned cards that are given back. It may
 * also see the end of a pod before our watch shows it, and ask too early. Any change of the pod
 * itself wakes it, an annotation too (isPodUpdated, backend/queue/scheduling_queue.go), so the
 * leader writes ANNOTATION_KICK into it.
 *
 * Bounded: WAKER_NODES nodes with more room are remembered. A turn, one a second, wakes WAKER_BURST
 * pods, and a pod is woken for room once in WAKER_AGAIN. A node is forgotten when no pod is left
 * that fits and was not woken since the node got its room. */

#include "scheduler/question/scheduler_context.h"

/* Nodes that are remembered; patches of one turn. */
enum { WAKER_NODES = 64, WAKER_BURST = 16 };
#define WAKER_AGAIN (30 * USEC_PER_SEC)
/* kube-scheduler's longest backoff (podMaxBackoffSeconds): by then it has asked again by itself. */
#define WAKER_PATIENCE (10 * USEC_PER_SEC)

typedef struct Waker Waker;

/* Listens to View: its fences, the end of its hold, and the end of a gang's Bindings. patience:
 * WAKER_PATIENCE. Returns 0, -ENOMEM or the error of sd-event. */
int waker_new(SchedulerContext *context, usec_t patience, Waker **ret);
Waker *waker_free(Waker *w); /* before context and view */

/* The node has more room: pods that wait may fit on it soon. */
void waker_room(Waker *w, Str node);

/* A pod on a node has ended. Wakes, once for each question, pods that fit by the ledger and were
 * not asked about since. */
void waker_pod_ended(Waker *w);

/* Wakes the pods that wait for a gang with their preemption (unsettled.h), whether they fit or not.
 * To be called when a gang has given planned cards back, its last Binding has ended, or the attempt
 * of a gang without cards has. */
void waker_settled(Waker *w);

DEFINE_CLEANUP(Waker *, waker_free)
