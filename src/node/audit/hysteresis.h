/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A finding that must last before it is reported, because figures that are read one after the other
 * need not agree at once. Each census with the finding adds two to its score, each one without
 * takes one away. At six it is reported, once until the score is zero again. So three in a row are
 * reported, and so is a finding in two of three censuses, but not one now and then. Pure. */

#include <stdbool.h>

enum { HYSTERESIS_STEP = 2, HYSTERESIS_REPORT = 6 };

typedef struct Hysteresis {
        unsigned score; /* 0 to HYSTERESIS_REPORT */
        bool reported;
} Hysteresis;

/* A census with the finding. Returns true when it is to be reported now. */
static inline bool hysteresis_raise(Hysteresis *h) {
        bool first;

        h->score = h->score + HYSTERESIS_STEP < HYSTERESIS_REPORT ? h->score + HYSTERESIS_STEP
                                                                  : HYSTERESIS_REPORT;
        first = h->score == HYSTERESIS_REPORT && !h->reported;
        h->reported |= first;
        return first;
}

/* A census without the finding. */
static inline void hysteresis_lower(Hysteresis *h) {
        if (h->score > 0)
                h->score--;
        h->reported &= h->score > 0;
}
