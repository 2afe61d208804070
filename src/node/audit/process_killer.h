/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kills processes of containers by SIGKILL, each once: one that takes time to end, because the
 * driver frees its memory, is not counted again. It decides nothing: the agent's options do. */

#include "base/clock.h"
#include "node/audit/memory_audit.h"

/* The third kill of one container within this time kills all its processes, because some of them
 * start those that are killed. */
enum { PROCESS_KILLER_KILLS = 3 };
#define PROCESS_KILLER_SPAN (60 * USEC_PER_SEC)

typedef struct ProcessKiller {
        struct KilledPid *killed;           /* some of them have ended since */
        struct KilledContainer *containers; /* some of them were killed long ago */
        /* size of `killed` at which those that have ended are forgotten */
        size_t sweep_at;
        const char *proc;    /* outlives it, as the next one; NULL: /proc */
        const char *cgroups; /* the host's cgroup tree; NULL: no cgroup is killed */
} ProcessKiller;

typedef struct KilledProcesses {
        /* killed by this call; not those that were killed before and take time to end */
        size_t killed;
        size_t failed;
        size_t pending; /* killed before, and not ended yet */
        bool all;       /* all processes of the container were to be killed */
} KilledProcesses;

void process_killer_done(ProcessKiller *k);

/* Kills those processes of the excess that still belong to its container, or where that is not
 * known to its pod. Where some have ended, other processes keep their driver file open, and it is
 * not known which: then all processes of the container are killed. The third kill within a minute
 * is of the whole container, as below; one that only finds processes that were killed before is
 * none. now: of CLOCK_MONOTONIC. */
KilledProcesses process_killer_end_excess(ProcessKiller *k, const MemoryExcess *excess, usec_t now);

/* Kills all processes of a container (NULL: of the pod), and those that start meanwhile. The
 * container's cgroup.kill does it (Linux 5.14, version 2). Where that is missing, they are killed
 * one by one until a look finds none, at most 16 looks. */
KilledProcesses process_killer_end_container(ProcessKiller *k, const RosterPod *pod, const char *container);
