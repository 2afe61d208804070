/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The duty cycle that is kept to while there is no arbiter: time makes balance, at the container's
 * percentage and in equal parts for its processes, and launches take it. Any thread. */

#include "preload/launch/process_usage.h"
#include "slice/slice.h"

/* What has passed since the last time is balance: of a percentage of 1 to 100, one period's (40 ms)
 * at most. The first time it begins at zero. now: ns of CLOCK_MONOTONIC. */
void duty_fill(ProcessUsage *m, const SliceUser *slice, uint32_t percent, uint64_t now);
/* ns are taken, also more than there is; false: nothing was left. What they turn out to be more or
 * less is process.c's to correct. */
bool duty_take(ProcessUsage *m, uint64_t nsec);
/* ns until there is something again; 0: there is. */
uint64_t duty_until(ProcessUsage *m, uint32_t percent);
