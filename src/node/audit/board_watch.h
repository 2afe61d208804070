/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A look at the board of slices once a second. Counters that a container has made larger than they
 * are go back to their size, before they fill what they lie on. And slices of `aliquot run` are
 * looked for: the scheduler does not know of them, so what they hold of a card was promised to pods
 * as well. Neither is stopped; both are told of. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "slicedir/board.h"

typedef struct BoardWatch BoardWatch;

typedef struct BoardForeign {
        const char *id, *owner; /* lent for the call */
        uint32_t card;          /* index, as its maker counted */
        const char *uuid;
        uint64_t bytes; /* its limit */
} BoardForeign;

/* From the loop. One slice is told of once a minute at most, however often it grows, and a foreign
 * one once as long as it lives. */
typedef struct BoardWatchOptions {
        sd_event *event;
        Board *board; /* outlives it; may not be open */
        usec_t turn;  /* between two looks; 0: 1 s */
        void (*on_grown)(void *userdata, const BoardGrown *grown);
        bool (*on_foreign)(void *userdata,
                           const BoardForeign *foreign); /* false: not now; it is asked again */
        void *userdata;
} BoardWatchOptions;

int board_watch_new(const BoardWatchOptions *options, BoardWatch **ret); /* 0 or negative errno */
BoardWatch *board_watch_free(BoardWatch *w);

uint64_t board_watch_grown(const BoardWatch *w); /* how often files were cut back, ever */
/* What the slices of others hold of this card, in bytes, at the last look. */
uint64_t board_watch_foreign(const BoardWatch *w, const char *uuid);

DEFINE_CLEANUP(BoardWatch *, board_watch_free)
