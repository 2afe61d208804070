/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The duty cycle of a limited container while no arbiter runs. Each process has a balance, in ns of
 * the card. Time adds to it, at the container's percentage divided by its processes; launches take
 * from it. Any thread may call it. */

#include "preload/launch/process.h"
#include "slice/slice.h"

/* Adds the time since the last call to the balance: at most one period (DUTY_PERIOD_NS) at
 * `percent` (1 to 100). The first call sets it to zero. now: ns of CLOCK_MONOTONIC. */
void duty_fill(ProcessUsage *m, const SliceUser *slice, uint32_t percent, uint64_t now);
/* Takes nsec from the balance, which may become negative. Returns false if it was spent already.
 * process.c corrects it once the time is measured. */
bool duty_take(ProcessUsage *m, uint64_t nsec);
/* Returns the ns until a debt is paid, if this is the only process of the container; 0: there is
 * none. */
uint64_t duty_until(ProcessUsage *m, uint32_t percent);
