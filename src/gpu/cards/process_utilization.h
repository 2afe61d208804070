/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What processes use of a card's time, from the samples of nvmlDeviceGetProcessUtilization. Pure.
 *
 * NVML reports, in percent, a process's use of the time since the sample that the caller saw last,
 * and omits idle processes. The percentages are applied to the time between our own two queries, by
 * our clock, so that setting the driver's clock changes nothing. A process with two samples counts
 * once, by the newest; numbers that are no percentages are dropped. */

#include <stdbool.h>

#include "base/clock.h"
#include "gpu/cards/nvml.h"

typedef struct ProcessUtilization { /* of one card; initialised with zeros */
        uint64_t since;             /* argument of the next query: us, by the driver's clock */
        usec_t asked;               /* time of the last query, CLOCK_MONOTONIC; 0: none */
        /* the driver's clock agreed with the machine's in the last answer */
        bool agrees;
} ProcessUtilization;

/* samples: n of them, as NVML returned them; they are sorted and reduced in place to those that
 * count. asked: time of the query by CLOCK_MONOTONIC; wall: the same in us since 1970.
 *
 * Returns how many count. *ret_nsec is the time that they are percentages of. It is 0 for the first
 * query, and when the last query is more than a minute ago. */
unsigned process_utilization_update(ProcessUtilization *m, NvmlUse *samples, unsigned n, usec_t asked,
                                    uint64_t wall, uint64_t *ret_nsec);
