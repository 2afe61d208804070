/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The rate limit of repairs: at most five of one pod in any minute. Time is passed in. Pure. */

#include <stddef.h>

#include "base/clock.h"

enum { REPAIR_RATE_MAX = 5 };
#define REPAIR_RATE_WINDOW (60 * USEC_PER_SEC)

typedef struct RepairRate {
        usec_t at[REPAIR_RATE_MAX]; /* times of the last repairs: a ring */
        size_t n;                   /* ever */
} RepairRate;

/* The first time, not before now, at which one more repair is allowed. */
static inline usec_t repair_rate_next(const RepairRate *p, usec_t now) {
        usec_t oldest = p->at[p->n % REPAIR_RATE_MAX];

        return p->n < REPAIR_RATE_MAX || oldest + REPAIR_RATE_WINDOW < now ? now
                                                                           : oldest + REPAIR_RATE_WINDOW;
}

static inline void repair_rate_take(RepairRate *p, usec_t now) {
        p->at[p->n++ % REPAIR_RATE_MAX] = now;
}
