/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/metrics.h"

#include <stddef.h>

#include "base/cleanup.h"

static const usec_t bucket_usec[METRICS_BUCKETS] = {50,    100,   250,    500,    1000,    2500,   5000,
                                                    10000, 50000, 100000, 500000, 1000000, 5000000};
static const char *const bucket_text[METRICS_BUCKETS] = {"0.00005", "0.0001", "0.00025", "0.0005", "0.001",
                                                         "0.0025",  "0.005",  "0.01",    "0.05",   "0.1",
                                                         "0.5",     "1",      "5"};

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
                                          [VIEW_BUDGETS] = "poddisruptionbudgets"};

void metrics_observe(Histogram *h, usec_t elapsed) {
        size_t i = 0;

        while (i < METRICS_BUCKETS && elapsed > bucket_usec[i])
                i++;
        if (i < METRICS_BUCKETS)
                h->buckets[i]++;
        h->count++;
        h->sum_usec += elapsed;
}

/* ---- sums of the ledger ---- */

typedef struct Sums {
        uint64_t nodes, cards, unhealthy, core, core_used, grants;
        uint64_t bytes, bytes_used, bytes_pending;
        uint64_t pods_waiting, in_sync, leading, binds_open;
} Sums;

/* Memory of all nodes with one unit. */
typedef struct UnitSums {
        uint32_t unit_mib;
        uint64_t total, used, pending; /* units */
} UnitSums;

typedef struct UnitList {
        UnitSums *items;
        size_t n, room;
} UnitList;

/* NULL: no memory. Nodes have a handful of different units. */
static UnitSums *unit_sums(UnitList *list, MemoryUnit unit) {
        for (size_t i = 0; i < list->n; i++)
                if (list->items[i].unit_mib == unit.mib)
                        return &list->items[i];
        if (list->n == list->room) {
                size_t room = list->room > 0 ? 2 * list->room : 8;
                UnitSums *items = realloc(list->items, room * sizeof *items);

                if (!items)
                        return NULL;
                list->items = items;
                list->room = room;
        }
        list->items[list->n] = (UnitSums){.unit_mib = unit.mib};
        return &list->items[list->n++];
}

static void add_bytes(uint64_t *sum, uint64_t units, MemoryUnit unit) {
        uint64_t bytes;

        if (__builtin_mul_overflow(units, (uint64_t) unit.mib << 20, &bytes) ||
            __builtin_add_overflow(*sum, bytes, sum))
                *sum = UINT64_MAX;
}

static void sum_node(const LedgerNode *n, Sums *s, UnitSums *memory) {
        const LedgerCard *cards = ledger_node_cards(n);
        MemoryUnit unit = ledger_node_unit(n);
        uint64_t total = 0, used = 0;

        for (size_t i = 0; i < ledger_node_n_cards(n); i++) {
                s->cards += cards[i].units > 0;
                s->unhealthy += cards[i].units > 0 && !cards[i].healthy;
                total += cards[i].units;
                used += cards[i].used;
                s->core += share_mode_has_core(ledger_node_mode(n)) && cards[i].units > 0 ? 100 : 0;
                s->core_used += cards[i].core_used;
        }
        memory->total += total;
        memory->used += used;
        memory->pending += ledger_node_pending(n);
        add_bytes(&s->bytes, total, unit);
        add_bytes(&s->bytes_used, used, unit);
        add_bytes(&s->bytes_pending, ledger_node_pending(n), unit);
}

/* Nodes that share nothing are left out: their unit means nothing. */
static bool has_memory(const LedgerNode *n) {
        return ledger_node_n_cards(n) > 0 || ledger_node_pending(n) > 0;
}

static Sums take_sums(const View *v, const MetricsState *state, UnitList *units, Buf *out) {
        Sums s = {
                .nodes = directory_size(v->directory),
                .in_sync = view_in_sync(v),
                .leading = state->leading,
                .binds_open = state->binds_open,
        };

        for (size_t i = 0; i < ledger_n_nodes(v->ledger); i++) {
                const LedgerNode *n = ledger_node_at(v->ledger, i);
                UnitSums *memory = has_memory(n) ? unit_sums(units, ledger_node_unit(n)) : NULL;

                if (memory)
                        sum_node(n, &s, memory);
                else
                        out->broken |= has_memory(n);
        }
        for (const ViewPod *pod = v->pods; pod; pod = pod->hh.next) {
                s.grants += pod->grant != NULL;
                s.pods_waiting += pod->request != NULL;
        }
        return s;
}

