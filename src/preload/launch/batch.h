/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches: launches of one stream that are measured together, from an event before the first to an
 * event behind the last. Functions take the state of the process, and `now` in ns of
 * CLOCK_MONOTONIC. */

#include "preload/launch/process.h"

/* The default stream of the calling thread, as the driver names it. */
#define STREAM_PER_THREAD ((CuHandle) 2)

/* Batch.key of a stream: differs between threads for STREAM_PER_THREAD. */
static inline uintptr_t batch_key(CuHandle stream) {
        return stream == STREAM_PER_THREAD ? spin_self() : (uintptr_t) stream;
}

/* Batch.key of a batch whose stream was destroyed while a thread owned it. No stream has it. */
#define KEY_GONE UINTPTR_MAX

/* Tries to take a batch in this state; then the thread owns it. Other threads may only read its
 * atomic fields. */
static inline bool batch_take(Batch *b, BatchState state) {
        uint32_t expected = state;

        return atomic_load(&b->state) == expected &&
               atomic_compare_exchange_strong(&b->state, &expected, BATCH_HELD);
}

static inline void batch_release(Batch *b) {
        atomic_store_explicit(&b->state, BATCH_FREE, memory_order_release);
}

/* Returns an open batch of the stream for a launch that follows, owned until batch_add(); NULL:
 * none is available, or the context has ended. cold: the length of the launch is not known. */
Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, bool cold, uint64_t now);

typedef struct LaunchOutcome {
        Estimate *estimate;
        uint64_t nsec, now; /* estimated length; when it was admitted */
        bool made;          /* the driver accepted it */
        bool mark;          /* later launches wait for its end, so it is marked */
        bool kernel;        /* a kernel or graph, not a copy or fill */
} LaunchOutcome;
void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l);

/* Charges batches that must have ended and measures those that are done. waits: a launch waits, so
 * open batches are closed, and the ends of late ones are asked for: the driver's thread may be in
 * another callback. */
void batch_poll(ProcessState *a, Context *c, bool waits, uint64_t now);

/* Ends open batches long after their estimated end, without a call of the driver: the context may
 * be of a thread that destroys it meanwhile. */
void batch_expire(ProcessState *a, Context *c, uint64_t now);

/* Marks the end of the stream's open batch, before a host function is queued or the stream is
 * destroyed, with the context current. Waits while another thread uses the batch, for
 * MAX_HOLDER_WAITS sleeps at most. ends: the stream is destroyed, so a batch that is still in use
 * is given up. */
void batch_end_of_stream(ProcessState *a, Context *c, uintptr_t key, bool ends);
/* Whether one of the context's batches is of the stream and open, or in use. */
bool batch_is_of_stream(const Context *c, uintptr_t key);

/* How many kernels may be in flight: MIN_KERNELS after a pause, after a batch that took many times
 * its estimate, and while one is overdue. Each batch that ends in time allows for more. */
uint32_t batch_max_kernels(const ProcessState *a, uint32_t card, uint64_t now);

/* Charges all work of a context that has ended, and whose handle is cleared. */
void batch_end_all(ProcessState *a, Context *c);
/* Takes all batches of a free slot, so that it can be used again; false: a callback or a thread
 * still uses one, and nothing is taken. */
bool batch_take_all(Context *c);
