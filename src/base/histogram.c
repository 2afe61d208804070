/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

static const struct {
        usec_t usec;
        const char *text;
} bounds[HISTOGRAM_BUCKETS] = {
        {50, "0.00005"},  {100, "0.0001"},     {250, "0.00025"}, {500, "0.0005"}, {1000, "0.001"},
        {2500, "0.0025"}, {5000, "0.005"},     {10000, "0.01"},  {50000, "0.05"}, {100000, "0.1"},
        {500000, "0.5"},  {USEC_PER_SEC, "1"}, {5000000, "5"},
};

void histogram_observe(Histogram *h, usec_t elapsed) {
        size_t i = 0;

        while (i < HISTOGRAM_BUCKETS && elapsed > bounds[i].usec)
                i++;
        if (i < HISTOGRAM_BUCKETS)
                h->buckets[i]++;
        h->count++;
        h->sum_usec += elapsed;
}

const char *histogram_bound(size_t bucket) {
        return bounds[bucket].text;
}