static const struct {
        const char *name, *help;
        size_t offset;
} gauges[] = {
        {"nodes", "Node objects known.", offsetof(Sums, nodes)},
        {"cards", "Cards that nodes share.", offsetof(Sums, cards)},
        {"cards_unhealthy", "Cards that are out of service.", offsetof(Sums, unhealthy)},
        {"memory_bytes", "GPU memory on all cards, in whole units of their nodes.", offsetof(Sums, bytes)},
        {"memory_bytes_used", "GPU memory that pods hold on cards.", offsetof(Sums, bytes_used)},
        {"memory_bytes_pending", "GPU memory of bound pods that have no card yet.",
         offsetof(Sums, bytes_pending)},
        {"core_percent", "Percent of compute on all cards.", offsetof(Sums, core)},
        {"core_percent_used", "Percent of compute that pods hold.", offsetof(Sums, core_used)},
        {"grants", "Pods that hold a slice, reservations included.", offsetof(Sums, grants)},
        {"pods_waiting", "Pods that ask for a slice and are not bound.", offsetof(Sums, pods_waiting)},
        {"binds_open", "Bindings whose outcome is not known yet.", offsetof(Sums, binds_open)},
        {"in_sync", "1 when nodes and pods have been listed.", offsetof(Sums, in_sync)},
        {"leading", "1 when this replica may bind.", offsetof(Sums, leading)},
};

#define PREFIX "aliquot_scheduler_"

