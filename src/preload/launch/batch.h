/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between account.c, which has the sums, and those who have the events (batch-internal.h). */

#include "preload/launch/account.h"

/* What was measured is so much more (or less) than what was settled. */
void account_correct(Account *a, uint32_t card, int64_t nsec);

void account_wake(Account *a, uint32_t card); /* who waits for something to be over */
Account *account_known(void);                 /* for the driver's thread */

/* Exchanges the thread's capture mode, CU_CAPTURE_RELAXED for calls of ours, and returns what it
 * was. */
int batches_relax(int mode);

/* The context is about to end (ends = false: may be), and its handle is still what it was: what is
 * in flight gets its end marked. */
void batches_mark(Account *a, Context *c, bool ends);
/* The handle says already that it ends: our events and our stream go, unless they are gone, or
 * another thread has some of them in hands: it lets go of them, and they end with the context. What
 * is on the card stays in flight. */
void batches_end(Account *a, Context *c, bool gone);
/* It has ended: what is still in flight is charged by the clock. gone = false: it has not, and host
 * functions will come. */
void batches_ended(Account *a, Context *c, bool gone);
/* A place's batches: all are held by who makes it, and free once it is begun. */
void batches_make(Context *fresh);
void batches_begin(Context *c);
/* Whether nobody has anything of a context that has ended: its place may be used again. Then the
 * caller holds all. */
bool batches_rest(Context *c);
void batches_end_stream(Account *a, Context *c, CuHandle stream);
