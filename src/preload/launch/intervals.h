/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time in which a card had work, out of intervals that overlap because they are of several
 * streams, and come in any order: their union, not their sum. Only the newest gaps are remembered;
 * an interval that falls into an older one counts as nothing. */

#include <stdint.h>

enum { INTERVALS_MAX = 16 };

typedef struct Intervals {
        uint32_t n;
        struct {
                uint64_t from, to;
        } of[INTERVALS_MAX]; /* in order, apart from each other */
} Intervals;

/* Adds [from, to), ns of a clock that is the same for all of them. Returns how much of it was not
 * in there yet. */
uint64_t intervals_add(Intervals *s, uint64_t from, uint64_t to);
