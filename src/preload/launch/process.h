/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process has on the cards, and what it has used of their time.
 *
 * Work of one stream is taken together in a batch: an event before its first launch, one behind its
 * last. A batch is closed after so much work that its end matters (or to be measured); behind its
 * end stands a host function in a stream of our own, so that the driver's thread says that it is
 * over, also when the application never calls again. Work that was launched behind the last closed
 * batch of its stream is charged as estimated, and settled when its time has passed.
 *
 * Nothing is locked while the driver is called. A batch is taken by whoever changes its state;
 * without one a launch is charged as estimated. */

#include "preload/launch/estimate.h"
#include "preload/launch/intervals.h"
#include "preload/launch/launch_clock.h"
#include "preload/launch/process_usage.h"
#include "preload/launch/real.h"
#include "preload/memory/gate.h"

enum {
        PROCESS_CONTEXTS = 512, /* made by need */
        CONTEXT_BATCHES = 48,   /* per context */
        LAUNCHES_IN_FLIGHT =
                64,      /* of a process in flight: their ends are seen, or nobody knows how long they are */
        BATCH_KINDS = 8, /* of launches in a batch that are told apart */
};

typedef enum BatchState {
        BATCH_FREE = 0,
        BATCH_HELD,   /* a thread has it */
        BATCH_OPEN,   /* its end is not marked yet */
        BATCH_CLOSED, /* on the card */
        BATCH_DONE,   /* the driver said so; to be measured */
} BatchState;

typedef struct Context Context;

typedef struct Batch {
        _Alignas(64) _Atomic uint32_t state; /* BatchState; of a closed one its number above that */
        uint32_t number;                     /* of its host functions: one that comes late is another one's */
        _Atomic uint32_t calls;              /* those under way */
        uint32_t n_shares, n_launches, n_others; /* others: launches of kinds for which there was no room */
        bool measured;                           /* there is an event at its begin */
        bool learns;                             /* something in it was hardly measured */
        bool exact, marked;                      /* each launch is to have one behind it; the last one has */
        Context *context;
        uintptr_t handle; /* of the context that it was begun in; the place may be another one's by now */
        CuHandle begin, end, stream; /* events and the stream as the application names it */
        uintptr_t key;               /* of the stream; differs between threads that say "mine" */
        _Atomic uintptr_t
                destroyed_stream; /* the stream that is destroyed: its own is not asked about then */
        _Atomic uint64_t nsec;    /* estimated */
        uint64_t began, charged;  /* when its first launch was; what was settled for it */
        _Atomic uint64_t over;    /* when it will be, by the estimates */
        EstimateShare shares[BATCH_KINDS];
} Batch;

struct Context {
        _Atomic uintptr_t handle;      /* 0: not in use; 1: it is just made, or ends */
        _Atomic uint32_t card;         /* of the gate */
        _Atomic uint32_t calls;        /* host functions under way: the place is not used again before */
        _Atomic uint32_t watching;     /* threads that are about to use the stream of ours, or an event */
        _Atomic uintptr_t ending;      /* the handle that it had, while a call that ends it is under way */
        _Atomic uint64_t end_asked_at; /* when somebody began to end it, or to give it back */
        _Atomic uint64_t measuring;    /* since when a thread has what is below it */
        CuHandle watch;                /* our stream */
        CuHandle origin;               /* event that times are counted from */
        uint64_t origin_nsec;          /* when that was, on the clock of the spans */
        Intervals intervals;
        _Atomic uint64_t over; /* when the last one was, by the clock */
        Batch batches[CONTEXT_BATCHES];
};

/* All of it; a child of fork gets it empty. */
typedef struct ProcessState {
        _Atomic long pid;
        Gate *gate;
        Estimates estimates;
        ProcessUsage usage[GATE_CARDS];
        _Atomic bool strays; /* a launch without any context was made */
        _Atomic(Context *) contexts[PROCESS_CONTEXTS];
} ProcessState;

ProcessState *process_get(Gate *g); /* never NULL; memory of its own is not asked for */
ProcessState *process_known(void);  /* for the driver's thread */

/* So much was in flight for so many launches, and so much is charged; or in_flight that came to
 * nothing. */
void process_charge(ProcessState *a, uint32_t card, uint64_t in_flight, uint64_t nsec, uint32_t launches);
void process_return(ProcessState *a, uint32_t card, uint64_t nsec, uint32_t launches);
/* What was measured is so much more (or less) than what was settled. */
void process_correct(ProcessState *a, uint32_t card, int64_t nsec);

void process_wake(ProcessState *a, uint32_t card); /* who waits for something to be over */

/* The row of the page. wanting: somebody waits, or something is on the card. */
void process_report_drained(ProcessState *a, uint32_t card); /* says so, if it is so */
void process_report_want(ProcessState *a, uint32_t card, uint64_t now);
void process_report_idle(ProcessState *a, uint32_t card);
void process_count_launch(ProcessState *a, uint32_t card); /* one more is let through */
void process_report_first_launch(ProcessState *a, uint32_t card, uint32_t window,
                                 uint64_t now); /* the first launch in it */
