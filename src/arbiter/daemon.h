/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter as a process: an engine for each card that has slices in the slice directory, fed
 * with what their containers say, and its windows written into their pages. libc only.
 *
 * There is one per slice directory: it has the lock of DIR/arbiter. Others wait for it, and take
 * over when its process is gone: what the pages say is all that they need. */

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct DaemonOverrun {
        const char *slice;      /* its name in the slice directory */
        const char *container;  /* for people */
        const char *uuid;       /* of the card */
        uint64_t nsec;          /* so long it has run beyond its window */
        bool partial, repeated; /* as in OverrunReport */
} DaemonOverrun;

typedef struct DaemonOptions {
        const char *slicedir; /* as slicedir_open() takes it */
        int stop;             /* readable, or hung up: it ends */
        uint64_t
                overrun_limit; /* ns that a kernel may run beyond its window before it counts as hung; 0: OVERRUN_REPORT_NS */
        void (*on_overrun)(void *userdata,
                           const DaemonOverrun *kernel); /* a kernel that will not end; NULL: nobody asks */
        void *userdata;
} DaemonOptions;

/* Runs until it is told to stop. 0; DAEMON_E_MOVED: another directory stands where the slice
 * directory was, begin again; or negative errno with a fault: -ENOENT, there is no slice
 * directory. */
enum { DAEMON_E_MOVED = 1 };
int daemon_run(const DaemonOptions *options, Fault *fault);
