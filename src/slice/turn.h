/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a container's processes and the arbiter of a card talk about compute: parts of the two files
 * of the slice page, and a third.
 *
 *   SliceTurn   in limits: the arbiter says when the container may launch. Its mapping is written by one process at a time; a
 *               container can only read it.
 *   SliceWork   in every row of the counters: a process says what it wants, has in flight and has used. The arbiter reads it with
 *               pread and believes what cannot be more than the truth.
 *   SliceRests  once in the counters: pauses that were not rung for. Believed as far as there was time for them.
 *   bell        a FIFO beside them: whoever begins to want, or has drained after its window was closed, writes a byte, so that an
 *               arbiter with nothing to do sleeps. It is opened for the moment, never kept: descriptors are the application's.
 *
 * Times are nanoseconds of the arbiter's CLOCK_MONOTONIC, which all containers share; who is in a
 * time namespace of his own reckons with what lies between the two (preload/launch/beat.h). */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
        TURN_OPEN = 1, /* in SliceTurn.window: lowest bit */
        TURN_GATED =
                1, /* in SliceTurn.flags: launches wait for windows; 0: nothing is held, whatever the rest says */
        TURN_QUIET =
                2, /* there, too: who drains and goes on wanting need not ring. A gate that does not know it rings */
        TURN_BEHIND =
                4, /* there, too: what is in flight since before this window may wait for what comes, and is not counted */
        TURN_ALONE =
                8, /* there, too: as long as this window is open nobody else could have the card, so pauses in it are written into
                      SliceRests and not rung for. A gate that does not know it rings, and an arbiter that does not never says it */
        WORK_WAITS = 1, /* in SliceWork.wants: a launch has waited for long */
        WORK_TIED =
                2, /* there, too: and nothing of what is in flight has begun, so it waits for something itself */
        WORK_FLAGS = 3,
};

/* SliceTurn.seen older than this: the arbiter is away, and who is limited keeps to core_percent by
 * itself. */
#define TURN_AWAY_NSEC UINT64_C(250000000)

typedef struct SliceTurn {
        _Atomic uint32_t
                window; /* number of the window << 1, and whether it is open: a futex, woken at each change */
        _Atomic uint32_t flags;
        _Atomic uint64_t closes; /* the window closes then by itself, should the arbiter be late */
        _Atomic uint64_t depth;  /* how much work (ns of the card) the container may have in flight at once */
        _Atomic uint64_t seen;   /* when the arbiter was here last; 0: never */
        _Atomic uint64_t granted,
                used; /* ns since the page was made: windows, until they were over (the agent's audit); what was charged,
                                           for people */
        _Atomic uint64_t sharers; /* processes that had work when the window was opened; 0: one */
        _Atomic uint64_t
                rest; /* ns: what is launched in a window is over so long after it closes, and no later */
} SliceTurn;

/* Written by the owner of the row only. All zero: a process that has no work. */
typedef struct SliceWork {
        _Atomic uint64_t
                wants; /* since when it has had work, waiting or in flight, or when `drained` was said, the later; 0: none. The
                          lowest bits are WORK_FLAGS */
        _Atomic uint64_t
                busy; /* ns of the card that it has used since the row was taken, what is in flight not counted */
        _Atomic uint32_t in_flight; /* ns, estimated, no more than WORK_MOST; 0: nothing is on the card */
        _Atomic uint32_t
                launched; /* how many launches were let through; wraps, and goes on when the row gets another owner */
        _Atomic uint32_t
                drained; /* the newest window (its number) after whose end nothing of it was in flight any more */
        _Atomic uint32_t
                began; /* when it first launched in the newest window: TURN_BEGAN of the time; 0: it has not */
} SliceWork;

/* Of a container in which one process has had work; where several have, they ring. All zero: it has
 * never rested. */
typedef struct SliceRests {
        _Atomic uint64_t
                since; /* the present one began then; 0: there is none. It lasts while no row wants anything */
        _Atomic uint64_t rested; /* ns, ever: those that are over */
        _Atomic uint32_t n;      /* how many */
        uint32_t reserved;
} SliceRests;

#define TURN_BEGAN(nsec) ((uint32_t) ((nsec) >> 10) | 1U) /* it comes again after an hour */
#define TURN_GRAIN       UINT64_C(2048)
#define WORK_MOST        UINT32_MAX /* ns; what lasts longer is said to last so long */

_Static_assert(sizeof(SliceTurn) == 64, "SliceTurn");
_Static_assert(sizeof(SliceWork) == 32, "SliceWork");
_Static_assert(sizeof(SliceRests) == 24, "SliceRests");
_Static_assert(offsetof(SliceWork, launched) == 20, "launched");
_Static_assert(offsetof(SliceWork, drained) == 24, "drained");
