/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Predicts how long a launch takes on the card: a moving average of measured times per function and
 * number of blocks, or per graph. The table has a fixed size; colliding entries replace each other
 * and are measured again. Any thread, without a lock. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        ESTIMATES = 1024, /* a power of two */
        ESTIMATE_WAYS = 4,
};

typedef struct Estimate {
        _Atomic uint64_t key;
        _Atomic uint64_t nsec; /* 0: not measured yet */
} Estimate;

typedef struct Estimates {
        Estimate of[ESTIMATES];
        _Atomic uint32_t n_replaced;
} Estimates;

/* Returns the entry, created if needed; never NULL. A full set replaces its entries by turns, so
 * that two functions in use do not replace each other for ever. */
Estimate *estimate_find(Estimates *t, uintptr_t function, uint64_t blocks);
uint64_t estimate_nsec(const Estimate *e); /* at least 1; ESTIMATE_COLD_NS until measured */
bool estimate_is_cold(const Estimate *e);

typedef struct EstimateShare {
        Estimate *of;
        uint32_t launches;
} EstimateShare;

/* Learns from a batch: the launches of these entries took nsec together. Each entry occurs once.
 * Unmeasured entries get what the others leave, or the same for each launch if that is nothing;
 * without unmeasured ones all change by the same factor. is_long:
 * nsec is much longer than the time slices of other processes, so it is taken as it is. Otherwise
 * the average moves a quarter of the way, and at most doubles. */
void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec, bool is_long);
