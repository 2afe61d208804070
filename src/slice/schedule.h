/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a container's processes and the arbiter of a card exchange compute state: parts of the two
 * files of the slice page, and a third file.
 *
 *     SliceSchedule  in limits: when the container may launch. The arbiter writes it; the
 *                    container can only read it.
 *     SliceWork      in each row of the counters: what a process wants, has in flight and has used.
 *                    The arbiter reads it with pread and bounds what it believes.
 *     doorbell       the FIFO beside them. A process writes a byte when it begins to want
 *                    the card, has become idle in its window, or has drained after its window
 *                    closed. So an idle arbiter can sleep. The process opens it anew for each
 *                    write: descriptors are the application's.
 *
 * Times are nanoseconds of the arbiter's CLOCK_MONOTONIC, which all containers share. For a process
 * in a time namespace with another clock the arbiter is away. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The lowest bit of SliceSchedule.window. */
enum { SCHED_WINDOW_OPEN = 1 };

/* SliceSchedule.flags. */
enum {
        /* Launches wait for windows. Without it nothing is held, whatever the other fields say. */
        SCHED_F_GATED = 1,
};

/* Age of SliceSchedule.seen, in ns, from which the arbiter counts as absent. A process with a limit
 * then keeps to core_percent by itself. */
#define SCHED_STALE_NSEC UINT64_C(250000000)

typedef struct SliceSchedule {
        /* Number of the window << 1 | SCHED_WINDOW_OPEN: a futex, woken at each change. */
        _Atomic uint32_t window;
        _Atomic uint32_t flags;
        _Atomic uint64_t closes; /* when the window closes, even if the arbiter is late */
        _Atomic uint64_t depth;  /* ns of the card that the container may have in flight at once */
        _Atomic uint64_t seen;   /* when the arbiter was last active; 0: never */
        /* ns from each window's opening until it drained, summed up; for the agent's audit */
        _Atomic uint64_t granted;
        _Atomic uint64_t used;    /* ns charged, summed up; shown to users */
        _Atomic uint64_t sharers; /* processes with work when the window was opened; 0: one */
        _Atomic uint64_t rest;    /* ns after `closes`: launched work has ended by then */
} SliceSchedule;

/* Written by the owner of the row only. All zero: a process that has no work. */
typedef struct SliceWork {
        /* Since when the process has had work, waiting or in flight, or when it last set `drained`,
         * whichever is later; 0: no work. */
        _Atomic uint64_t wants;
        _Atomic uint64_t busy;      /* ns of the card used since the row was taken */
        _Atomic uint32_t in_flight; /* ns, estimated, at most WORK_IN_FLIGHT_MAX; 0: nothing */
        _Atomic uint32_t launched;  /* launches admitted; wraps, survives the owner */
        _Atomic uint32_t drained;   /* newest window after which nothing was in flight */
        _Atomic uint32_t began;     /* WORK_BEGAN of the newest window's first launch; 0: none */
} SliceWork;

#define WORK_BEGAN(nsec)   ((uint32_t) ((nsec) >> 10) | 1U) /* wraps after more than an hour */
#define WORK_BEGAN_GRAIN   UINT64_C(2048)                   /* resolution of WORK_BEGAN, in ns */
#define WORK_IN_FLIGHT_MAX UINT32_MAX                       /* ns; a larger value is written as this */

_Static_assert(sizeof(SliceSchedule) == 64, "SliceSchedule");
_Static_assert(sizeof(SliceWork) == 32, "SliceWork");
_Static_assert(offsetof(SliceWork, launched) == 20, "launched");
_Static_assert(offsetof(SliceWork, drained) == 24, "drained");
