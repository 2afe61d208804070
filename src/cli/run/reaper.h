/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Simulated cards end with the run that brought them, and what is left behind would talk to nobody.
 * So a process of its own waits for the end of the run, however that comes, and ends what is still
 * in its mount namespace, and the folder the cards were in. */

#include <sys/types.h>

#include "base/fault.h"

typedef struct Reaper {
        pid_t pid; /* 0: none */
        int hold;  /* as long as we have it open, it waits */
} Reaper;

#define REAPER_NULL ((Reaper){.hold = -1})

/* folder: where the cards will be mounted. The caller has one thread, and is in a mount namespace
 * that he has made for this. 0, or negative errno with a fault. */
int reaper_start(const char *folder, Reaper *ret, Fault *fault);

/* Waits until all others of the namespace are ended, the simulator among them, and the folder is
 * gone. */
void reaper_end(Reaper *k);
