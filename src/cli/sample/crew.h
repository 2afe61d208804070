/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Several processes that work on the card at the same time, as the workers of one container do. */

typedef struct CrewOrder {
        unsigned processes; /* 1 at least */
        unsigned kernel_us; /* 1 at least */
        double seconds;     /* of work, from when a process is ready */
        unsigned long mib;  /* that each allocates before; 0: none */
} CrewOrder;

/* Runs them to their ends, and prints `done B blocks in S s` for all together. 0, or 1 when one of
 * them failed, which it has told. */
int crew_run(const CrewOrder *order);
