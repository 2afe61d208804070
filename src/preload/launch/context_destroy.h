/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contexts that end, and work that does not. */

#include "preload/launch/process.h"

/* 0: all of them. gone: the driver has ended it, and what was ours in it with it; false: our own
 * goes now. What is on the card is charged by the clock. What other threads have in hands they let
 * go themselves. */
void context_destroy_now(ProcessState *a, uintptr_t handle, bool gone);
/* The same around the call that ends it, which waits for what is on the card: that is in flight,
 * and charged, until then. mark: the context is the current one and ends, or may end, and the end
 * of what is in flight is marked. ending: what is ours goes. ended: it has ended, or (gone = false)
 * the driver refused, and what is on the card is charged when it is over. */
bool context_destroy_is_known(ProcessState *a, uintptr_t handle);
void context_destroy_mark(ProcessState *a, uintptr_t handle, bool ends);
void context_destroy_begin(ProcessState *a, uintptr_t handle);
void context_destroy_end(ProcessState *a, uintptr_t handle, bool gone);

/* What comes into the stream next does not begin with what is before it: that is marked. */
void batch_cut(ProcessState *a, Context *c, uintptr_t key, uint64_t now);

/* All that this process has on the card is of this context, and none of it has begun: then it waits
 * for something, or for the card. False where that cannot be told. */
bool batch_is_blocked(ProcessState *a, Context *c, uint64_t now);

/* What is on the card takes many times as long as was estimated: nothing else should be launched
 * until it is known. */
bool batch_is_late(ProcessState *a, uint32_t card, CuHandle stream, uint64_t now);
