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
        ESTIMATE_FEW = 4,    /* launches in flight of an unmeasured function; doubles with each measurement */
        ESTIMATE_STEADY = 4, /* times */
        ESTIMATE_MOST = ESTIMATE_FEW << ESTIMATE_STEADY,
};

typedef struct Estimate {
        _Atomic uint64_t key;
        _Atomic uint64_t nsec;      /* 0: not measured yet */
        _Atomic uint64_t outlier;   /* the last measurement if it was an outlier; 0: it was not */
        _Atomic uint32_t steady;    /* measurements in a row without a surprise, at most ESTIMATE_STEADY */
        _Atomic uint32_t surprises; /* weight of recent surprises: work much longer than estimated */
} Estimate;

typedef struct Estimates {
        Estimate of[ESTIMATES];
} Estimates;

/* The entry, created if needed; never NULL. A full set replaces one of its entries. */
Estimate *estimate_find(Estimates *t, uintptr_t function, uint64_t blocks);
uint64_t estimate_nsec(const Estimate *e); /* at least 1; ESTIMATE_COLD_NS until measured */
bool estimate_is_cold(const Estimate *e);
bool estimate_is_uncertain(
        const Estimate *e); /* unmeasured, or the last measurement was many times the average */
/* The length varies with the parameters, so each launch is measured, however short the average
 * is. */
bool estimate_varies(const Estimate *e);
bool estimate_is_new(const Estimate *e); /* few measurements, or a recent surprise */
/* How many launches may be in flight when this one is added: few if the estimate is new or was
 * wrong. */
uint32_t estimate_max_launches(const Estimate *e);
uint64_t estimate_newest(const Estimate *e); /* the larger of estimate_nsec() and the last outlier */

typedef struct EstimateShare {
        Estimate *of;
        uint32_t launches;
} EstimateShare;

/* Learns from a batch: the launches of these entries took nsec together. Each entry occurs once.
 * Unmeasured entries get what the others leave. The others move a quarter of the way, or all of
 * it after two outliers in a row on the same side: the function may have other work now. own:
 * nsec contains few time slices of other processes of the container; otherwise a long time says
 * little. */
void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec, bool own);
