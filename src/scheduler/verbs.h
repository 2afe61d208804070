/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The questions of the extender that are answered at once, from the body of the request and the
 * view, without sockets and without changing either: kube-scheduler may ask about one pod many
 * times, and the cluster autoscaler asks about pods and nodes that will never be. Only prioritize
 * leaves something behind: advice to itself (promises.h). Each appends its answer to *out and
 * returns the HTTP status: 200 and JSON, or an error and one sentence. */

#include "scheduler/metrics.h"
#include "scheduler/promises.h"
#include "scheduler/view.h"
#include "scheduler/waiters.h"

typedef struct VerbContext {
        View *view;
        Metrics *metrics;
        Promises *promises; /* prioritize reads and makes them */
        Waiters *waiters;   /* filter and preempt tell them; NULL: the evictor is off */
        usec_t now;
        Arena *arena; /* of this request */
} VerbContext;

unsigned filter_answer(const VerbContext *c, Str body, Buf *out);
unsigned prioritize_answer(const VerbContext *c, Str body, Buf *out);
unsigned preempt_answer(const VerbContext *c, Str body, Buf *out);

/* name: of one node, empty for all. 404 when that is no sharing node. */
unsigned inspect_answer(const VerbContext *c, Str name, Buf *out);

/* The request of a pod, for verbs: 0, REQUEST_E_NONE, REQUEST_E_REFUSED or -ENOMEM. */
unsigned verb_failed(int r, const Fault *fault,
                     Buf *out); /* the status for what args_read() returned, and its text */
