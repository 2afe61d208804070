/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ends processes, each once: one that takes its time to end (a driver that gives back its memory)
 * is not counted again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ProcessKiller {
        struct KilledPid *killed; /* some of them have ended since */
        size_t sweep_at;          /* so many: those are forgotten */
        const char *proc;         /* outlives it */
} ProcessKiller;

void process_killer_done(ProcessKiller *k);

/* SIGKILL, if is_meant() says so of the pid once it is held fast: it may be somebody else's by now.
 * 1: killed now. 0: not meant, or killed before, or gone. Negative errno of the kernel. */
int process_killer_kill(ProcessKiller *k, uint32_t pid, bool (*is_meant)(const void *userdata, uint32_t pid),
                        const void *userdata);
