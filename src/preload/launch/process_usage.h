/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process has on one card and has used of it: sums and times (ns of CLOCK_MONOTONIC, or
 * of the card's time) that all threads change without a lock. process.h says which function changes which. */

#include <stdatomic.h>
#include <stdint.h>

#include "preload/launch/heartbeat.h"
#include "preload/launch/peers.h"

enum { PROCESS_USAGE_LANES = 64 };

typedef struct ProcessUsage {             /* of one card */
        _Atomic uint64_t in_flight;       /* ns, estimated, launches that are about to be made included */
        _Atomic int64_t used;             /* ns; corrections go both ways */
        _Atomic int64_t balance;          /* ns that may be used while the arbiter is away */
        _Atomic uint64_t filled, counted; /* when the balance was filled up last, when the peers were */
        _Atomic uint32_t peers;
        _Atomic uint32_t closed, waiters; /* batches on the card; threads */
        _Atomic uint64_t waited;    /* when one of them looked last: a thread may have ended in between */
        _Atomic uint32_t wake;      /* a futex: something is over */
        _Atomic uint64_t marked;    /* when a batch was closed last */
        _Atomic uint32_t marks;     /* how many were, ever */
        _Atomic uint32_t blind;     /* batches to be looked at more closely: the end of one was not seen */
        _Atomic uint32_t window;    /* that something was launched in last */
        _Atomic uint32_t restarted; /* it launches after a pause, and nothing of that has ended */
        _Atomic uint64_t due;       /* when those that are closed will be over, by the estimates */
        _Atomic uint32_t
                launches; /* in flight, as in_flight has them: however short they are said to be, not too many */
        _Atomic uint32_t n_unbatched; /* launches without a batch, ever */
        _Atomic uint64_t unbatched,
                unbatched_until;         /* of in_flight what they are, and until when by the estimates */
        _Atomic uint64_t unbatched_over; /* when the last one that was waited for was over */
        _Atomic uint64_t unbatched_excused_until; /* until then no thread waits for its own */
        _Atomic uint32_t flags;                   /* WORK_F_MASK, of waiting threads */
        _Atomic uint32_t
                backlog_window; /* the newest window behind work that may wait for what comes, and what was */
        _Atomic uint64_t backlog;          /* in flight then: ns, */
        _Atomic uint32_t backlog_launches; /* launches */
        _Atomic uint64_t idle_at, rang_at; /* when it last began to want nothing; when it rang for that */
        _Atomic uint32_t haste;            /* it soon wanted something again, then */
        _Atomic uint32_t rang;             /* it rang for the pause that lasts */
        /* Functions of the host, see host_func.h: that are queued or run; of these, that run; since
         * when the first of these does, and that one when it was found that something stands behind
         * it: said in the row, not counted, let in; and when any launch passed. Times are 0 where
         * there is none */
        _Atomic uint32_t n_host_funcs, n_host_funcs_running;
        _Atomic uint64_t host_since, host_blocked, host_excused, host_unblocked, host_passed;
        _Atomic uint64_t unblocked_at, resumed_at; /* when; the last one that something stood behind ended */
        _Atomic uint32_t allowed;                  /* launches behind what stands */
        _Atomic uint64_t host_nsec;                /* how long one takes by itself, in the mean */
        _Atomic uint64_t host_wait; /* ns, until one is taken to wait for a launch; 0: none learnt yet */
        _Atomic uint32_t lanes[PROCESS_USAGE_LANES]; /* of hosts, by their streams */
        Peers peers_seen;
        Heartbeat heartbeat; /* the arbiter's */
} ProcessUsage;
