/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One batch's way, from hand to hand: batch.c opens it and adds to it, batch_charge.c marks its end
 * and charges what it was, measure.c asks the events what it really was, batch_poll.c looks after
 * those that nobody adds to, context_destroy.c after those whose context ends. cuda_events.c asks the
 * driver for them. Who has a batch in hands has taken it (batch_take()); who has none may only look
 * at what is atomic. */

#include "preload/inject/spin.h"
#include "preload/launch/batch.h"
#include "preload/launch/cuda_events.h"
#include "preload/launch/measure.h"
#include "preload/launch/tunables.h"

enum {
        /* Of Batch.state; above them the number of the host function that a closed one waits
         * for. */
        STATE_BITS = 8,
        /* Times the estimate: it was none. Less may be because the driver's thread came late. */
        WRONG = 4,
        /* A host function is given its batch's address, and in the lowest bits the number. */
        CALL_NUMBERS = 64,
        /* Of a batch under way: the program's own, before them in the driver's thread, may take
         * long. */
        CALLS_MOST = 60,
        LEGACY = 1,      /* and 0: the default stream's names */
        BATCH_STAYS = 3, /* Batch.destroyed_stream: no stream's name, nor a thread's */
};

#define STREAM_MINE ((CuHandle) 2)

/* ---- a state and its holder ---- */

static inline uint32_t batch_closed_as(uint32_t number) {
        return BATCH_CLOSED | number << STATE_BITS;
}

static inline bool batch_is_closed(uint32_t state) {
        return (state & ((1U << STATE_BITS) - 1)) == BATCH_CLOSED;
}

static inline void batch_let_go(Batch *b) {
        atomic_store_explicit(&b->state, BATCH_FREE, memory_order_release);
}

static inline bool batch_take(Batch *b, BatchState state) {
        uint32_t expected = state;

        return atomic_load_explicit(&b->state, memory_order_relaxed) == (uint32_t) state &&
               atomic_compare_exchange_strong(&b->state, &expected, BATCH_HELD);
}

/* Whoever ends a context says so first and looks for what it has then; whoever has a batch gives it
 * a state first and looks at the context then. So one of both sees it. */
static inline bool batch_has_ended(const Context *c, uintptr_t handle) {
        return atomic_load(&c->handle) != handle;
}

/* ---- its stream ---- */

/* An event in the legacy default stream is a barrier for all blocking streams of the context. Right
 * behind a launch in that stream there is one anyway; later it would order what the application did
 * not. */
static inline bool batch_is_barrier(const Batch *b) {
        return (uintptr_t) b->stream <= LEGACY;
}

static inline bool batch_is_foreign(const Batch *b) {
        return b->stream == STREAM_MINE && b->key != spin_self();
}

/* Its stream is destroyed, now or since: who has it does not ask about that any more. Who destroys
 * waits for him, see context_destroy.c. */
static inline bool batch_is_orphan(const Batch *b) {
        return atomic_load(&b->destroyed_stream) == b->key;
}

static inline bool batch_can_be_marked(const Batch *b) {
        return !batch_is_orphan(b) && !real_is_captured(b->stream);
}

/* ---- batch_charge.c ---- */

/* ns since its launch, or since what was before it was over. */
uint64_t batch_passed(const Batch *b, uint64_t now);
/* There was room for so much and nsec was expected, of work whose end nobody saw: a pause, or it
 * was not marked because it seemed short. */
void batch_note_blind(ProcessUsage *m, uint64_t room, uint64_t nsec);
void batch_charge(ProcessState *a, Batch *b, uint64_t charged);
void batch_charge_unseen(ProcessState *a, Batch *b, uint64_t now);   /* its end was seen by nobody */
void batch_close(ProcessState *a, Batch *b, uint64_t now);           /* marks its end, and lets go of it */
void batch_finish_closed(ProcessState *a, Batch *b, uint32_t state); /* who finds it closed so */

/* ---- batch.c ---- */

/* Its stream did: it is charged, and is to be begun anew or let go. */
bool batch_went_dry(ProcessState *a, Batch *b, uint64_t now);
/* Nothing comes to it any more, who has it lets go of it: it went dry, or its end is marked, or,
 * where that cannot be, it stays open. */
void batch_finish(ProcessState *a, Batch *b, uint64_t now);
void batch_put_back(ProcessState *a, Batch *b, uint64_t now);