static void write_head(const char *name, const char *help, const char *type, Buf *out) {
        buf_appendf(out, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void write_gauges(const Sums *s, Buf *out) {
        for (size_t i = 0; i < ELEMENTSOF(gauges); i++) {
                uint64_t value = *(const uint64_t *) ((const char *) s + gauges[i].offset);

                write_head(gauges[i].name, gauges[i].help, "gauge", out);
                buf_appendf(out, PREFIX "%s %llu\n", gauges[i].name, (unsigned long long) value);
        }
}

/* One series per unit, because amounts in different units cannot be added. */
static void write_units(const UnitList *units, Buf *out) {
        static const struct {
                const char *name, *help;
                size_t offset;
        } unit_gauges[] = {
                {"memory_units", "Units of GPU memory on all cards of nodes with this unit.",
                 offsetof(UnitSums, total)},
                {"memory_units_used", "Units of GPU memory that pods hold on cards of nodes with this unit.",
                 offsetof(UnitSums, used)},
                {"memory_units_pending",
                 "Units of bound pods that have no card yet, on nodes with this unit.",
                 offsetof(UnitSums, pending)},
        };

        for (size_t i = 0; i < ELEMENTSOF(unit_gauges); i++) {
                write_head(unit_gauges[i].name, unit_gauges[i].help, "gauge", out);
                for (const UnitSums *u = units->items; u < units->items + units->n; u++) {
                        uint64_t value =
                                *(const uint64_t *) (const void *) ((const char *) u + unit_gauges[i].offset);

                        buf_appendf(out, PREFIX "%s{unit=\"", unit_gauges[i].name);
                        memory_unit_format((MemoryUnit){u->unit_mib}, out);
                        buf_appendf(out, "\"} %llu\n", (unsigned long long) value);
                }
        }
}

/* ---- counters ---- */

static void write_counter(const char *name, const char *label, const char *value, uint64_t count, Buf *out) {
        buf_appendf(out, PREFIX "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long) count);
}

static void write_counters(const Metrics *m, Buf *out) {
        write_head("refusals_total", "Nodes that filter refused, and pods that bind refused, by reason.",
                   "counter", out);
        for (int i = REFUSAL_NONE + 1; i < REFUSAL_MAX_; i++)
                write_counter("refusals_total", "reason", refusal_label((RefusalCode) i), m->refusals[i],
                              out);
        write_head("binds_total", "Bind requests by what became of them.", "counter", out);
        for (int i = 0; i < METRICS_BIND_MAX_; i++)
                write_counter("binds_total", "outcome", bind_labels[i], m->binds[i], out);
        write_head("errors_total", "Requests that were answered with an error.", "counter", out);
        for (int i = 0; i < METRICS_HANDLER_MAX_; i++)
                write_counter("errors_total", "handler", handler_labels[i], m->errors[i], out);
}

static void write_evictions(const Metrics *m, Buf *out) {
        static const char *const labels[] = {
#define X(name, label) [METRICS_EVICTION_##name] = (label),
                METRICS_EVICTIONS(X)
#undef X
        };

        write_head("evictions_total", "Pods evicted to free a card, by what became of it.", "counter", out);
        for (int i = 0; i < METRICS_EVICTION_MAX_; i++)
                write_counter("evictions_total", "outcome", labels[i], m->evictions[i], out);
}

static void write_view(const ViewStats *s, Buf *out) {
        static const struct {
                const char *name, *help;
                size_t offset;
        } counters[] = {
                {"view_objects_total", "Objects that lists and watches brought.",
                 offsetof(ViewStats, objects)},
                {"view_malformed_total", "Objects that could not be read.", offsetof(ViewStats, malformed)},
                {"view_lists_total", "Complete lists.", offsetof(ViewStats, lists)},
                {"view_differences_total", "Differences that a later list found.",
                 offsetof(ViewStats, differences)},
        };

        for (size_t i = 0; i < ELEMENTSOF(counters); i++) {
                const uint64_t *values =
                        (const uint64_t *) (const void *) ((const char *) s + counters[i].offset);

                write_head(counters[i].name, counters[i].help, "counter", out);
                for (int kind = 0; kind < VIEW_KINDS_; kind++)
                        write_counter(counters[i].name, "kind", kind_labels[kind], values[kind], out);
        }
}

static void write_webhook(const WebhookCounts *c, Buf *out) {
        static const char *const verdicts[REVIEW_VERDICTS_] = {
                [REVIEW_ALLOWED] = "allowed", [REVIEW_PATCHED] = "patched", [REVIEW_REFUSED] = "refused"};

        write_head("reviews_total", "Admission reviews by what was answered.", "counter", out);
        for (int i = 0; i < REVIEW_VERDICTS_; i++)
                write_counter("reviews_total", "verdict", verdicts[i], c->verdicts[i], out);
        write_counter("reviews_total", "verdict", "malformed", c->malformed, out);
        if (c->certificate_end == 0)
                return;
        write_head("webhook_certificate_end_seconds", "When the webhook's certificate runs out, since 1970.",
                   "gauge", out);
        buf_appendf(out, PREFIX "webhook_certificate_end_seconds %lld\n", (long long) c->certificate_end);
}

/* ---- histograms ---- */

static void write_histogram(const char *handler, const Histogram *h, Buf *out) {
        uint64_t sum = 0;

        for (size_t i = 0; i < METRICS_BUCKETS; i++) {
                sum += h->buckets[i];
                buf_appendf(out, PREFIX "handler_seconds_bucket{handler=\"%s\",le=\"%s\"} %llu\n", handler,
                            bucket_text[i], (unsigned long long) sum);
        }
        buf_appendf(out, PREFIX "handler_seconds_bucket{handler=\"%s\",le=\"+Inf\"} %llu\n", handler,
                    (unsigned long long) h->count);
        buf_appendf(out, PREFIX "handler_seconds_sum{handler=\"%s\"} %llu.%06llu\n", handler,
                    (unsigned long long) (h->sum_usec / USEC_PER_SEC),
                    (unsigned long long) (h->sum_usec % USEC_PER_SEC));
        buf_appendf(out, PREFIX "handler_seconds_count{handler=\"%s\"} %llu\n", handler,
                    (unsigned long long) h->count);
}

void metrics_write(const Metrics *m, const View *v, const MetricsState *state, Buf *out) {
        UnitList units = {0};
        Sums sums = take_sums(v, state, &units, out);

        write_gauges(&sums, out);
        write_units(&units, out);
        free(units.items);
        write_counters(m, out);
        write_evictions(m, out);
        write_view(&v->stats, out);
        if (state->webhook)
                write_webhook(state->webhook, out);
        write_head("handler_seconds", "Time from request to answer; bind includes the API server's.",
                   "histogram", out);
        for (int i = 0; i < METRICS_HANDLER_MAX_; i++)
                write_histogram(handler_labels[i], &m->handlers[i], out);
}
