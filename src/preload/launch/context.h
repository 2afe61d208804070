/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The contexts of the process, and what becomes of work that is in flight when one ends. */

#include "preload/launch/process.h"

/* The context that a launch into this stream is in: the stream's own, where that may be another one
 * than the current; 0: none. *ret_foreign: it is not the current one, which it has to be for all
 * that follows. */
uintptr_t context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign);
/* NULL: no room for one more. *ret_card is -1 if its card is not known, or the handle is 0. */
Context *context_get(ProcessState *a, uintptr_t handle, int *ret_card);

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

/* Before the driver is told to destroy the stream; its work goes on. */
void context_destroy_stream(ProcessState *a, CuHandle stream);
