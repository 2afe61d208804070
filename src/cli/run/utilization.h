/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The share of its card's time that a slice used recently, as the arbiter accounts it: two samples
 * of the schedule in the slice's page. */

#include "slice/page.h"

enum { UTILIZATION_MSEC = 250 }; /* ms between the two samples */

typedef struct UtilizationSample {
        int directory; /* of the slice; owned; -1: compute is not limited, so it is not counted */
        uint64_t used, seen;
} UtilizationSample;

/* Takes the first sample, from the page as it was read. Opens the directory a second time; where
 * that fails, the result is not known. */
UtilizationSample utilization_begin(const SliceLimits *limits, int directory);

/* Takes the second sample and closes the directory. Returns percent of the card's time, or a
 * negative number when it is not known: compute is not limited, or no arbiter ran in between. */
double utilization_end(UtilizationSample *look);
