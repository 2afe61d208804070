/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Put in front of the slice's sources when they are compiled for tests: every step between two
 * accesses to the counters is told, with its line and what was last seen. */

#include <stdint.h>

void slice_step(unsigned line, uint64_t seen);
#define SLICE_STEP(seen) slice_step(__LINE__, (uint64_t) (seen))
