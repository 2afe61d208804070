/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches without a batch: no memory for a context's slot, all batches in use, or a stream in
 * which no event can be recorded. Launches of unknown length, and one in 16 of the others, are
 * waited for by their own thread, at most MAX_FOLLOW_NS, and charged by the clock. The others are
 * charged as estimated and count as in flight until their estimated time has passed. */

#include "preload/launch/process.h"

/* After the launch, with its context current. nsec: estimated length; now: time of admission. */
void unbatched_launched(ProcessState *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec,
                        uint64_t now);

/* Takes launches whose estimated time has passed out of the work in flight. */
void unbatched_poll(ProcessState *a, uint32_t card, uint64_t now);
