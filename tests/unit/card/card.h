/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A card, the driver of its processes, the real launch hooks of libaliquot.so, and the real
 * arbiter, on a virtual clock. The card (sim/engine), the driver's calls and the kernel's futexes
 * are simulated, each with its cost. Each process has a copy of the hooks with state of its own.
 * Times are ns. */

#include "fibers.h"

#include "slice/compute_policy.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
#define SEC  UINT64_C(1000000000)

enum { CARD_TENANTS = 24, CARD_PROCESSES = 96, CARD_CHANNELS = 32 };

typedef struct CardCosts {
        uint64_t slice, change;         /* of a context's time slice, and of a switch between contexts */
        uint64_t launch, start;         /* of the driver's call; until the kernel can begin */
        uint64_t record, query, host;   /* of a call: cuEventRecord, a query, cuLaunchHostFunc */
        uint64_t grain;                 /* of an event's time */
        uint64_t host_least, host_most; /* until a host function runs */
        uint64_t wake_least, wake_most; /* from a futex or doorbell to the thread that slept */
        uint64_t timer;                 /* a sleep with a timeout ends later by up to this */
        uint64_t step, ring;            /* of the arbiter's step, and of ringing the doorbell */
} CardCosts;

/* The expected costs of a real card (docs/internals/card-model.md has the sources), and a card
 * without costs, with time slices of a millisecond. */
extern const CardCosts card_real, card_free;

typedef struct CardTenant CardTenant;
typedef struct CardProcess CardProcess;

void card_begin(const CardCosts *costs, uint64_t seed);
void card_run(uint64_t until);
void card_arbiter_stops(uint64_t until); /* it makes no step before then */

/* compute NULL: a container without Aliquot. */
CardTenant *card_tenant(const CardCompute *compute, const ComputeRequest *request);
CardProcess *card_process(CardTenant *t, void (*program)(void *argument), void *argument);
void card_kill(CardProcess *p);
uint64_t card_ran(const CardTenant *t);     /* ns of the card that the tenant has used */
uint64_t card_charged(const CardTenant *t); /* ns that it was charged, as the arbiter has written them */
uint64_t card_steps(void);                  /* of the arbiter since card_begin() */

/* ---- for programs, which run as fibers ---- */

/* Launches a kernel of so many ns into a stream (0: the default one), through the hooks. function:
 * any number but 0, one for each kind of work. */
void card_launch(unsigned stream, uintptr_t function, uint64_t ns);
void card_copy(unsigned stream, bool up, uint64_t ns); /* by a copy engine: to the card, or from it */
void card_copy_and_wait(uint64_t ns); /* to the card, by a call that returns when it is done */
unsigned card_stream(void);           /* a new stream */
void card_stream_wait(unsigned stream, unsigned other); /* for the work that is in the other one now */
void card_synchronize(unsigned stream);                 /* until all work of the stream is done */
void card_compute(uint64_t ns);                         /* uses a processor */
void card_sleep(uint64_t ns);
/* A lock of the program, as that of an interpreter. */
void card_lock(bool *locked);
void card_unlock(bool *locked);
/* Puts a host function into the stream. The driver's thread calls it, and later work of the stream
 * waits for its return. */
void card_host_func(unsigned stream, void (*run)(void *data), void *data);
