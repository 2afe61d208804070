/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of a batch, for the files that share it. batch.c opens it and adds launches;
 * batch_charge.c marks its end and charges it; measure.c reads the times of its events.
 * batch_poll.c checks batches without new launches; context_destroy.c ends those of a destroyed
 * context. A thread owns a batch after batch_take(); without that it may only read the atomic
 * fields. */

#include "preload/launch/batch.h"
#include "preload/launch/cuda_events.h"
#include "preload/launch/measure.h"
#include "preload/launch/tunables.h"

enum {
        /* Low bits of Batch.state. Above them is the number of the callback that a closed batch
         * waits for. */
        STATE_BITS = 8,
        /* A measured time of WRONG times the estimate refutes it. A shorter one may be a late
         * callback. */
        WRONG = 4,
        /* A callback gets its batch's address with its number in the lowest bits. */
        CALLBACK_NUMBERS = 64,
        /* Pending callbacks of one batch: host functions of the application in the same driver
         * thread may delay them. */
        CALLBACKS_MAX = 60,
        /* In flight at once: see batch_max_kernels(). */
        MIN_KERNELS = 4,
        MAX_KERNELS = 256,
        LEGACY = 1,          /* 0 and 1 name the legacy default stream */
        BATCH_NO_STREAM = 3, /* Batch.destroyed_stream: none; no stream or thread has this value */
};

/* ---- a state and its holder ---- */

static inline uint32_t batch_closed_as(uint32_t number) {
        return BATCH_CLOSED | number << STATE_BITS;
}

static inline bool batch_is_closed(uint32_t state) {
        return (state & ((1U << STATE_BITS) - 1)) == BATCH_CLOSED;
}

static inline void batch_release(Batch *b) {
        atomic_store_explicit(&b->state, BATCH_FREE, memory_order_release);
}

static inline bool batch_take(Batch *b, BatchState state) {
        uint32_t expected = state;

        return atomic_load_explicit(&b->state, memory_order_relaxed) == (uint32_t) state &&
               atomic_compare_exchange_strong(&b->state, &expected, BATCH_HELD);
}

/* Whether the batch's context has ended. The thread that ends a context first writes its handle and
 * then looks for batches; a thread with a batch first sets the batch's state and then reads the
 * handle. So at least one of the two sees the other. */
static inline bool batch_context_has_ended(const Context *c, uintptr_t handle) {
        return atomic_load(&c->handle) != handle;
}

/* ---- its stream ---- */

/* An event in the legacy default stream is a barrier for all blocking streams of the context. Right
 * behind a launch in that stream it adds nothing; later it would add an order that the application
 * did not ask for. */
static inline bool batch_is_in_legacy_stream(const Batch *b) {
        return (uintptr_t) b->stream <= LEGACY;
}

static inline bool batch_is_of_other_thread(const Batch *b) {
        return b->stream == STREAM_PER_THREAD && b->key != spin_self();
}

/* The batch's stream is destroyed or about to be, so the driver must not be asked about it. The
 * destroying thread waits for the batch's owner: context_destroy.c. */
static inline bool batch_stream_is_destroyed(const Batch *b) {
        return atomic_load(&b->destroyed_stream) == b->key;
}

static inline bool batch_can_be_marked(const Batch *b) {
        return !batch_stream_is_destroyed(b) && !real_is_captured(b->stream);
}

/* ---- batch_charge.c ---- */

/* ns since its first launch, or since the end of the work before it if that is later. */
uint64_t batch_passed(const Batch *b, uint64_t now);
/* The end of the work was not seen: nsec was estimated, and at most `room` ns had time to run. If
 * that is much more, some of the next batches are sampled with an event behind each launch. */
void batch_note_unseen(ProcessUsage *m, uint64_t room, uint64_t nsec);
void batch_charge(ProcessState *a, Batch *b, uint64_t charged);
void batch_charge_unseen(ProcessState *a, Batch *b, uint64_t now); /* its end was not seen */
void batch_close(ProcessState *a, Batch *b, uint64_t now);         /* marks its end and releases it */
void batch_finish_closed(ProcessState *a, Batch *b,
                         uint32_t state); /* if it is still closed with this state */

/* ---- batch_poll.c ---- */

/* Nothing has ended for long after it should have. */
bool batch_is_overdue(const ProcessState *a, uint32_t card, uint64_t now);
/* A closed batch has ended: updates batch_max_kernels(). */
void batch_note_end(ProcessState *a, const Batch *b, uint64_t now);

/* ---- batch.c ---- */

/* Whether the batch's stream has no work left. If so, the batch is charged, and the caller starts
 * it again or releases it. */
bool batch_settle_idle(ProcessState *a, Batch *b, uint64_t now);
/* Ends a batch that gets no more launches and releases it. If its stream is idle it is charged,
 * else its end is marked. If that is not possible, it stays open. */
void batch_finish(ProcessState *a, Batch *b, uint64_t now);
void batch_reopen(ProcessState *a, Batch *b, uint64_t now);
