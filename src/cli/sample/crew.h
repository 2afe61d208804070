/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Several processes that work on the card at the same time, like the workers of one container. */

typedef struct CrewOrder {
        unsigned processes; /* 1 at least */
        unsigned kernel_us; /* 1 at least */
        double seconds;     /* how long each process works, from when it is ready */
        unsigned long mib;  /* MiB that each process allocates first; 0: none */
} CrewOrder;

/* Runs the processes to their ends and prints `done B blocks in S s` for all together. Returns 0,
 * or 1 when a process failed, which is reported. */
int crew_run(const CrewOrder *order);
