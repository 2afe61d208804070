/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the arbiter has given of each card, and to whom: read from the slice pages of the board
 * (SliceSchedule.granted), which no container can write. All slices of a card count, those of `aliquot
 * run` too.
 *
 * A card's sums are of a window of time, from window_totals_begin() on. An arbiter that was away in it
 * has held nobody whose share is no cap: then they say nothing. */

#include "arbiter/tenant_policy.h"
#include "slicedir/slicedir.h"

typedef struct WindowTotals {
        struct WindowPage *pages;
        struct WindowCard *cards;
        bool begun; /* pages that come now are new */
} WindowTotals;

void window_totals_done(WindowTotals *g);

/* Reads the pages; now: ns of CLOCK_MONOTONIC, as in SliceSchedule.seen. What cannot be read, or
 * without memory, is as if it were not there. */
void window_totals_read(WindowTotals *g, const Slicedir *board, uint64_t now);
void window_totals_begin(WindowTotals *g, const char *uuid);

/* Any slice whose share is no cap is held to windows. */
bool window_totals_has_shared(const WindowTotals *g);

/* Of these slices together, by their names on the board. */
typedef struct WindowSum {
        uint64_t own, others; /* ns of windows */
        uint32_t floor;       /* ppm that they have when everybody wants the card */
} WindowSum;

/* False: nothing can be said of them: the arbiter was away, or none of them is there, or one of
 * them is not held, or is by a cap. */
bool window_totals_of(WindowTotals *g, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n,
                      WindowSum *ret);
