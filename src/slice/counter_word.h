/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The bit layout of the words in the counters. An announced operation has the sequence number that
 * follows the one in `held`. All arithmetic is modular, so every content of a page is valid.
 *
 *     used        units 63..32, lane 31..22, sequence 21..0: the operation that changed it last
 *     operation   units 63..22, signed, sequence 21..0
 *     held        units 63..22, signed, sequence 21..0
 *
 * lane: row * SLICE_LANES + lane of the row. */

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

/* Units in the words `operation` and `held`, signed. */
static inline int64_t slice_word_units(uint64_t word) {
        return (int64_t) word >> SLICE_SEQUENCE_BITS;
}

static inline uint64_t slice_word(uint64_t units, uint32_t sequence) {
        return units << SLICE_SEQUENCE_BITS | sequence;
}
