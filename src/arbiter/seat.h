/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A tenant at the desk: the files of one slice of one card, as the arbiter has them open. limits is
 * mapped, because its turn is a futex; nobody but those who make slices can write to it. counters
 * is read with pread, the bell is drained: what is in them is the tenant's, and may be anything at
 * any time. */

#include "arbiter/engine.h"
#include "arbiter/tally.h"

enum { SEAT_RINGS = 64 };              /* in SEAT_PERIOD; whoever rings more is not heard until it is over */
#define SEAT_PERIOD UINT64_C(10000000) /* ns */

typedef struct Seat {
        SliceLimits *limits;
        int limits_fd, counters, bell; /* -1: there is none */
        uint64_t dev, ino;             /* of limits */
        char uuid[SLICE_UUID];
        PolicyWish wish;
        Tally tally;
        EngineTurn turn;            /* as it was written last */
        uint64_t written, opened;   /* when; and when its newest window was */
        uint64_t rested;            /* as it was read last, */
        uint32_t rests;             /* and how many */
        bool writes_rests;          /* it may, in its newest window */
        uint64_t swept, questioned; /* when all rows were read, and when it was asked who lives */
        uint64_t read;              /* when anything was */
        uint64_t heard_from;        /* the bell: beginning of a period */
        uint32_t rings;
        uint64_t unasked_until; /* asking who lives takes too long */
        uint32_t questions;     /* that are left in this reading */
        uint32_t first, at;     /* places: this reading begins with, is at */
        uint32_t from[4];       /* the next one of its kind begins with: else some rows would never be met */
        uint32_t kind;
        bool passed_over; /* somebody could not be asked for in this reading */
        uint32_t n_rows;
        uint8_t rows[SLICE_ROWS]; /* those that have work, or had it */
        bool is_row[SLICE_ROWS], dead[SLICE_ROWS];
} Seat;

/* directory: of the slice page. 0; SLICE_FILES_E_DAMAGED: it is none, or older than turns are;
 * negative errno. */
int seat_open(int directory, Seat *ret);
void seat_done(Seat *s);

/* Opens what was not there before: counters are made anew where they were bad. */
void seat_open_rest(Seat *s, int directory);

/* limits says something else now. */
bool seat_wishes(Seat *s);

/* What its processes say. all: of rows that were at rest, too. doubt: whether those that have work
 * still live. Of a few of them only is that asked at a time. */
void seat_read(Seat *s, uint64_t now, bool all, bool doubt, EngineSays *ret);

/* Whether limits is still a whole page: the end of a file is the only thing that a mapping cannot
 * stand. */
bool seat_is_whole(const Seat *s);

/* Says it to the container and wakes who waits for it; that we are here as well. */
void seat_write(Seat *s, const EngineTurn *turn, uint64_t now);

/* Drains the bell. False: it has rung too often. */
bool seat_hear(Seat *s, uint64_t now);
