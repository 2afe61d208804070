/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CUDA contexts of the process: one slot each, found by handle. Also what becomes of work in
 * flight when a context or stream is destroyed. handle: the driver's CUcontext. */

#include "preload/launch/process.h"

/* Returns the context of a launch into the stream; 0: none. It is the stream's own if that can
 * differ from the current one. *ret_foreign: it is not the current one and must be made current for
 * the calls that follow. */
uintptr_t context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign);
/* Returns the context's slot, created if needed. NULL: no room or no memory. *ret_card is -1 if its
 * card is not known, or the handle is 0. */
Context *context_get(ProcessState *a, uintptr_t handle, int *ret_card);

/* Makes a context current for our own calls; false: the driver refused. pop: undoes it if
 * pushed. */
bool context_push(CuHandle context);
void context_pop(bool pushed);
bool context_is_current(CuHandle context);

/* batch_expire() of all contexts on the card but `except`, since their threads may do nothing. */
void context_expire_others(ProcessState *a, const Context *except, uint32_t card, uint64_t now);

/* Call it when the context has ended: charges its work on the card by the clock. Our events and our
 * stream in it end with it. Batches that other threads own are released by them. */
void context_forget(ProcessState *a, CuHandle context);

/* Around a driver call that destroys a context, which may be NULL. The call waits for the work,
 * which stays in flight until then. begin: marks the ends of all work; NULL: the context is not
 * known. end: charges the work. gone = false: the driver refused, and the context goes on. */
Context *context_destroy_begin(CuHandle context);
void context_destroy_end(Context *c, CuHandle context, bool gone);
/* Its CUcontext; NULL: none, or nothing is isolated here. */
CuHandle context_of_green(CuHandle green);
/* A primary context may have other holders. begin: its handle, or NULL if unknown. end: the context
 * has ended if the driver says that it is not active. */
CuHandle context_primary_begin(int device);
void context_primary_end(int device, CuHandle context);

/* A stream is about to be destroyed: it is not queried any more, and its work goes on. */
void context_destroy_stream(CuHandle stream);
