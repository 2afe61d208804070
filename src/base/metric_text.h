/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The text format of Prometheus, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats). A lack of memory is the buffer's
 * sticky error. */

#include "base/buf.h"
#include "base/histogram.h"

#define METRIC_TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* The two lines above the series of a metric. type: "gauge", "counter" or "histogram". */
void metric_text_head(Buf *out, const char *name, const char *type, const char *help);

/* NAME="VALUE" in braces that the caller opens and closes. Backslash, quote and newline are
 * escaped. value: UTF-8. */
void metric_text_label(Buf *out, const char *name, const char *value);

/* A whole metric with one series and no label. */
void metric_text_number(Buf *out, const char *name, const char *type, const char *help, uint64_t value);

/* Microseconds as seconds, and the end of the line. */
void metric_text_seconds(Buf *out, usec_t usec);

/* The series of one histogram, with one label. */
void metric_text_histogram(Buf *out, const char *name, const char *label, const char *value,
                           const Histogram *h);
