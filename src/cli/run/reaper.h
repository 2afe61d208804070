/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ends what a run with simulated cards leaves behind, because those processes have lost their
 * driver. A child process waits for the end of the run, however it ends. Then it kills the other
 * processes of its mount namespace and removes the folder of the cards. */

#include <sys/types.h>

#include "base/fault.h"

typedef struct Reaper {
        pid_t pid; /* 0: none */
        int hold;  /* write end of a pipe: the child waits while it is open */
} Reaper;

#define REAPER_NULL ((Reaper){.hold = -1})

/* Starts the child. folder: the mount point of the cards. The caller has one thread and is in a
 * mount namespace made for this run. Returns 0, or negative errno with a fault. */
int reaper_start(const char *folder, Reaper *ret, Fault *fault);

/* Waits until the other processes of the namespace, the simulator among them, have ended and the
 * folder is removed. */
void reaper_end(Reaper *k);
