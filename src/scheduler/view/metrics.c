/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/metrics.h"

#include <stddef.h>

#include "base/cleanup.h"
#include "base/metric_text.h"

static const char *const handler_labels[] = {
#define X(name, label) [METRICS_HANDLER_##name] = label,
        METRICS_HANDLERS(X)
#undef X
};

static const char *const bind_labels[] = {
#define X(name, label) [METRICS_BIND_##name] = label,
        METRICS_BINDS(X)
#undef X
};

static const char *const kind_labels[] = {[VIEW_NODES] = "nodes",
                                          [VIEW_PODS] = "pods",
                                          [VIEW_CONFIGMAPS] = "configmaps",
                                          [VIEW_BUDGETS] = "poddisruptionbudgets",
                                          [VIEW_POLICIES] = "resourcepolicies"};

/* ---- sums of the ledger ---- */

typedef struct Sums {
        uint64_t nodes, cards, unhealthy, grants;
        uint64_t bytes, bytes_used, bytes_pending;
        uint64_t core, core_used; /* percent */
        uint64_t pods_waiting, in_sync, leading, binds_open;
} Sums;

static void add_bytes(uint64_t *sum, uint64_t units, MemoryUnit unit) {
        uint64_t bytes;

        if (__builtin_mul_overflow(units, (uint64_t) unit.mib << 20, &bytes) ||
            __builtin_add_overflow(*sum, bytes, sum))
                *sum = UINT64_MAX;
}

/* Of a node of whole cards the unit is a card, and what memory it has is not known here. */
static bool has_units(const LedgerNode *n) {
        return !share_mode_has_whole(ledger_node_mode(n));
}

static void sum_node(const LedgerNode *n, Sums *s) {
        const LedgerCard *cards = ledger_node_cards(n);
        MemoryUnit unit = has_units(n) ? ledger_node_unit(n) : (MemoryUnit){0};
        uint64_t total = 0, used = 0;

        for (size_t i = 0; i < ledger_node_n_cards(n); i++) {
                LedgerUse shown = ledger_node_shown(n, &cards[i]);

                s->cards += cards[i].units > 0;
                s->unhealthy += cards[i].units > 0 && !cards[i].healthy;
                total += cards[i].units;
                used += shown.mem;
                s->core += share_mode_has_core(ledger_node_mode(n)) && cards[i].units > 0 ? 100 : 0;
                s->core_used += shown.core;
        }
        add_bytes(&s->bytes, total, unit);
        add_bytes(&s->bytes_used, used, unit);
        add_bytes(&s->bytes_pending, ledger_node_pending(n), unit);
}

/* Whether the node counts in the sums: the unit of a node that shares nothing has no meaning. */
static bool has_memory(const LedgerNode *n) {
        return ledger_node_n_cards(n) > 0 || ledger_node_pending(n) > 0;
}

static Sums take_sums(const View *v, const MetricsState *state) {
        Sums s = {
                .nodes = directory_size(v->directory),
                .in_sync = view_in_sync(v),
                .leading = state->leading,
                .binds_open = state->binds_open,
        };

        for (size_t i = 0; i < ledger_n_nodes(v->ledger); i++)
                if (has_memory(ledger_node_at(v->ledger, i)))
                        sum_node(ledger_node_at(v->ledger, i), &s);
        for (const ViewPod *pod = v->pods; pod; pod = pod->hh.next) {
                s.grants += pod->grant != NULL;
                s.pods_waiting += pod->request != NULL;
        }
        return s;
}

static const MetricRow gauges[] = {
        {"aliquot_scheduler_nodes", "gauge", "Node objects known.", offsetof(Sums, nodes)},
        {"aliquot_scheduler_cards", "gauge", "Cards that nodes share.", offsetof(Sums, cards)},
        {"aliquot_scheduler_cards_unhealthy", "gauge", "Cards that are out of service.",
         offsetof(Sums, unhealthy)},
        {"aliquot_scheduler_memory_bytes", "gauge", "GPU memory on all cards, in whole units.",
         offsetof(Sums, bytes)},
        {"aliquot_scheduler_memory_used_bytes", "gauge", "GPU memory that pods hold.",
         offsetof(Sums, bytes_used)},
        {"aliquot_scheduler_memory_pending_bytes", "gauge", "GPU memory of bound pods that have no card yet.",
         offsetof(Sums, bytes_pending)},
        {"aliquot_scheduler_compute_cards", "gauge", "Cards whose time is given out in shares.",
         offsetof(Sums, core), METRIC_PERCENT},
        {"aliquot_scheduler_compute_used_cards", "gauge", "Shares of time that pods hold, in cards.",
         offsetof(Sums, core_used), METRIC_PERCENT},
        {"aliquot_scheduler_grants", "gauge", "Pods with a slice or a reservation.", offsetof(Sums, grants)},
        {"aliquot_scheduler_pods_waiting", "gauge", "Pods that wait for a slice.",
         offsetof(Sums, pods_waiting)},
        {"aliquot_scheduler_binds_open", "gauge", "Bindings without a known outcome.",
         offsetof(Sums, binds_open)},
        {"aliquot_scheduler_in_sync", "gauge", "1 when nodes and pods have been listed.",
         offsetof(Sums, in_sync)},
        {"aliquot_scheduler_leading", "gauge", "1 when this replica may bind.", offsetof(Sums, leading)},
};

