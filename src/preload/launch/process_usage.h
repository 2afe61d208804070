/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sums and times of this process for one card, in ns of CLOCK_MONOTONIC or of the card's
 * time. All threads change them without a lock; process.h and the files named below have the
 * functions. */

#include <stdatomic.h>
#include <stdint.h>

#include "preload/launch/peers.h"

enum { PROCESS_USAGE_LANES = 64 };

typedef struct ProcessUsage {
        _Atomic uint64_t in_flight; /* ns, estimated; includes launches that are admitted and not made yet */
        _Atomic int64_t used;       /* ns charged; corrections go both ways */
        /* Without an arbiter (duty.h): ns that may be used; when it was filled, and the peers
         * counted. */
        _Atomic int64_t balance;
        _Atomic uint64_t filled, counted;
        _Atomic uint32_t peers;
        _Atomic uint32_t closed, waiters; /* closed batches on the card, and calls; waiting threads */
        _Atomic uint32_t calls;           /* calls that may last as long as their work */
        _Atomic uint64_t waited;          /* a waiting thread last ran then; one may end without a word */
        _Atomic uint32_t wake;            /* futex: work has ended */
        _Atomic uint64_t marked;          /* a batch was last closed then */
        _Atomic uint32_t n_marked;        /* sum of closed batches */
        _Atomic uint32_t n_to_sample;     /* batches left to sample after an end that was not seen */
        _Atomic uint32_t window;          /* window of the newest launch */
        _Atomic uint32_t restarted;  /* it launches after a pause, and none of these launches has ended */
        _Atomic uint64_t closed_end; /* expected end of the closed batches */
        _Atomic uint32_t launches;   /* launches in flight, with copies */
        _Atomic uint32_t copies;     /* copies and fills among them */
        /* Launches without a batch (unbatched.h). */
        _Atomic uint32_t n_unbatched;                /* their sum */
        _Atomic uint64_t unbatched, unbatched_until; /* ns of in_flight; their expected end */
        _Atomic uint64_t unbatched_end;              /* end of the last one that was waited for */
        _Atomic uint64_t unbatched_pause_until;      /* no thread waits for its launch before */
        _Atomic uint32_t flags;                      /* WORK_F_MASK of waiting threads */
        /* Work in flight that the newest window does not count: the window; ns; launches. */
        _Atomic uint32_t backlog_window;
        _Atomic uint64_t backlog;
        _Atomic uint32_t backlog_launches;
        _Atomic uint64_t idle_at, rang_at; /* begin of the last pause; when the doorbell rang for one */
        _Atomic uint32_t short_pause;      /* the last pause was short */
        _Atomic uint32_t rang_for_pause;   /* the doorbell rang for this pause */
        /* Host functions (host_func.h): queued or running; running; since when one runs. Marks of a
         * function hold its start time, 0 for none. In order: the row reports its work as blocked;
         * that work is not counted; a launch was admitted behind it; any was admitted. */
        _Atomic uint32_t n_host_funcs, n_host_funcs_running;
        _Atomic uint64_t host_running_since, host_blocked, host_excluded, host_unblocked, host_admitted;
        _Atomic uint64_t unblocked_at, resumed_at; /* when that launch was admitted; end of blocked work */
        _Atomic uint32_t backlog_allowed;          /* launches admitted behind blocked work, at most */
        _Atomic uint64_t host_nsec;                /* mean time of a host function */
        _Atomic uint64_t host_wait; /* ns until one counts as waiting for a launch; 0: not learnt */
        _Atomic uint32_t lanes[PROCESS_USAGE_LANES]; /* host functions by hash of their stream */
        Peers peers_seen;
} ProcessUsage;
