/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What processes use of a card's time, from the samples of nvmlDeviceGetProcessUtilization. Pure.
 *
 * NVML says, in percent, what a process had of the time since the sample that the caller has seen
 * last, and names nobody who had nothing. The percentages are taken for the time between our own
 * two questions, by our own clock: a driver whose clock is set anew changes nothing. Who is named
 * twice counts once, by his newest sample; numbers that are no percentages count nothing. */

#include <stdbool.h>

#include "base/clock.h"
#include "gpu/cards/nvml.h"

typedef struct ProcessUtilization { /* of one card; all zero at first */
        uint64_t since;             /* us, the driver's time: what to ask for as the last seen */
        usec_t asked;               /* our own time of the question before; 0: there was none */
        bool agrees;                /* the driver's time was the machine's when it said it last */
} ProcessUtilization;

/* Samples as they were given, none where the driver found nothing; asked: when, by CLOCK_MONOTONIC;
 * wall: the same in us since 1970. They are sorted and cut in place to those that count. Returns
 * how many; *ret_nsec: the time that they are percentages of; 0: of none, it was the first
 * question, or the one before is more than a minute ago. */
unsigned process_utilization_update(ProcessUtilization *m, NvmlUse *samples, unsigned n, usec_t asked,
                                    uint64_t wall, uint64_t *ret_nsec);
