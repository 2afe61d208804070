/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The requests of the extender that are answered at once, from the body of the request and the
 * view, without sockets: filter.c, prioritize.c, preempt.c, and GET /inspect in verb_inspect.c.
 * They change neither the view nor the cluster: kube-scheduler may ask about one pod many times,
 * and the cluster autoscaler asks about pods and nodes that do not exist. Two things are
 * remembered, and neither changes an answer of filter: prioritize notes where it sent the pod
 * (promises.h), and filter and preempt note which pods find no card (waiters.h).
 *
 * Each function appends its answer to *out and returns the HTTP status: 200 and JSON, or an error
 * and one sentence. */

#include "scheduler/metrics.h"
#include "scheduler/promises.h"
#include "scheduler/view.h"
#include "scheduler/waiters.h"

typedef struct VerbContext {
        View *view;
        Metrics *metrics;
        Promises *promises; /* prioritize reads and makes them */
        Waiters *waiters;   /* NULL: the evictor is off */
        usec_t now;
        Arena *arena; /* of this request */
} VerbContext;

unsigned verb_filter(const VerbContext *c, Str body, Buf *out);
unsigned verb_prioritize(const VerbContext *c, Str body, Buf *out);
unsigned verb_preempt(const VerbContext *c, Str body, Buf *out);

/* name: of one node, empty for all. 404 when it is no sharing node. */
unsigned verb_inspect(const VerbContext *c, Str name, Buf *out);

/* The answer for a nonzero result of args_read() that no visitor returned: the status, and the text
 * in *out. */
unsigned verb_failed(int r, const Fault *fault, Buf *out);
