/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A finding that has to last before it is told: what is asked for one after the other need not
 * agree at once. Each census in which it is there counts two, each in which it is not takes one
 * back; at six it is told, once until all is taken back. So three in a row are told, as is who
 * holds too much in two of three; one now and then is not. Pure. */

#include <stdbool.h>

enum { HYSTERESIS_STEP = 2, HYSTERESIS_REPORT = 6 };

typedef struct Hysteresis {
        unsigned score; /* 0 to HYSTERESIS_REPORT */
        bool told;
} Hysteresis;

/* True: it is to be told now. */
static inline bool hysteresis_raise(Hysteresis *l) {
        bool first;

        l->score = l->score + HYSTERESIS_STEP < HYSTERESIS_REPORT ? l->score + HYSTERESIS_STEP
                                                                  : HYSTERESIS_REPORT;
        first = l->score == HYSTERESIS_REPORT && !l->told;
        l->told |= first;
        return first;
}

static inline void hysteresis_lower(Hysteresis *l) {
        if (l->score > 0)
                l->score--;
        l->told &= l->score > 0;
}
