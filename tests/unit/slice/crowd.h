/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Many processes on one slice, with random sizes and random kills: by themselves at steps of the
 * algorithm, and from outside at any instruction. In each round every process makes a number of
 * attempts. Then all wait, and three sums must be equal: what the living processes hold, the used
 * word, and the rows. Killed processes are replaced. After each attempt the used word is within the
 * limit. */

#include <stdint.h>

typedef struct CrowdSpec {
        unsigned n_processes; /* at most 128 */
        uint64_t attempts;    /* of all, at least */
        uint64_t seed;        /* of the sizes; the times of kills differ between runs */
        uint32_t kill_steps;  /* a process kills itself at one step in so many */
} CrowdSpec;

typedef struct CrowdResult {
        uint64_t attempts, reserved, refused;
        uint64_t killed_by_step, killed_from_outside;
        uint64_t rounds;
} CrowdResult;

/* Ends the program with a message if a check fails. */
CrowdResult crowd_run(const CrowdSpec *spec);