/* Gauges with one series per node. */
static const MetricRow node_gauges[] = {
        {"aliquot_scheduler_node_cards", "gauge", "Cards that the node shares.", offsetof(Sums, cards)},
        {"aliquot_scheduler_node_cards_unhealthy", "gauge", "Cards of the node that are out of service.",
         offsetof(Sums, unhealthy)},
        {"aliquot_scheduler_node_memory_bytes", "gauge", "GPU memory on the node's cards, in whole units.",
         offsetof(Sums, bytes)},
        {"aliquot_scheduler_node_memory_used_bytes", "gauge", "GPU memory of the node that pods hold.",
         offsetof(Sums, bytes_used)},
        {"aliquot_scheduler_node_compute_cards", "gauge",
         "Cards of the node whose time is given out in shares.", offsetof(Sums, core), METRIC_PERCENT},
        {"aliquot_scheduler_node_compute_used_cards", "gauge",
         "Shares of time that pods hold on the node, in cards.", offsetof(Sums, core_used), METRIC_PERCENT},
};

static void write_gauges(const Sums *s, Buf *out) {
        for (size_t i = 0; i < ELEMENTSOF(gauges); i++) {
                metric_text_head(out, gauges[i].name, gauges[i].type, gauges[i].help);
                buf_appendf(out, "%s ", gauges[i].name);
                metric_text_value(out, &gauges[i], s);
        }
}

static void write_node(const MetricRow *g, const LedgerNode *n, Buf *out) {
        bool memory = g->offset == offsetof(Sums, bytes) || g->offset == offsetof(Sums, bytes_used);
        Str name = ledger_node_name(n);
        Sums s = {0};

        if (memory && !has_units(n))
                return;
        sum_node(n, &s);
        buf_appendf(out, "%s{node=\"" STR_FMT "\"} ", g->name, STR_ARG(name));
        metric_text_value(out, g, &s);
}

/* Whether there is a Node object with cards. The ledger keeps a node that is gone as long as pods
 * are bound to it. */
static bool is_there(const View *v, const LedgerNode *n) {
        return ledger_node_n_cards(n) > 0 && directory_find(v->directory, ledger_node_name(n));
}

static void write_nodes(const View *v, Buf *out) {
        const Ledger *l = v->ledger;

        for (size_t g = 0; g < ELEMENTSOF(node_gauges); g++) {
                metric_text_head(out, node_gauges[g].name, node_gauges[g].type, node_gauges[g].help);
                for (size_t i = 0; i < ledger_n_nodes(l); i++)
                        if (is_there(v, ledger_node_at(l, i)))
                                write_node(&node_gauges[g], ledger_node_at(l, i), out);
        }
}

/* ---- counters ---- */

