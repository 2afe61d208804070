/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A finding that must last before it is reported, because figures that are read one after the other
 * need not agree at once. Each census with the finding adds two to its score, each one without
 * takes one away. At six it is reported, once until the score is zero again. So three in a row are
 * reported, and so is a finding in two of three censuses, but not one now and then.
 *
 * A finding that comes and goes is caught by a second, slower score, for figures without such noise
 * (hysteresis_raise_slow()). Each census with the finding adds ten, each one without takes one
 * away, and at sixty it is reported, too. So a finding in one of three censuses is reported after
 * some twenty, one in eleven or fewer never. Pure. */

#include <stdbool.h>

enum { HYSTERESIS_STEP = 2, HYSTERESIS_REPORT = 6, HYSTERESIS_SLOW_STEP = 10, HYSTERESIS_SLOW_REPORT = 60 };

typedef struct Hysteresis {
        unsigned score; /* 0 to HYSTERESIS_REPORT */
        unsigned slow;  /* 0 to HYSTERESIS_SLOW_REPORT; 0 while the score is full */
        bool reported;
} Hysteresis;

/* Counts a census with the finding. Returns true when it is to be reported now. */
static inline bool hysteresis_raise(Hysteresis *h) {
        bool first;

        h->score = h->score + HYSTERESIS_STEP < HYSTERESIS_REPORT ? h->score + HYSTERESIS_STEP
                                                                  : HYSTERESIS_REPORT;
        first = h->score == HYSTERESIS_REPORT && !h->reported;
        h->reported |= first;
        return first;
}

/* The same, with the slower score. */
static inline bool hysteresis_raise_slow(Hysteresis *h) {
        bool first = hysteresis_raise(h);

        if (h->score == HYSTERESIS_REPORT) {
                h->slow = 0;
                return first;
        }
        h->slow = h->slow + HYSTERESIS_SLOW_STEP < HYSTERESIS_SLOW_REPORT ? h->slow + HYSTERESIS_SLOW_STEP
                                                                          : HYSTERESIS_SLOW_REPORT;
        first = h->slow == HYSTERESIS_SLOW_REPORT && !h->reported;
        h->reported |= first;
        return first;
}

static inline bool hysteresis_is_over(const Hysteresis *h) {
        return h->score == 0 && h->slow == 0;
}

/* Counts a census without the finding. */
static inline void hysteresis_lower(Hysteresis *h) {
        if (h->score > 0)
                h->score--;
        if (h->slow > 0)
                h->slow--;
        h->reported &= !hysteresis_is_over(h);
}
