/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long a piece of work will take on the card, by what it took before: one moving average per
 * function and number of blocks, or per graph. The table is fixed; a collision costs accuracy,
 * which is measured again. Any thread, without a lock. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        ESTIMATES = 1024, /* a power of two */
        ESTIMATE_WAYS = 4,
        ESTIMATE_FEW = 4, /* launches in flight before it is trusted; twice as many after each measurement */
        ESTIMATE_STEADY = 4, /* times */
};

typedef struct Estimate {
        _Atomic uint64_t key;
        _Atomic uint64_t nsec;      /* 0: not measured yet */
        _Atomic uint64_t odd;       /* measured last, if that was quite another one; 0: it was not */
        _Atomic uint32_t steady;    /* measurements in a row that were no surprise, ESTIMATE_STEADY at most */
        _Atomic uint32_t surprises; /* of the newest measurements: work that was much longer than supposed */
} Estimate;

typedef struct Estimates {
        Estimate of[ESTIMATES];
} Estimates;

/* Never NULL. Takes the place of another one where there is none left. */
Estimate *estimate_find(Estimates *t, uintptr_t function, uint64_t blocks);
uint64_t estimate_nsec(const Estimate *e); /* at least 1; ESTIMATE_COLD_NS before it was measured */
bool estimate_is_cold(const Estimate *e);
bool estimate_is_doubtful(const Estimate *e); /* cold, or measured last as many times as long */
/* Now short, now long, as its parameters say: none of it may pass unseen, however short the average
 * is. */
bool estimate_varies(const Estimate *e);
bool estimate_is_new(const Estimate *e); /* hardly measured, or wrong lately */
/* Launches that may be in flight when one more of these comes: few of what was hardly measured, or
 * was wrong lately. */
uint32_t estimate_trust(const Estimate *e);
uint64_t estimate_newest(const Estimate *e); /* at least estimate_nsec(); what it may have become */

typedef struct EstimateShare {
        Estimate *of;
        uint32_t launches;
} EstimateShare;

/* These took nsec together; each entry is there once. What was never measured gets what the others
 * leave; the others move by a quarter of the way, and all of it when they are found to be quite
 * another length twice: the same function may be given other work. own: nsec holds no or few
 * time slices of the container's other processes. Otherwise a long time says little. */
void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec, bool own);
