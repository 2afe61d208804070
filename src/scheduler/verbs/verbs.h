/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The requests of the extender that are answered at once, from the body and the view, without
 * sockets: filter.c, prioritize.c and preempt.c, verb_inspect.c and verb_why.c.
 *
 * They change neither the ledger nor the cluster: kube-scheduler may ask about one pod many times,
 * and any client may ask about pods and nodes that do not exist. What is remembered changes no
 * answer of filter. prioritize notes where it sent the pod (promises.h), and filter and preempt
 * note which pods wait (pending.h). filter also writes an Event about the nearest cards
 * (nearest.h).
 *
 * Each function appends its answer to *out and returns the HTTP status: 200 and JSON, or an error
 * and one sentence. */

#include "scheduler/gang/gangs.h"
#include "scheduler/question/candidates.h"
#include "scheduler/question/nearest.h"
#include "scheduler/question/pending.h"
#include "scheduler/question/promises.h"
#include "scheduler/view/metrics.h"
#include "scheduler/view/view.h"

typedef struct VerbContext {
        View *view;
        Metrics *metrics;
        Promises *promises;      /* prioritize reads and makes them */
        Pending *pending;        /* NULL: another replica leads */
        NearestEvents *nearest;  /* NULL: another replica leads, and writes them */
        uint32_t filter_best;    /* --filter-best; 0: filter answers all nodes that fit */
        bool spare_idle_cards;   /* --spare-idle-cards: prioritize (prioritize.c) */
        const Chooser *choosers; /* asked by filter, in this order */
        size_t n_choosers;       /* at most CHOOSERS_MAX */
        Gangs *gangs;            /* NULL: off, or another replica leads */
        usec_t now;
        Arena *arena; /* of this request */
} VerbContext;

unsigned verb_filter(const VerbContext *c, Str body, Buf *out);
unsigned verb_prioritize(const VerbContext *c, Str body, Buf *out);
unsigned verb_preempt(const VerbContext *c, Str body, Buf *out);

/* name: of one node, empty for all. 404 when it is no sharing node. */
unsigned verb_inspect(const VerbContext *c, Str name, Buf *out);

/* uid: of a pending pod. The answer is a text for people. 404 when no such pod waits. */
unsigned verb_why(const VerbContext *c, Str uid, Buf *out);

/* The answer for a nonzero result of args_read() that no visitor returned: the status, and the text
 * in *out. */
unsigned verb_failed(int r, const Fault *fault, Buf *out);
