/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches: launches of one stream that are measured together, from an event before the first to an
 * event behind the last. admission.c adds launches; the files of batch-internal.h do the rest.
 * Functions take the state of the process, and `now` in ns of CLOCK_MONOTONIC. */

#include "preload/inject/spin.h"
#include "preload/launch/process.h"

/* The default stream of the calling thread, as the driver names it. */
#define STREAM_PER_THREAD ((CuHandle) 2)

/* Batch.key of a stream: differs between threads for STREAM_PER_THREAD. */
static inline uintptr_t batch_key(CuHandle stream) {
        return stream == STREAM_PER_THREAD ? spin_self() : (uintptr_t) stream;
}

/* Returns an open batch of the stream for a launch that follows, owned until batch_add(); NULL:
 * none is available, or the context has ended. COLD: the length of the launch is not known.
 * KERNEL: it is of one kernel. */
enum { BATCH_OPEN_COLD = 1, BATCH_OPEN_KERNEL = 2 };
Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, unsigned how, uint64_t now);

typedef struct LaunchOutcome {
        Estimate *estimate;
        uint64_t nsec, now; /* estimated length; when it was admitted */
        bool made;          /* the driver accepted it */
        bool mark;          /* its end matters: launches wait */
        bool kernel;        /* no copy or fill */
} LaunchOutcome;
void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l);

/* Charges batches that must have ended and measures those that are done. CLOSE: also closes open
 * batches. ASK: also queries batches whose callback is late; the driver's thread may be in another
 * callback. */
enum { BATCH_POLL_CLOSE = 1, BATCH_POLL_ASK = 2 };
void batch_poll(ProcessState *a, Context *c, unsigned how, uint64_t now);

/* Before a host function is queued: marks the end of the stream's open batch, so that work before
 * and after the function is measured apart. */
void batch_close_of_stream(ProcessState *a, Context *c, uintptr_t key, uint64_t now);

/* How many kernels may be in flight: MIN_KERNELS after a pause, after a batch that took many times
 * its estimate, and while one is overdue. Each batch that ends in time allows for more. */
uint32_t batch_max_kernels(const ProcessState *a, uint32_t card, uint64_t now);

/* Before the call that ends a context (ends = false: that may end it): marks the end of all work in
 * flight. */
void batch_mark_all(ProcessState *a, Context *c, bool ends);
/* The context's handle is already cleared. Destroys our events and our stream, except those that
 * another thread uses: these end with the context. gone: the driver has destroyed them. Work on the
 * card stays in flight. */
void batch_drop_all(ProcessState *a, Context *c, bool gone);
/* The context has ended: charges all work in flight by the clock. gone = false: the driver refused
 * to end it, and callbacks will still come. */
void batch_charge_all(ProcessState *a, Context *c, bool gone);
/* The batches of a new slot: owned by the caller until batch_release_all(). */
void batch_init_all(Context *fresh);
void batch_release_all(Context *c);
/* Takes all batches of a context that has ended, so that its slot can be used again. False: a
 * callback or another thread still uses it, and nothing is taken. */
bool batch_reclaim_all(Context *c);
/* Before a stream is destroyed: marks the end of its open batches. */
void batch_end_stream(ProcessState *a, Context *c, CuHandle stream);
