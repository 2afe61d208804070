/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What share of its card's time a slice has used over the last moment, by the arbiter's own book:
 * two looks at the turn of its page. */

#include "slice/page.h"

enum { UTILIZATION_MSEC = 250 }; /* ms between the two */

typedef struct UtilizationSample {
        int directory; /* of the slice; owned; -1: nobody holds it, so nobody counts */
        uint64_t used, seen;
} UtilizationSample;

/* The first look, at the page as it was read. Opens the directory a second time; where that cannot
 * be done nothing will be known. */
UtilizationSample utilization_begin(const SliceLimits *limits, int directory);

/* The second one, later. Gives the directory back. Returns percent of the card's time, or below
 * zero when it cannot be known: nobody holds the slice, or the arbiter was not there in between. */
double utilization_end(UtilizationSample *look);
