/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The words of the counters, bit by bit. Every operation of a lane that went through has a number,
 * its sequence: the one after that in `held`. All arithmetic is modular, so no content of a page is
 * out of range.
 *
 *   used        units 63..32, lane 31..22 (row * 4 + lane of the row), sequence 21..0: who changed it last
 *   operation   units 63..22, signed, sequence 21..0
 *   held        units 63..22, signed, sequence 21..0 */

#include "slice/page.h"

#define SLICE_SEQUENCE_BITS 22
#define SLICE_SEQUENCE_MASK ((UINT32_C(1) << SLICE_SEQUENCE_BITS) - 1)
#define SLICE_LANE_MASK     ((uint32_t) (SLICE_ROWS * SLICE_LANES) - 1)
#define SLICE_MAX_UNITS     UINT32_MAX /* 16 TiB */

_Static_assert((SLICE_ROWS * SLICE_LANES & (SLICE_ROWS * SLICE_LANES - 1)) == 0, "lanes are a power of two");
_Static_assert(SLICE_ROWS *SLICE_LANES == 1 << (32 - SLICE_SEQUENCE_BITS), "lane and sequence are 32 bits");

static inline uint32_t slice_word_sequence(uint64_t word) {
        return (uint32_t) word & SLICE_SEQUENCE_MASK;
}

static inline uint32_t slice_sequence_after(uint32_t sequence) {
        return (sequence + 1) & SLICE_SEQUENCE_MASK;
}

static inline uint32_t slice_used_units(uint64_t used) {
        return (uint32_t) (used >> 32);
}

static inline uint32_t slice_used_lane(uint64_t used) {
        return (uint32_t) used >> SLICE_SEQUENCE_BITS & SLICE_LANE_MASK;
}

static inline uint64_t slice_used_word(uint32_t units, uint32_t lane, uint32_t sequence) {
        return (uint64_t) units << 32 | (uint64_t) lane << SLICE_SEQUENCE_BITS | sequence;
}

/* Of an operation and of held. */
static inline int64_t slice_word_units(uint64_t word) {
        return (int64_t) word >> SLICE_SEQUENCE_BITS;
}

static inline uint64_t slice_word(uint64_t units, uint32_t sequence) {
        return units << SLICE_SEQUENCE_BITS | sequence;
}
