/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Holds kernel launches and copies until the container's window is open. While the arbiter is away,
 * a container with a percentage limits itself: each process has its part of the rate as a balance.
 * Its launches wait when that is used up (duty.h). */

#include "preload/launch/host_func.h"
#include "preload/launch/process.h"

typedef struct AdmittedLaunch {
        ProcessState *process; /* NULL: the launch is not limited */
        Context *context;
        uintptr_t handle; /* the context's handle in the driver */
        Batch *batch;
        Estimate *estimate;
        CuHandle stream; /* the stream for queries */
        uint64_t nsec, now;
        uint32_t card;
        bool waited, fills; /* fills: no further launch fits into the depth */
        bool copy;          /* a copy or fill */
        bool blocks;        /* the driver's call lasts as long as the copy */
        bool foreign;       /* the context is not the current one */
        bool no_context;    /* there is no current context */
} AdmittedLaunch;

/* Returns the gate if the compute of any card of this container is limited now; else NULL. */
Gate *admission_gate(void);

/* Before a launch: waits until it is admitted. function: the kernel or the executable graph;
 * blocks: its grid size, 0 for a graph. stream: as the application passed it. twin: the entry point
 * is one in which a NULL stream is the thread's own. Launches into a captured stream are admitted
 * at once. */
void admission_enter(Gate *g, AdmittedLaunch *l, CuHandle function, uint64_t blocks, CuHandle stream,
                     bool twin);

/* Like admission_enter(), for a copy or fill. While kernels of its process are in flight it is
 * admitted at once, because one of them may wait for it. */
typedef enum CopyKind { COPY_NOT_HELD, COPY_FROM_HOST, COPY_IN_CARD, COPY_FILL } CopyKind;
typedef struct Copy {
        CopyKind kind;
        bool blocks; /* the driver returns when it is done */
        uint64_t bytes;
} Copy;
enum { MIN_HELD_BYTES = 65536 }; /* smaller copies from the host are not limited */
void admission_enter_copy(Gate *g, AdmittedLaunch *l, const Copy *copy, CuHandle stream, bool twin);
/* After the launch or copy. result: what the driver returned. */
void admission_leave(AdmittedLaunch *l, int result);

/* Before the driver gets a host function of the application, for a stream as in a launch. Returns
 * what the driver gets instead; NULL: no replacement. Ends the stream's batch, so that work before
 * and after the function is measured apart. */
HostFuncSlot *admission_host_func(Gate *g, const HostFunc *call, CuHandle stream, bool twin);
/* Call it after the driver's call with that function. result: what the driver returned. */
void admission_host_func_given(HostFuncSlot *p, int result);