static void write_counter(const char *name, const char *label, const char *value, uint64_t count, Buf *out) {
        buf_appendf(out, "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long) count);
}

/* Writes a counter with one label: one series for each of its n values. */
static void write_family(const char *name, const char *help, const char *label, const char *const *values,
                         const uint64_t *counts, size_t n, Buf *out) {
        metric_text_head(out, name, "counter", help);
        for (size_t i = 0; i < n; i++)
                write_counter(name, label, values[i], counts[i], out);
}

static void write_counters(const Metrics *m, Buf *out) {
        static const char *const evictions[] = {
#define X(name, label) [METRICS_EVICTION_##name] = (label),
                METRICS_EVICTIONS(X)
#undef X
        };
        const char *reasons[REFUSAL_MAX_];

        for (int i = 0; i < REFUSAL_MAX_; i++)
                reasons[i] = refusal_label((RefusalCode) i);
        write_family("aliquot_scheduler_refusals_total",
                     "Nodes that filter refused, and pods that bind refused, by reason.", "reason",
                     reasons + REFUSAL_NONE + 1, m->refusals + REFUSAL_NONE + 1,
                     REFUSAL_MAX_ - REFUSAL_NONE - 1, out);
        write_family("aliquot_scheduler_binds_total", "Bind requests by what became of them.", "outcome",
                     bind_labels, m->binds, METRICS_BIND_MAX_, out);
        write_family("aliquot_scheduler_errors_total", "Requests that were answered with an error.",
                     "handler", handler_labels, m->errors, METRICS_HANDLER_MAX_, out);
        write_family("aliquot_scheduler_evictions_total",
                     "Pods evicted to free a card, by what became of it.", "outcome", evictions, m->evictions,
                     METRICS_EVICTION_MAX_, out);
}

static void write_view(const ViewStats *s, Buf *out) {
        static const struct {
                const char *name, *help;
                size_t offset;
        } counters[] = {
                {"aliquot_scheduler_view_objects_total", "Objects that lists and watches brought.",
                 offsetof(ViewStats, objects)},
                {"aliquot_scheduler_view_malformed_total", "Objects that could not be read.",
                 offsetof(ViewStats, malformed)},
                {"aliquot_scheduler_view_lists_total", "Complete lists.", offsetof(ViewStats, lists)},
                {"aliquot_scheduler_view_differences_total", "Differences that a later list found.",
                 offsetof(ViewStats, differences)},
        };

        for (size_t i = 0; i < ELEMENTSOF(counters); i++) {
                const uint64_t *values =
                        (const uint64_t *) (const void *) ((const char *) s + counters[i].offset);

                write_family(counters[i].name, counters[i].help, "kind", kind_labels, values, VIEW_KINDS_,
                             out);
        }
}

static void write_policies(const PolicyTable *t, Buf *out) {
        const char *name = "aliquot_scheduler_policy_notes_expired_total";

        metric_text_head(out, name, "counter",
                         "Pods counted in a unit of a ResourcePolicy by filter, and not bound in time.");
        buf_appendf(out, "%s %llu\n", name, (unsigned long long) t->notes_expired);
}

static void write_webhook(const WebhookCounts *c, Buf *out) {
        static const char *const verdicts[REVIEW_VERDICTS_] = {
                [REVIEW_ALLOWED] = "allowed", [REVIEW_PATCHED] = "patched", [REVIEW_REFUSED] = "refused"};

        write_family("aliquot_scheduler_reviews_total", "Admission reviews by what was answered.", "verdict",
                     verdicts, c->verdicts, REVIEW_VERDICTS_, out);
        write_counter("aliquot_scheduler_reviews_total", "verdict", "malformed", c->malformed, out);
        if (c->certificate_end == 0)
                return;
        metric_text_head(out, "aliquot_scheduler_webhook_certificate_end_seconds", "gauge",
                         "When the webhook's certificate runs out, since 1970.");
        buf_appendf(out, "aliquot_scheduler_webhook_certificate_end_seconds %lld\n",
                    (long long) c->certificate_end);
        if (c->authority_end == 0)
                return;
        metric_text_head(out, "aliquot_scheduler_webhook_ca_end_seconds", "gauge",
                         "When the webhook's CA runs out, since 1970.");
        buf_appendf(out, "aliquot_scheduler_webhook_ca_end_seconds %lld\n", (long long) c->authority_end);
}

/* ---- times ---- */

static void write_watches(const View *v, const MetricsState *state, Buf *out) {
        usec_t now = clock_monotonic_usec();

        metric_text_head(out, "aliquot_scheduler_watch_silence_seconds", "gauge",
                         "Time since the API server last sent an event, a bookmark or a list.");
        for (int i = 0; i < VIEW_KINDS_; i++) {
                usec_t heard = state->heard ? state->heard(state->userdata, (ViewKind) i) : 0;

                if (heard == 0)
                        continue;
                buf_appendf(out, "aliquot_scheduler_watch_silence_seconds{kind=\"%s\"} ", kind_labels[i]);
                metric_text_seconds(out, now > heard ? now - heard : 0);
        }
        metric_text_head(out, "aliquot_scheduler_watch_lag_seconds", "histogram",
                         "Time from the answer to a Binding until the watch shows the pod bound.");
        metric_text_histogram(out, "aliquot_scheduler_watch_lag_seconds", "kind", kind_labels[VIEW_PODS],
                              &v->stats.lag);
}

static void write_handlers(const Metrics *m, Buf *out) {
        metric_text_head(out, "aliquot_scheduler_handler_seconds", "histogram",
                         "Time from request to answer; bind includes the API server's.");
        for (int i = 0; i < METRICS_HANDLER_MAX_; i++)
                metric_text_histogram(out, "aliquot_scheduler_handler_seconds", "handler", handler_labels[i],
                                      &m->handlers[i]);
}

void metrics_write(const Metrics *m, const View *v, const MetricsState *state, Buf *out) {
        Sums sums = take_sums(v, state);

        write_gauges(&sums, out);
        write_nodes(v, out);
        write_counters(m, out);
        write_view(&v->stats, out);
        write_policies(v->policies, out);
        if (state->webhook)
                write_webhook(state->webhook, out);
        write_watches(v, state, out);
        write_handlers(m, out);
        metric_text_head(out, "aliquot_scheduler_build_info", "gauge",
                         "1, with the version of the scheduler.");
        buf_append_str(out, STR("aliquot_scheduler_build_info{version=\"" ALIQUOT_VERSION "\"} 1\n"));
}
