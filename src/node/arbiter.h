/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs the arbiter of compute as a child beside the agent. It starts before the agent, so that
 * windows go on while the agent restarts, and it is restarted when it dies. Its reports of hung
 * kernels come through a pipe, which each agent process reads in turn. */

#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

typedef struct NodeArbiter {
        const char *slicedir;
        uint64_t patience; /* nanoseconds, as in arbiter/respawn.h */
        int hear;          /* read end of its reports for the agent, non-blocking; -1: none */
        int tell;          /* write end of its reports */
        int stop;          /* the arbiter ends when all copies of this are closed */
        pid_t pid;         /* below 1: no arbiter runs */
        usec_t began;
        unsigned short_lives; /* runs in a row that lasted less than a second */
} NodeArbiter;

/* Starts the arbiter; failures are logged. patience: nanoseconds that a kernel may run beyond its
 * window before it is reported. The caller must have one thread and live as long as the arbiter. */
void node_arbiter_start(NodeArbiter *a, const char *slicedir, uint64_t patience);

/* Call it with each child that has ended. Restarts the arbiter if the child was it, unless it died
 * within a second many times in a row. */
void node_arbiter_ended(NodeArbiter *a, pid_t pid);
