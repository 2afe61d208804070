/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Included before the slice's sources when they are compiled for tests. Each step between two
 * accesses to the counters is reported, with its line and the value that was read last. */

#include <stdint.h>

void slice_step(unsigned line, uint64_t seen);
#define SLICE_STEP(seen) slice_step(__LINE__, (uint64_t) (seen))
