/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches that have no batch: no memory for their context's place, all batches of it on the card,
 * a stream that cannot be marked. What is not known, and each sixteenth of what is, is waited for
 * by its own thread, 250 ms at most, and charged by the clock; the others stay in flight until the
 * time of their estimates has passed, one behind the other, and are charged as estimated. */

#include "preload/launch/process.h"

/* After the launch, with its context current. nsec, now: what was supposed of it, and when it was
 * let through. */
void unbatched_launched(ProcessState *a, uint32_t card, CuHandle stream, Estimate *e, uint64_t nsec,
                        uint64_t now);

/* What is over by the estimates is not in flight any more. */
void unbatched_poll(ProcessState *a, uint32_t card, uint64_t now);
