/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric_text.h"

#include <math.h>

void metric_text_head(Buf *out, const char *name, const char *type, const char *help) {
        buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metric_text_label(Buf *out, const char *name, const char *value) {
        if (out->len > 0 && out->data[out->len - 1] != '{')
                buf_append_char(out, ',');
        buf_append_str(out, str_from(name));
        buf_append_str(out, STR("=\""));
        for (const char *p = value; *p; p++) {
                if (*p == '\n')
                        buf_append_str(out, STR("\\n"));
                else {
                        if (*p == '"' || *p == '\\')
                                buf_append_char(out, '\\');
                        buf_append_char(out, *p);
                }
        }
        buf_append_char(out, '"');
}

void metric_text_number(Buf *out, const char *name, const char *type, const char *help, uint64_t value) {
        metric_text_head(out, name, type, help);
        buf_appendf(out, "%s %llu\n", name, (unsigned long long) value);
}

void metric_text_seconds(Buf *out, usec_t usec) {
        buf_appendf(out, "%llu.%06llu\n", (unsigned long long) (usec / USEC_PER_SEC),
                    (unsigned long long) (usec % USEC_PER_SEC));
}

static void series(Buf *out, const char *name, const char *suffix, const char *label, const char *value) {
        buf_appendf(out, "%s%s{", name, suffix);
        metric_text_label(out, label, value);
}

void metric_text_histogram(Buf *out, const char *name, const char *label, const char *value,
                           const Histogram *h) {
        uint64_t sum = 0;

        for (size_t i = 0; i <= HISTOGRAM_BUCKETS; i++) {
                sum = i < HISTOGRAM_BUCKETS ? sum + h->buckets[i] : h->count;
                series(out, name, "_bucket", label, value);
                metric_text_label(out, "le", i < HISTOGRAM_BUCKETS ? histogram_bound(i) : "+Inf");
                buf_appendf(out, "} %llu\n", (unsigned long long) sum);
        }
        series(out, name, "_sum", label, value);
        buf_append_str(out, STR("} "));
        metric_text_seconds(out, h->sum_usec);
        series(out, name, "_count", label, value);
        buf_appendf(out, "} %llu\n", (unsigned long long) h->count);
}

static uint64_t row_number(const MetricRow *row, const void *values) {
        return *(const uint64_t *) (const void *) ((const char *) values + row->offset);
}

static double row_ratio(const MetricRow *row, const void *values) {
        return *(const double *) (const void *) ((const char *) values + row->offset);
}

bool metric_text_known(const MetricRow *row, const void *values) {
        if (row->form == METRIC_RATIO)
                return !isnan(row_ratio(row, values));
        return row_number(row, values) != METRIC_UNKNOWN;
}

void metric_text_value(Buf *out, const MetricRow *row, const void *values) {
        switch (row->form) {
        case METRIC_NUMBER:
                buf_appendf(out, "%llu\n", (unsigned long long) row_number(row, values));
                return;
        case METRIC_PERCENT:
                buf_appendf(out, "%llu.%02llu\n", (unsigned long long) (row_number(row, values) / 100),
                            (unsigned long long) (row_number(row, values) % 100));
                return;
        case METRIC_NSEC:
                buf_appendf(out, "%.6f\n", (double) row_number(row, values) / 1e9);
                return;
        case METRIC_RATIO:
                buf_appendf(out, "%.6g\n", row_ratio(row, values));
                return;
        }
}
