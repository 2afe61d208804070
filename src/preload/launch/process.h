/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The compute state of this process: its contexts, batches and sums per card, and its row in each
 * slice page.
 *
 * Launches of one stream form a batch: an event before its first launch and one behind its last. A
 * batch is closed when its end matters (or to be measured). A callback behind its end, in a stream
 * of ours, reports the end even if the application makes no further call. Work launched behind the
 * last closed batch is charged as estimated when its time has passed.
 *
 * No lock is held while the driver is called. A thread owns a batch after it changed its state. */

#include "preload/inject/spin.h"
#include "preload/launch/estimate.h"
#include "preload/launch/intervals.h"
#include "preload/launch/launch_clock.h"
#include "preload/launch/process_usage.h"
#include "preload/launch/real.h"
#include "preload/memory/gate.h"

enum {
        PROCESS_CONTEXTS = 512, /* slots, created as needed */
        CONTEXT_BATCHES = 48,   /* per context */
        BATCH_KINDS = 8,        /* kinds of launches in a batch */
};

typedef enum BatchState {
        BATCH_FREE = 0,
        BATCH_HELD,   /* owned by a thread */
        BATCH_OPEN,   /* its end is not marked */
        BATCH_CLOSED, /* its end is marked, on the card */
        BATCH_DONE,   /* ended; not measured yet */
} BatchState;

typedef struct Context Context;

typedef struct Batch {
        _Atomic uint32_t state;     /* BatchState */
        _Atomic uint32_t callbacks; /* queued and not come; they come in order, so the last is its own */
        _Atomic bool polled;        /* no callback is queued behind its end */
        bool measured;              /* the event `begin` is recorded */
        uint32_t n_shares, n_launches, n_kernels;
        Context *context;
        uintptr_t handle;            /* of its context; the slot may be of another one by now */
        CuHandle begin, end, stream; /* events; the stream as the application names it */
        _Atomic uintptr_t key;       /* of the stream; per thread for STREAM_PER_THREAD; or KEY_GONE */
        uint64_t nsec;               /* estimate of its launches */
        uint64_t began, charged;     /* time of the first launch; ns charged */
        _Atomic uint64_t over;       /* expected end by the estimates */
        EstimateShare shares[BATCH_KINDS];
} Batch;

struct Context {
        _Atomic uintptr_t handle;   /* 0: free; 1: being destroyed */
        _Atomic uint32_t card;      /* index in Gate.cards */
        _Atomic uint32_t measuring; /* a thread measures. It owns origin and intervals */
        CuHandle watch;             /* our stream for callbacks */
        CuHandle origin;            /* event at which the context's clock starts */
        uint64_t origin_nsec;       /* time of `origin` on that clock */
        Intervals intervals;
        _Atomic uint64_t over; /* end of the last batch, by CLOCK_MONOTONIC */
        Batch batches[CONTEXT_BATCHES];
};

/* All state of the process; empty in a child of fork. */
typedef struct ProcessState {
        _Atomic long pid;
        Gate *gate;
        Estimates estimates;
        ProcessUsage usage[GATE_CARDS];
        _Atomic bool without_context; /* a launch without a current context succeeded */
        Spin lock;                    /* of the creation of slots */
        _Atomic(Context *) contexts[PROCESS_CONTEXTS];
} ProcessState;

ProcessState *process_get(Gate *g); /* static; never NULL */
ProcessState *process_known(void);  /* the same, for callbacks in the driver's thread */

/* The processes of the container, at least 1, that take turns on the card. */
uint64_t process_sharers(const ProcessState *a, uint32_t card);
/* Work in flight of the container's other processes, ns, and their number. A process that was
 * killed may have left a value there, which only makes both larger. */
uint64_t process_others(const ProcessState *a, uint32_t card, uint32_t *ret_n);

/* charge: in_flight ns, and so many kernels, have ended and are charged as nsec. return: they were
 * not made, or are not waited for. */
void process_charge(ProcessState *a, uint32_t card, uint64_t in_flight, uint64_t nsec, uint32_t kernels);
void process_return(ProcessState *a, uint32_t card, uint64_t nsec, uint32_t kernels);
/* Around a call of the driver that may last as long as its work, of so many ns: the process reports
 * work on the card. */
void process_begin_call(ProcessState *a, uint32_t card, uint64_t nsec, uint64_t now);
void process_end_call(ProcessState *a, uint32_t card);
/* Corrects a charge: measured minus charged, ns. */
void process_correct(ProcessState *a, uint32_t card, int64_t nsec);

void process_wake(ProcessState *a, uint32_t card); /* wakes launches that wait for work to end */

/* Reports in the row of the slice page. A process has work if a launch waits or work is on the
 * card. */
void process_report_drained(ProcessState *a,
                            uint32_t card); /* only if the window is closed and no work is on the card */
void process_report_want(ProcessState *a, uint32_t card, uint64_t now);
void process_report_idle(ProcessState *a, uint32_t card);
void process_count_launch(ProcessState *a, uint32_t card); /* a launch was admitted */
void process_report_first_launch(ProcessState *a, uint32_t card, uint32_t window,
                                 uint64_t now); /* first launch in the window */
