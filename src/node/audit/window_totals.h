/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What time of each card the arbiter has given to each slice, read from the slice pages
 * (SliceSchedule.granted), which no container can write. All slices of a card count, also those of
 * `aliquot run`.
 *
 * The sums of a card are over a window of time, from window_totals_begin() on. They say nothing
 * where the arbiter was away during that window: then no container without a cap was limited. */

#include "arbiter/tenant_policy.h"
#include "slicedir/slicedir.h"

typedef struct WindowTotals {
        struct WindowPage *pages;
        struct WindowCard *cards;
        bool begun; /* the pages were read before, so a page that appears now is new */
} WindowTotals;

void window_totals_done(WindowTotals *w);

/* Reads the pages. now: ns of CLOCK_MONOTONIC, as in SliceSchedule.seen. A page that cannot be
 * read, or kept for want of memory, counts as missing. */
void window_totals_read(WindowTotals *w, const Slicedir *slices, uint64_t now);
/* Begins a window of this card. */
void window_totals_begin(WindowTotals *w, const char *uuid);

/* Whether a slice without a cap is limited to windows. */
bool window_totals_has_shared(const WindowTotals *w);

/* The sum over some slices of a card, by their names. */
typedef struct WindowSum {
        uint64_t own, others; /* ns of windows of these slices, and of the others */
        uint32_t floor;       /* ppm that these slices have when all want the card */
} WindowSum;

/* False: not known, because the arbiter was away, none of the slices exists, or one of them is not
 * limited or has a cap. */
bool window_totals_of(WindowTotals *w, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n,
                      WindowSum *ret);
