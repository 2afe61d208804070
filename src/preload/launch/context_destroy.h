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

/* Before the driver is told to destroy the stream; its work goes on. */
void context_destroy_stream(ProcessState *a, CuHandle stream);
