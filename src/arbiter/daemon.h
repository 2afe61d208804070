/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter's process: one engine per card with slices in the slice directory. It reads the
 * reports of the containers' processes and writes windows into the slice pages. libc only.
 *
 * One daemon per slice directory holds the lock on DIR/arbiter. Others wait for the lock and take
 * over when its process ends; the slice pages hold all state that they need. */

#include <stdbool.h>
#include <stdint.h>

#include "base/fault.h"

typedef struct DaemonOverrun {
        const char *slice;      /* name of its directory */
        const char *container;  /* the container's name, for messages */
        const char *uuid;       /* UUID of the card */
        uint64_t nsec;          /* how long it has run beyond its window */
        bool partial, repeated; /* as in OverrunReport */
} DaemonOverrun;

typedef struct DaemonOptions {
        const char *slicedir;   /* as slicedir_open() takes it */
        int stop;               /* a file descriptor: when readable or hung up, the daemon ends */
        uint64_t overrun_limit; /* ns beyond a window until work is reported; 0: OVERRUN_REPORT_NS */
        /* called for each report of overdue work; may be NULL */
        void (*on_overrun)(void *userdata, const DaemonOverrun *kernel);
        void *userdata;
} DaemonOptions;

/* Runs the arbiter until `stop` is readable. Returns 0; DAEMON_E_MOVED: another directory is at the
 * path now, call again; or negative errno with a fault. -ENOENT: there is no slice directory. */
enum { DAEMON_E_MOVED = 1 };
int daemon_run(const DaemonOptions *options, Fault *fault);
