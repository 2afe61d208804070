/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Holds launches until the container's window is open. While the arbiter is away, a container with a
 * percentage keeps to it by itself: each process has its part of the rate as a balance, and waits
 * when that is used up (duty.h). */

#include "preload/launch/host_func.h"
#include "preload/launch/process.h"

typedef struct AdmittedLaunch {
        ProcessState *process; /* NULL: it is not counted */
        Context *context;
        uintptr_t handle; /* of the context as the driver names it */
        Batch *batch;
        Estimate *estimate;
        CuHandle stream; /* as the driver is asked about it */
        uint64_t nsec, now;
        uint32_t card;
        bool waited, fills; /* fills: there is no room for the next one */
        bool foreign;       /* its context is not the current one */
        bool stray;         /* it has none */
} AdmittedLaunch;

/* The gate, if any card of this container is limited, now; NULL: launches are not our business. */
Gate *admission_gate(void);

/* Before a launch: waits for its turn. function: the kernel, or the graph that can be launched;
 * blocks: its size, 0 of a graph. stream as the application gave it, twin: in a function that takes
 * NULL for the thread's own. What is captured passes. */
void admission_enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                     bool twin);
/* After it, with what the driver said. */
void admission_leave(AdmittedLaunch *l, int result);

/* Before the driver is given a function of the program's, for a stream as in a launch: what it is
 * to be given instead; NULL: nothing. The work before it is measured apart from the work behind
 * it. */
HostFuncSlot *admission_host_func(Gate *g, const HostFunc *call, CuHandle stream, bool twin);
/* After it, with what the driver said. */
void admission_host_func_given(Gate *g, HostFuncSlot *p, int result);

/* Around a call that ends a context: what it has on the card is in flight until the driver has
 * waited for it. gone: it has ended; false: the driver refused, or another holder has it. NULL:
 * none. */
void admission_context_destroy(CuHandle context);
void admission_context_destroyed(CuHandle context, bool gone);
bool admission_is_current(CuHandle context);
CuHandle admission_green_context(
        CuHandle green); /* the context that was made of it has a handle of its own */
/* A card's primary context may end, or have others that retained it. Before: which it is, NULL if
 * that cannot be told. After it: it has ended only if the driver says that it is not active. */
CuHandle admission_primary_context(int device);
void admission_primary_released(int device, CuHandle context);
/* A stream is about to end: nothing is asked of it any more. */
void admission_stream_destroy(CuHandle stream);
