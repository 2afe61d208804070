/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Kernels in flight: see batch_max_kernels(). */
enum { MIN_KERNELS = 2, MAX_KERNELS = 128 };

/* The sums and times of this process for one card, in ns of CLOCK_MONOTONIC or of the card's time.
 * All threads change them without a lock. */
typedef struct ProcessUsage {
        _Atomic uint64_t in_flight; /* estimated; includes launches that are admitted and not made yet */
        _Atomic int64_t used;       /* charged; corrections go both ways */
        /* Without an arbiter (duty.h): what may be used; when it was filled, and the peers
         * counted. */
        _Atomic int64_t balance;
        _Atomic uint64_t filled, counted;
        _Atomic uint32_t peers;
        _Atomic uint32_t closed;         /* closed batches on the card, and calls that last as long */
        _Atomic uint64_t closed_end;     /* their expected end */
        _Atomic uint64_t marked;         /* a batch was last closed then */
        _Atomic uint64_t measured;       /* a batch with an event before it was last begun then */
        _Atomic uint64_t progress;       /* work ended then, or a launch passed because none did */
        _Atomic uint64_t paid_at;        /* no further launch passes so before */
        _Atomic uint32_t kernels;        /* kernels and graphs in flight */
        _Atomic uint32_t max_kernels;    /* as batch_max_kernels(); 0: MIN_KERNELS */
        _Atomic uint32_t waiters;        /* waiting threads */
        _Atomic uint64_t waited;         /* one of them last ran then; a thread that ends stays counted */
        _Atomic uint32_t wake;           /* futex: work has ended */
        _Atomic uint32_t window;         /* window of the newest launch */
        _Atomic uint64_t rang_at;        /* the doorbell rang for a pause then */
        _Atomic uint32_t rang_for_pause; /* the doorbell rang for this pause */
        _Atomic uint64_t followed;       /* launches without a batch are charged until then */
        _Atomic uint32_t n_host_running; /* host functions; the first of them began at host_since */
        _Atomic uint64_t host_since;
} ProcessUsage;
