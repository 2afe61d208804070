/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kills processes of containers by SIGKILL, each once: one that takes time to end, because the
 * driver frees its memory, is not counted again. It decides nothing: the agent's options do. */

#include "node/audit/memory_audit.h"

typedef struct ProcessKiller {
        struct KilledPid *killed; /* some of them have ended since */
        size_t sweep_at;          /* when there are this many, ended ones are forgotten */
        const char *proc;         /* outlives it; NULL: /proc */
} ProcessKiller;

typedef struct KilledProcesses {
        size_t killed; /* without those that were killed before and take time to end */
        size_t failed;
        bool all; /* all processes of the container were to be killed */
} KilledProcesses;

void process_killer_done(ProcessKiller *k);

/* Kills those processes of the excess that still belong to its container, or where that is not
 * known to its pod. Where some have ended, other processes keep their driver file open, and it is
 * not known which: then all processes of the container are killed. */
KilledProcesses process_killer_end_excess(ProcessKiller *k, const MemoryExcess *excess);

/* Kills all processes of a container (NULL: of the pod), and those that start meanwhile. */
KilledProcesses process_killer_end_container(ProcessKiller *k, const RosterPod *pod, const char *container);
