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
        BATCH_OPEN,   /* its end event is not recorded yet */
        BATCH_CLOSED, /* its end event is recorded, and it counts as on the card */
        BATCH_DONE,   /* ended; not measured yet */
} BatchState;

typedef struct Context Context;

typedef struct Batch {
        _Atomic uint32_t state; /* BatchState */
        /* callbacks queued and not run yet; they run in order, so the last is that of this use */
        _Atomic uint32_t callbacks;
        /* no callback is queued behind the end, so batch_poll() asks for it */
        _Atomic bool polled;
        bool measured; /* the event `begin` is recorded */
        uint32_t n_shares, n_launches, n_kernels;
        Context *context;
        /* handle of its context; the slot may belong to another one by now */
        uintptr_t handle;
        CuHandle begin, end, stream; /* events; stream: as the application names it */
        _Atomic uintptr_t key;       /* key of the stream (batch_key()), or KEY_GONE */
        uint64_t nsec;               /* estimate of its launches */
        uint64_t began, charged;     /* time of the first launch; ns charged */
        _Atomic uint64_t over;       /* expected end by the estimates */
        EstimateShare shares[BATCH_KINDS];
} Batch;

struct Context {
        _Atomic uintptr_t handle; /* 0: free; 1: being destroyed */
        _Atomic uint32_t card;    /* index in Gate.cards */
        /* 1: a thread measures; that thread owns origin and intervals */
        _Atomic uint32_t measuring;
        CuHandle watch;       /* our stream for callbacks */
        CuHandle origin;      /* event at which the context's clock starts */
        uint64_t origin_nsec; /* time of `origin` on that clock */
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
        Spin lock;                    /* taken while slots are created */
        _Atomic(Context *) contexts[PROCESS_CONTEXTS];
} ProcessState;

ProcessState *process_get(Gate *g); /* static; never NULL */
ProcessState *process_known(void);  /* the same, for callbacks in the driver's thread */

/* Returns how many processes of the container take turns on the card, at least 1. */
uint64_t process_sharers(const ProcessState *a, uint32_t card);
/* Returns the work in flight of the container's other processes, ns, and their number. A process
 * that was killed may have left a value there, which only makes both larger. */
uint64_t process_others(const ProcessState *a, uint32_t card, uint32_t *ret_n);

/* process_charge(): in_flight ns of work and `kernels` kernels have ended and are charged as nsec.
 * process_return(): they were not launched, or are not waited for. */
void process_charge(ProcessState *a, uint32_t card, uint64_t in_flight, uint64_t nsec, uint32_t kernels);
void process_return(ProcessState *a, uint32_t card, uint64_t nsec, uint32_t kernels);
/* Around a call of the driver that may last as long as its work, which is estimated as nsec: the
 * process reports work on the card. */
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
