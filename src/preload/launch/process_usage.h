/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Bounds of the number of kernels in flight: see batch_max_kernels(). */
enum { MIN_KERNELS = 2, MAX_KERNELS = 128 };

/* The sums and times of this process for one card, in ns of CLOCK_MONOTONIC or of the card's time.
 * All threads change them without a lock. */
typedef struct ProcessUsage {
        _Atomic uint64_t in_flight; /* estimated; includes launches that are admitted and not made yet */
        _Atomic int64_t used;       /* charged; corrections go both ways */
        /* Without an arbiter (duty.h): the balance; when it was filled last, and when the peers
         * were counted. */
        _Atomic int64_t balance;
        _Atomic uint64_t filled, counted;
        _Atomic uint32_t peers;
        _Atomic uint32_t closed;     /* closed batches on the card, and calls by process_begin_call() */
        _Atomic uint64_t closed_end; /* when these are expected to end */
        _Atomic uint64_t marked;     /* when a batch was last closed */
        _Atomic uint64_t measured;   /* when a batch with an event before it was last begun */
        /* when work last ended, or a launch passed because none did */
        _Atomic uint64_t progress;
        _Atomic uint64_t paid_at;     /* before then no further launch passes for that reason */
        _Atomic uint32_t kernels;     /* kernels and graphs in flight */
        _Atomic uint32_t max_kernels; /* as batch_max_kernels(); 0: MIN_KERNELS */
        _Atomic uint32_t waiters;     /* waiting threads */
        /* when one of them last ran; a thread that ends stays counted */
        _Atomic uint64_t waited;
        _Atomic uint32_t wake;           /* futex word, increased when work has ended */
        _Atomic uint32_t window;         /* window of the newest launch */
        _Atomic uint64_t rang_at;        /* when the doorbell last rang for a pause */
        _Atomic uint32_t rang_for_pause; /* 1: the doorbell rang for the present pause */
        _Atomic uint64_t followed;       /* until when launches without a batch are charged */
        _Atomic uint32_t n_host_running; /* host functions; the first of them began at host_since */
        _Atomic uint64_t host_since;
} ProcessUsage;
