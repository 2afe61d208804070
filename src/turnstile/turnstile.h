/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Holds launches until the container's window is open. Where the arbiter is away, who has a percentage keeps to it by himself: his
 * balance is filled at that rate, all processes of the container together, and whoever has none left waits. */

#include "turnstile/account.h"

typedef struct Launch {
        Account *account; /* NULL: it is not counted */
        Context *context;
        Batch *batch;
        Estimate *estimate;
        uint64_t nsec, now;
        uint32_t card;
        bool waited, fills; /* fills: there is no room for the next one */
} Launch;

/* Whether a slice's compute is limited at all, now. */
bool turnstile_limits(const SliceLimits *l);

/* The gate, if any card of this container is limited, now; NULL: launches are not our business. */
Gate *turnstile_gate(void);

/* Before a launch: waits for its turn. function: the kernel, or the graph that can be launched; blocks: its size, 0 of a graph. stream
 * as the application gave it, twin: in a function that takes NULL for the thread's own. What is captured passes. */
void turnstile_enter(Gate *g, Launch *l, CuHandle function, uint64_t blocks, CuHandle stream, bool twin);
/* After it, with what the driver said. */
void turnstile_leave(Launch *l, int result);

/* A context is about to end; NULL: any may. */
void turnstile_context_ends(CuHandle context);
/* A stream is about to end: nothing is asked of it any more. */
void turnstile_stream_ends(CuHandle stream);
