/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sums and times of this process for one card, in ns of CLOCK_MONOTONIC or of the card's
 * time. All threads change them without a lock; process.h and the files named below have the
 * functions. */

#include <stdatomic.h>
#include <stdint.h>

#include "preload/launch/peers.h"

typedef struct ProcessUsage {
        _Atomic uint64_t in_flight; /* ns, estimated; includes launches that are admitted and not made yet */
        _Atomic int64_t used;       /* ns charged; corrections go both ways */
        /* Without an arbiter (duty.h): ns that may be used; when it was filled, and the peers
         * counted. */
        _Atomic int64_t balance;
        _Atomic uint64_t filled, counted;
        _Atomic uint32_t peers;
        _Atomic uint32_t closed, waiters; /* closed batches on the card, and calls; waiting threads */
        _Atomic uint64_t waited;          /* a waiting thread last ran then; one may end without a word */
        _Atomic uint32_t wake;            /* futex: work has ended */
        _Atomic uint64_t marked;          /* a batch was last closed then */
        _Atomic uint32_t n_marked;        /* sum of closed batches */
        _Atomic uint32_t n_to_sample;     /* batches left to sample after an end that was not seen */
        _Atomic uint32_t window;          /* window of the newest launch */
        _Atomic uint64_t closed_end;      /* expected end of the closed batches */
        _Atomic uint32_t kernels;         /* kernels and graphs in flight */
        _Atomic uint32_t max_kernels;     /* as batch_max_kernels(); 0: MIN_KERNELS */
        _Atomic uint64_t progress;        /* work ended then, or a launch passed because none did */
        /* Launches without a batch (unbatched.h). */
        _Atomic uint32_t n_unbatched;                /* their sum */
        _Atomic uint64_t unbatched, unbatched_until; /* ns of in_flight; their expected end */
        _Atomic uint64_t unbatched_end;              /* end of the last one that was waited for */
        _Atomic uint64_t unbatched_pause_until;      /* no thread waits for its launch before */
        _Atomic uint64_t rang_at;                    /* the doorbell rang for a pause then */
        _Atomic uint32_t rang_for_pause;             /* the doorbell rang for this pause */
        _Atomic uint32_t n_host_running; /* host functions; one last began or ended at host_since */
        _Atomic uint64_t host_since;
        Peers peers_seen;
} ProcessUsage;
