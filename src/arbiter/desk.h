/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter as a process: an engine for each card that has slices on the board, fed with what
 * their containers say, and its windows written into their pages. libc only.
 *
 * There is one per board: it has the lock of BOARD/arbiter. Others wait for it, and take over when
 * its process is gone: what the pages say is all that they need. */

#include "arbiter/engine.h"
#include "base/fault.h"

typedef struct DeskKernel {
        const char *slice;     /* its name on the board */
        const char *container; /* for people */
        const char *uuid;      /* of the card */
        uint64_t nsec;         /* so long it has run beyond its window */
        bool part, again;      /* as in EngineEvent */
} DeskKernel;

typedef struct DeskOptions {
        const char *board; /* as slicedir_open() takes it */
        int stop;          /* readable, or hung up: it ends */
        uint64_t
                patience; /* ns that a kernel may run beyond its window before it counts as hung; 0: ENGINE_HUNG */
        void (*hung)(void *userdata,
                     const DeskKernel *kernel); /* a kernel that will not end; NULL: nobody asks */
        void *userdata;
} DeskOptions;

/* Runs until it is told to stop. 0; DESK_E_MOVED: another directory stands where the board was,
 * begin again; or negative errno with a fault: -ENOENT, there is no board. */
enum { DESK_E_MOVED = 1 };
int desk_run(const DeskOptions *options, Fault *fault);

/* Runs it in a child of its own, begun again when it dies; both end with the caller, or when
 * *ret_stop is closed. The caller has one thread. Returns the child's pid, or negative errno. */
int desk_start(const char *board, int *ret_stop);

/* The same, and a line for each kernel that will not end (patience: as above) is written to `tell`
 * beside standard error, which is not waited for; it stays the caller's; -1: nobody is told. A line
 * is "VERB NSEC SLICE UUID CONTAINER", shorter than PIPE_BUF; VERB is "hung", or "part" where
 * others of the container's processes go on; "still-hung" and "still-part" each `patience` that it
 * lasts. */
int desk_start_telling(const char *board, int tell, uint64_t patience, int *ret_stop);
