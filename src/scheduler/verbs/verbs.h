/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The requests to the extender that are answered at once, from the body and the view, without
 * sockets: filter.c, prioritize.c and preempt.c, verb_inspect.c and verb_why.c.
 *
 * They change neither the ledger nor the cluster: kube-scheduler may ask about one pod many times,
 * and any client may ask about pods and nodes that do not exist. (Only the chooser of gangs charges
 * its plan.) No answer of filter depends on what they remember. prioritize notes where it sent the
 * pod (promises.h); filter and preempt note which pods wait (pending.h). filter also writes an
 * Event about the nearest cards.
 *
 * Each function uses c->now and c->arena, appends its answer to *out and returns the HTTP status:
 * 200 with JSON, or an error with one sentence. */

#include "scheduler/question/scheduler_context.h"

unsigned verb_filter(SchedulerContext *c, Str body, Buf *out);
unsigned verb_prioritize(SchedulerContext *c, Str body, Buf *out);
unsigned verb_preempt(SchedulerContext *c, Str body, Buf *out);

/* name: of one node; empty: all. 404 when the node has neither cards nor pods. */
unsigned verb_inspect(SchedulerContext *c, Str name, Buf *out);

/* uid: of a pending pod. The answer is a text for people. 404 when no such pod waits. */
unsigned verb_why(SchedulerContext *c, Str uid, Buf *out);

/* Answers a nonzero result r of args_read() that no visitor returned: replaces *out by the text.
 * Returns 503 for r < 0 (out of memory), else 400 with the fault. */
unsigned verb_failed(int r, const Fault *fault, Buf *out);
