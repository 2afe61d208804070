/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What /metrics shows, in the text format of Prometheus. The code that does a thing counts it in
 * these counters. Gauges are sums of the ledger, computed when /metrics is read. */

#include "base/buf.h"
#include "base/histogram.h"
#include "scheduler/view/view.h"
#include "scheduler/webhook/webhook.h"
#include "share/refusal.h"

/* Names of the enum and values of the metric's label. */
#define METRICS_HANDLERS(X)                                                                                  \
        X(FILTER, "filter")                                                                                  \
        X(PRIORITIZE, "prioritize") X(BIND, "bind") X(PREEMPT, "preempt") X(INSPECT, "inspect")

#define METRICS_BINDS(X)                                                                                     \
        X(BOUND, "bound")         /* by this Binding */                                                      \
        X(ALREADY, "already")     /* by an earlier request */                                                \
        X(REFUSED, "refused")     /* by us: no room, or the pod is gone */                                   \
        X(REJECTED, "rejected")   /* by the API server; the reservation ends */                              \
        X(ELSEWHERE, "elsewhere") /* by another scheduler meanwhile */                                       \
        X(UNKNOWN, "unknown")     /* at first; the final outcome is counted, too */

#define METRICS_EVICTIONS(X)                                                                                 \
        X(DONE, "done")       /* the pod is being deleted, or was gone */                                    \
        X(REFUSED, "refused") /* 429: by a PodDisruptionBudget */                                            \
        X(FAILED, "failed")   /* any other answer, or none */

typedef enum MetricsHandler {
#define X(name, label) METRICS_HANDLER_##name,
        METRICS_HANDLERS(X)
#undef X
                METRICS_HANDLER_MAX_,
} MetricsHandler;

typedef enum MetricsBind {
#define X(name, label) METRICS_BIND_##name,
        METRICS_BINDS(X)
#undef X
                METRICS_BIND_MAX_,
} MetricsBind;

typedef enum MetricsEviction {
#define X(name, label) METRICS_EVICTION_##name,
        METRICS_EVICTIONS(X)
#undef X
                METRICS_EVICTION_MAX_,
} MetricsEviction;

typedef struct Metrics {
        uint64_t refusals[REFUSAL_MAX_]; /* nodes that filter refused, and pods that bind refused */
        uint64_t binds[METRICS_BIND_MAX_];
        uint64_t evictions[METRICS_EVICTION_MAX_]; /* by the evictor */
        uint64_t errors[METRICS_HANDLER_MAX_];     /* answers other than 200 */
        Histogram handlers[METRICS_HANDLER_MAX_];
} Metrics;

typedef struct MetricsState {
        bool leading;
        uint64_t binds_open;
        const WebhookCounts *webhook; /* NULL: no webhook */
        /* When the API server last sent something of this kind, by the monotonic clock; 0: never.
         * NULL: not known. */
        usec_t (*heard)(void *userdata, ViewKind kind);
        void *userdata;
} MetricsState;

void metrics_write(const Metrics *m, const View *v, const MetricsState *state, Buf *out);
