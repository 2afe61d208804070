/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the arbiter has given of each card, and to whom: read from the slice pages of the board
 * (SliceTurn.granted), which no container can write. All slices of a card count, those of `aliquot
 * run` too.
 *
 * A card's sums are of a window of time, from granted_begin() on. An arbiter that was away in it
 * has held nobody whose share is no cap: then they say nothing. */

#include "arbiter/policy.h"
#include "slicedir/board.h"

typedef struct Granted {
        struct GrantedPage *pages;
        struct GrantedCard *cards;
        bool begun; /* pages that come now are new */
} Granted;

void granted_done(Granted *g);

/* Reads the pages; now: ns of CLOCK_MONOTONIC, as in SliceTurn.seen. What cannot be read, or
 * without memory, is as if it were not there. */
void granted_take(Granted *g, const Board *board, uint64_t now);
void granted_begin(Granted *g, const char *uuid);

/* Any slice whose share is no cap is held to windows. */
bool granted_shares(const Granted *g);

/* Of these slices together, by their names on the board. */
typedef struct GrantedSum {
        uint64_t own, others; /* ns of windows */
        uint32_t floor;       /* ppm that they have when everybody wants the card */
} GrantedSum;

/* False: nothing can be said of them: the arbiter was away, or none of them is there, or one of
 * them is not held, or is by a cap. */
bool granted_of(Granted *g, const char *uuid, const char (*ids)[BOARD_ID], size_t n, GrantedSum *ret);
