/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A finding that has to last before it is told: what is asked for one after the other need not
 * agree at once. Each census in which it is there counts two, each in which it is not takes one
 * back; at six it is told, once until all is taken back. So three in a row are told, as is who
 * holds too much in two of three; one now and then is not. Pure. */

#include <stdbool.h>

enum { LASTING_OVER = 2, LASTING_TOLD = 6 };

typedef struct Lasting {
        unsigned score; /* 0 to LASTING_TOLD */
        bool told;
} Lasting;

/* True: it is to be told now. */
static inline bool lasting_over(Lasting *l) {
        bool first;

        l->score = l->score + LASTING_OVER < LASTING_TOLD ? l->score + LASTING_OVER : LASTING_TOLD;
        first = l->score == LASTING_TOLD && !l->told;
        l->told |= first;
        return first;
}

static inline void lasting_under(Lasting *l) {
        if (l->score > 0)
                l->score--;
        l->told &= l->score > 0;
}
