/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Work for a card, in blocks of a tenth of a second of card time. A block is a series of kernels of
 * one length and a wait for the last, or one kernel where it is longer than a block. Alone on a
 * card and without a limit, ten blocks take a second; with 30 % of its compute, three. */

#include "cli/sample/cuda.h"

typedef struct Work {
        const Cuda *cuda;
        void *kernel;
        unsigned kernel_us; /* how long one kernel runs */
        /* turns of the loop per microsecond on this card; the simulated card
         * ignores them */
        unsigned rate;
        unsigned groups; /* thread blocks, enough to fill the card */
} Work;

/* Loads the kernel and measures how fast the card runs its loop. Returns 0 or CUDA's error, which
 * is reported. */
int work_init(Work *w, const Cuda *cuda, unsigned kernel_us);

/* Runs blocks of kernels (not thread blocks) for `seconds` and prints a line for each. *ret: number
 * of blocks run. Returns 0 or CUDA's error, which is reported. */
int work_run(const Work *w, double seconds, unsigned long *ret);
