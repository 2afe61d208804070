/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long a piece of work will take on the card, by what it took before: one moving average per function and number of blocks, or
 * per graph. The table is fixed; a collision costs accuracy, which is measured again. Any thread, without a lock. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        ESTIMATES = 1024, /* a power of two */
        ESTIMATE_WAYS = 4,
};

/* What is supposed of work that was never measured, ns. */
#define ESTIMATE_COLD UINT64_C(50000)

typedef struct Estimate {
        _Atomic uint64_t key;
        _Atomic uint64_t nsec; /* 0: not measured yet */
        _Atomic uint64_t odd;  /* measured last, if that was quite another one; 0: it was not */
} Estimate;

typedef struct Estimates {
        Estimate of[ESTIMATES];
} Estimates;

/* Never NULL. Takes the place of another one where there is none left. */
Estimate *estimate_find(Estimates *t, uintptr_t function, uint64_t blocks);
uint64_t estimate_nsec(const Estimate *e); /* at least 1; ESTIMATE_COLD before it was measured */
bool estimate_is_cold(const Estimate *e);
bool estimate_is_doubtful(const Estimate *e); /* cold, or measured last as many times as long */
uint64_t estimate_newest(const Estimate *e);  /* at least estimate_nsec(); what it may have become */

typedef struct EstimateShare {
        Estimate *of;
        uint32_t launches;
} EstimateShare;

/* These took so long together; each entry is there once. What was never measured gets what the others leave; the others move by a
 * quarter of the way, and all of it when they are found to be quite another length twice: the same function may be given other work. */
void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec);
