/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between process.c, which has the sums, and those who have the events (batch-internal.h). */

#include "preload/launch/process.h"

/* What was measured is so much more (or less) than what was settled. */
void process_correct(ProcessState *a, uint32_t card, int64_t nsec);

void process_wake(ProcessState *a, uint32_t card); /* who waits for something to be over */
ProcessState *process_known(void);                 /* for the driver's thread */

/* Exchanges the thread's capture mode, CU_CAPTURE_RELAXED for calls of ours, and returns what it
 * was. */
int launch_relax_capture(int mode);

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
