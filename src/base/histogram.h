/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A histogram of durations, with the same bucket bounds for all metrics. Pure. */

#include "base/clock.h"

enum { HISTOGRAM_BUCKETS = 13 };

typedef struct Histogram {
        uint64_t buckets[HISTOGRAM_BUCKETS]; /* not cumulative: metric_text_histogram() sums up */
        uint64_t count, sum_usec;
} Histogram;

void histogram_observe(Histogram *h, usec_t elapsed);

/* The upper bound of a bucket, in seconds, as text. Longer durations are in `count` alone. */
const char *histogram_bound(size_t bucket);
