/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CUDA contexts of the process: one slot each, found by handle. Also what becomes of work in
 * flight when a context or stream is destroyed. handle: the driver's CUcontext. */

#include "preload/launch/process.h"

/* The context of a launch into the stream; 0: none. It is the stream's own if that can differ from
 * the current one. *ret_foreign: it is not the current one and must be made current for the calls
 * that follow. */
uintptr_t context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign);
/* The context's slot, created if needed. NULL: no room or no memory. *ret_card is -1 if its card is
 * not known, or the handle is 0. */
Context *context_get(ProcessState *a, uintptr_t handle, int *ret_card);

/* Ends a context at once (handle 0: all of them) and charges its work on the card by the clock.
 * gone: the driver has destroyed it with our events and stream; else these are destroyed now.
 * Batches that other threads own are released by them. */
void context_destroy_now(ProcessState *a, uintptr_t handle, bool gone);
/* Around a driver call that destroys a context, which waits for its work: the work stays in flight
 * until then. mark: marks the end of all work, with the context current; ends = false: the call may
 * leave it alive. begin: destroys our events and stream. end: charges the work; gone = false: the
 * driver refused, and the work is charged when it ends. */
bool context_destroy_is_known(ProcessState *a, uintptr_t handle);
void context_destroy_mark(ProcessState *a, uintptr_t handle, bool ends);
void context_destroy_begin(ProcessState *a, uintptr_t handle);
void context_destroy_end(ProcessState *a, uintptr_t handle, bool gone);

/* Makes a context current for our own calls; false: the driver refused. pop: undoes it if
 * pushed. */
bool context_push(CuHandle context);
void context_pop(bool pushed);

/* Before the driver destroys the stream; its work goes on. */
void context_destroy_stream(ProcessState *a, CuHandle stream);
