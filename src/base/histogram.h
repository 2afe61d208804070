/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long things took, counted in buckets. Pure. */

#include "base/clock.h"

enum { HISTOGRAM_BUCKETS = 13 };

typedef struct Histogram {
        uint64_t buckets[HISTOGRAM_BUCKETS]; /* each its own, summed up when printed */
        uint64_t count, sum_usec;
} Histogram;

void histogram_observe(Histogram *h, usec_t elapsed);

/* The upper end of a bucket, in seconds, as text. */
const char *histogram_bound(size_t bucket);
