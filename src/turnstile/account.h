/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this process has on the cards, and what it has used of their time.
 *
 * Work of one stream is taken together in a batch: an event before its first launch, one behind its last. A batch is closed after so
 * much work that its end matters (or to be measured); behind its end stands a host function in a stream of our own, so that the
 * driver's thread says that it is over, also when the application never calls again. Work that was launched behind the last closed
 * batch of its stream is charged as estimated, and settled when its time has passed.
 *
 * Nothing is locked while the driver is called. A batch is taken by whoever changes its state; without one a launch is charged as estimated. */

#include "gate/gate.h"
#include "turnstile/estimate.h"
#include "turnstile/peers.h"
#include "turnstile/real.h"
#include "turnstile/spans.h"

enum {
        ACCOUNT_CONTEXTS = 32,
        ACCOUNT_BATCHES = 48, /* per context */
        ACCOUNT_KINDS = 8,    /* of launches in a batch that are told apart */
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
        _Atomic uint32_t state;
        uint32_t n_shares, n_launches, n_others; /* others: launches of kinds for which there was no room */
        bool measured;                           /* there is an event at its begin */
        Context *context;
        CuHandle begin, end, stream; /* events and the stream as the application names it */
        uintptr_t key;               /* of the stream; differs between threads that say "mine" */
        _Atomic uint64_t nsec;       /* estimated */
        uint64_t began, charged;     /* when its first launch was; what was settled for it */
        _Atomic uint64_t over;       /* when it will be, by the estimates */
        EstimateShare shares[ACCOUNT_KINDS];
} Batch;

struct Context {
        _Atomic uintptr_t handle;   /* 0: not in use */
        uint32_t card;              /* of the gate */
        _Atomic uint32_t calls;     /* host functions under way: the place is not used again before */
        _Atomic uint64_t measuring; /* since when a thread has what is below it */
        CuHandle watch;             /* our stream */
        CuHandle origin;            /* event that times are counted from */
        uint64_t origin_nsec;       /* when that was, on the clock of the spans */
        Spans spans;
        _Atomic uint64_t over; /* when the last one was, by the clock */
        Batch batches[ACCOUNT_BATCHES];
};

typedef struct Meter {                    /* of one card */
        _Atomic uint64_t in_flight;       /* ns, estimated, launches that are about to be made included */
        _Atomic int64_t used;             /* ns; corrections go both ways */
        _Atomic int64_t balance;          /* ns that may be used while the arbiter is away */
        _Atomic uint64_t filled, counted; /* when the balance was filled up last, when the peers were */
        _Atomic uint32_t peers;
        _Atomic uint32_t closed, waiters; /* batches on the card; threads */
        _Atomic uint64_t waited; /* when one of them looked last: a thread may have ended in between */
        _Atomic uint32_t wake;   /* a futex: something is over */
        _Atomic uint64_t marked; /* when a batch was closed last */
        _Atomic uint32_t marks;  /* how many were, ever */
        _Atomic uint32_t window; /* that something was launched in last */
        _Atomic uint64_t due;    /* when those that are closed will be over, by the estimates */
        Peers seen;
} Meter;

/* All of it; a child of fork gets it empty. */
typedef struct Account {
        _Atomic long pid;
        Gate *gate;
        Estimates estimates;
        Meter meters[GATE_CARDS];
        _Atomic(Context *) contexts[ACCOUNT_CONTEXTS];
} Account;

uint64_t account_now(void); /* ns of CLOCK_MONOTONIC */

/* NULL: no memory; or another thread of a child of fork is just making it anew. */
Account *account_get(Gate *g);

/* The current context's; NULL: there is none, or no room for one more (ret_card is -1 then if its card is not known). */
Context *account_context(Account *a, int *ret_card);
void account_context_ends(Account *a, uintptr_t handle); /* 0: all of them. Before the driver is told */
void account_stream_ends(Account *a, CuHandle stream);   /* before the driver is told; its work goes on */

/* An open batch of the stream, for a launch that is about to be made; NULL: there is none to be had. account_add(): after it. */
Batch *account_open(Account *a, Context *c, CuHandle stream, uintptr_t key, bool cold, uint64_t now);
typedef struct Launched {
        Estimate *estimate;
        uint64_t nsec, now; /* what was supposed, and when */
        bool made;          /* the driver took it */
        bool mark;          /* its end matters: somebody waited for it */
} Launched;
void account_add(Account *a, Batch *b, const Launched *l);
/* What was launched without a batch: so much was in flight, and so much is charged. */
void account_charge(Account *a, uint32_t card, uint64_t in_flight, uint64_t nsec);

/* What is on the card takes many times as long as was estimated: nothing else should be launched until it is known. */
bool account_is_late(Account *a, uint32_t card, CuHandle stream, uint64_t now);

/* Looks after batches: closes those that are open if `all`, settles what must be over, measures what is done. */
void account_tend(Account *a, Context *c, bool all, uint64_t now);

/* The row of the page. wanting: somebody waits, or something is on the card. */
void account_drained(Account *a, uint32_t card); /* says so, if it is so */
void account_want(Account *a, uint32_t card, uint64_t now);
void account_idle(Account *a, uint32_t card);
void account_begins(Account *a, uint32_t card, uint32_t window, uint64_t now); /* the first launch in it */
