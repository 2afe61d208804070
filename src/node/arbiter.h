/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter of compute beside the agent: begun before it, so that windows go on while the agent
 * is begun again, and begun again itself when it is killed. What it has to say comes through a pipe
 * that every agent reads in its turn. */

#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

typedef struct NodeArbiter {
        const char *board;
        uint64_t patience; /* ns, as in arbiter/respawn.h */
        int hear, tell,
                stop; /* hear: for the agent, non-blocking; -1: there is none. stop: ours, it ends when all have closed it */
        pid_t pid; /* below 1: there is none */
        usec_t began;
        unsigned short_lives; /* in a row */
} NodeArbiter;

#define NODE_ARBITER_NULL ((NodeArbiter){.hear = -1, .tell = -1, .stop = -1})

/* Starts it; what cannot be had is logged. patience: ns that a kernel may run beyond its window
 * before it is told of. The caller has one thread, and lives as long as it is to live. */
void node_arbiter_start(NodeArbiter *a, const char *board, uint64_t patience);

/* A child of the caller has ended: if it was the arbiter it is begun again, unless it has died
 * within a second many times in a row. */
void node_arbiter_ended(NodeArbiter *a, pid_t pid);
