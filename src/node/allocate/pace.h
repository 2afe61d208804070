/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* At most five repairs of one pod in any minute. Time is passed in. Pure. */

#include <stddef.h>

#include "base/clock.h"

enum { PACE_REPAIRS = 5 };
#define PACE_WINDOW (60 * USEC_PER_SEC)

typedef struct Pace {
        usec_t at[PACE_REPAIRS]; /* of the last repairs, a ring */
        size_t n;                /* ever */
} Pace;

/* The first moment, not before now, at which one more is allowed. */
static inline usec_t pace_next(const Pace *p, usec_t now) {
        usec_t oldest = p->at[p->n % PACE_REPAIRS];

        return p->n < PACE_REPAIRS || oldest + PACE_WINDOW < now ? now : oldest + PACE_WINDOW;
}

static inline void pace_take(Pace *p, usec_t now) {
        p->at[p->n++ % PACE_REPAIRS] = now;
}
