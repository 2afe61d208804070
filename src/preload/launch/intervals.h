/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The union of time intervals, which gives the time in which a card had work. Intervals of several
 * streams overlap and come in any order. Only the newest gaps are kept; an interval that falls into
 * an older one counts as nothing. */

#include <stdint.h>

enum { INTERVALS_MAX = 16 };

typedef struct Intervals {
        uint32_t n;
        struct {
                uint64_t from, to;
        } of[INTERVALS_MAX]; /* sorted and disjoint */
} Intervals;

/* Adds [from, to), in ns of one clock. Returns how many ns of it were not contained yet. */
uint64_t intervals_add(Intervals *s, uint64_t from, uint64_t to);
