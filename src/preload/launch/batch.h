/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Batches of launches, for process.c, which has the sums, and for admission.c. The parts that have
 * the events use batch-internal.h. */

#include "preload/launch/process.h"

/* An open batch of the stream, for a launch that is about to be made; NULL: there is none to be
 * had, or the place is not this context's any more. batch_add(): after it. */
Batch *batch_open(ProcessState *a, Context *c, uintptr_t handle, CuHandle stream, uintptr_t key, bool cold,
                  uint64_t now);
typedef struct LaunchOutcome {
        Estimate *estimate;
        uint64_t nsec, now; /* what was supposed, and when */
        bool made;          /* the driver took it */
        bool mark;          /* its end matters: somebody waited for it */
} LaunchOutcome;
void batch_add(ProcessState *a, Batch *b, const LaunchOutcome *l);

/* Looks after batches: settles what must be over, measures what is done; as it is told closes those
 * that are open, and asks for those whose host function is late (the driver may have another one in
 * its thread). */
enum { BATCH_POLL_CLOSE = 1, BATCH_POLL_ASK = 2 };
void batch_poll(ProcessState *a, Context *c, unsigned how, uint64_t now);

/* What comes into the stream next does not begin with what is before it: that is marked. */
void batch_cut(ProcessState *a, Context *c, uintptr_t key, uint64_t now);

/* All that this process has on the card is of this context, and none of it has begun: then it waits
 * for something, or for the card. False where that cannot be told. */
bool batch_is_blocked(ProcessState *a, Context *c, uint64_t now);

/* What is on the card takes many times as long as was estimated: nothing else should be launched
 * until it is known. */
bool batch_is_late(ProcessState *a, uint32_t card, CuHandle stream, uint64_t now);

/* The context is about to end (ends = false: may be), and its handle is still what it was: what is
 * in flight gets its end marked. */
void batch_mark_all(ProcessState *a, Context *c, bool ends);
/* The handle says already that it ends: our events and our stream go, unless they are gone, or
 * another thread has some of them in hands: it lets go of them, and they end with the context. What
 * is on the card stays in flight. */
void batch_drop_all(ProcessState *a, Context *c, bool gone);
/* It has ended: what is still in flight is charged by the clock. gone = false: it has not, and host
 * functions will come. */
void batch_charge_all(ProcessState *a, Context *c, bool gone);
/* A place's batches: all are held by who makes it, and free once it is begun. */
void batch_init_all(Context *fresh);
void batch_release_all(Context *c);
/* Whether nobody has anything of a context that has ended: its place may be used again. Then the
 * caller holds all. */
bool batch_reclaim_all(Context *c);
void batch_end_stream(ProcessState *a, Context *c, CuHandle stream);
