/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Many processes on one slice: random sizes, random kills, by themselves at steps of the algorithm
 * and from outside at any instruction. Rounds: in each, every process makes a number of attempts;
 * then all wait, and the sums of what the living say that they have, of the used word and of the
 * rows must be the same. Who was killed is replaced. After each attempt the used word is within the
 * limit. */

#include <stdint.h>

typedef struct CrowdSpec {
        unsigned n_processes; /* at most 128 */
        uint64_t attempts;    /* of all, at least */
        uint64_t seed;        /* of what they ask for; when they are killed differs from run to run */
        uint32_t kill_steps;  /* a process kills itself at one step in so many */
} CrowdSpec;

typedef struct CrowdResult {
        uint64_t attempts, reserved, refused;
        uint64_t killed_by_step, killed_from_outside;
        uint64_t rounds;
} CrowdResult;

/* Ends the program with a message where something is not as it must be. */
CrowdResult crowd_run(const CrowdSpec *spec);
