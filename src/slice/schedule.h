/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a container's processes and the arbiter of a card talk about compute: parts of the two files
 * of the slice page, and a third.
 *
 *   SliceSchedule   in limits: the arbiter says when the container may launch. Its mapping is written by one process at a time; a
 *               container can only read it.
 *   SliceWork   in every row of the counters: a process says what it wants, has in flight and has used. The arbiter reads it with
 *               pread and believes what cannot be more than the truth.
 *   SliceRests  once in the counters: pauses that were not rung for. Believed as far as there was time for them.
 *   bell        a FIFO beside them: whoever begins to want, or has drained after its window was closed, writes a byte, so that an
 *               arbiter with nothing to do sleeps. It is opened for the moment, never kept: descriptors are the application's.
 *
 * Times are nanoseconds of the arbiter's CLOCK_MONOTONIC, which all containers share; who is in a
 * time namespace of his own reckons with what lies between the two (preload/launch/heartbeat.h). */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
        SCHED_WINDOW_OPEN = 1, /* in SliceSchedule.window: lowest bit */
        SCHED_F_GATED =
                1, /* in SliceSchedule.flags: launches wait for windows; 0: nothing is held, whatever the rest says */
        SCHED_F_NO_NOTIFY =
                2, /* there, too: who drains and goes on wanting need not ring. A gate that does not know it rings */
        SCHED_F_IGNORE_BACKLOG =
                4, /* there, too: what is in flight since before this window may wait for what comes, and is not counted */
        SCHED_F_SOLE =
                8, /* there, too: as long as this window is open nobody else could have the card, so pauses in it are written into
                      SliceRests and not rung for. A gate that does not know it rings, and an arbiter that does not never says it */
        WORK_F_WAITER = 1, /* in SliceWork.wants: a launch has waited for long */
        WORK_F_BLOCKED =
                2, /* there, too: and nothing of what is in flight has begun, so it waits for something itself */
        WORK_F_MASK = 3,
};

/* SliceSchedule.seen older than this: the arbiter is away, and who is limited keeps to core_percent by
 * itself. */
#define SCHED_STALE_NSEC UINT64_C(250000000)

typedef struct SliceSchedule {
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
} SliceSchedule;

/* Written by the owner of the row only. All zero: a process that has no work. */
typedef struct SliceWork {
        _Atomic uint64_t
                wants; /* since when it has had work, waiting or in flight, or when `drained` was said, the later; 0: none. The
                          lowest bits are WORK_F_MASK */
        _Atomic uint64_t
                busy; /* ns of the card that it has used since the row was taken, what is in flight not counted */
        _Atomic uint32_t
                in_flight; /* ns, estimated, no more than WORK_IN_FLIGHT_MAX; 0: nothing is on the card */
        _Atomic uint32_t
                launched; /* how many launches were let through; wraps, and goes on when the row gets another owner */
        _Atomic uint32_t
                drained; /* the newest window (its number) after whose end nothing of it was in flight any more */
        _Atomic uint32_t
                began; /* when it first launched in the newest window: WORK_BEGAN of the time; 0: it has not */
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

#define WORK_BEGAN(nsec)   ((uint32_t) ((nsec) >> 10) | 1U) /* it comes again after an hour */
#define WORK_BEGAN_GRAIN   UINT64_C(2048)
#define WORK_IN_FLIGHT_MAX UINT32_MAX /* ns; what lasts longer is said to last so long */

_Static_assert(sizeof(SliceSchedule) == 64, "SliceSchedule");
_Static_assert(sizeof(SliceWork) == 32, "SliceWork");
_Static_assert(sizeof(SliceRests) == 24, "SliceRests");
_Static_assert(offsetof(SliceWork, launched) == 20, "launched");
_Static_assert(offsetof(SliceWork, drained) == 24, "drained");
