/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text format of Prometheus, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats). A lack of memory is the buffer's
 * sticky error. */

#include "base/buf.h"
#include "base/histogram.h"

#define METRIC_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Appends the HELP and TYPE lines of a metric. type: "gauge", "counter" or "histogram". */
void metric_text_head(Buf *out, const char *name, const char *type, const char *help);

/* Appends NAME="VALUE", after a comma unless it is the first label; the caller writes the braces.
 * Backslash, quote and newline are escaped. value: UTF-8. */
void metric_text_label(Buf *out, const char *name, const char *value);

/* Appends a whole metric: HELP, TYPE and one sample without labels. */
void metric_text_number(Buf *out, const char *name, const char *type, const char *help, uint64_t value);

/* Appends a sample's value: microseconds as seconds, and the newline. */
void metric_text_seconds(Buf *out, usec_t usec);

/* Appends the samples of a histogram (NAME_bucket with le, NAME_sum, NAME_count), with one
 * label. */
void metric_text_histogram(Buf *out, const char *name, const char *label, const char *value,
                           const Histogram *h);

/* A metric of a table: its value is a field of a struct, in which METRIC_UNKNOWN stands for no
 * series. */
typedef enum MetricForm {
        METRIC_NUMBER,  /* of uint64_t */
        METRIC_PERCENT, /* of uint64_t: percent, written as a part */
        METRIC_NSEC,    /* of uint64_t: nanoseconds, written as seconds */
        METRIC_RATIO,   /* of double; NAN for no series */
} MetricForm;

#define METRIC_UNKNOWN UINT64_MAX

typedef struct MetricRow {
        const char *name, *type, *help;
        size_t offset;
        MetricForm form;
} MetricRow;

bool metric_text_known(const MetricRow *row, const void *values);

/* Appends the value and the newline; the caller has written the name and the labels. */
void metric_text_value(Buf *out, const MetricRow *row, const void *values);
