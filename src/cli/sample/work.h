/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Work for a card, in blocks of a tenth of a second of it: kernels of one length, one after the
 * other, and a wait for the last (one kernel where it is longer than that). Alone on a card and
 * without a limit ten blocks are done in a second; with 30 % of its compute, three. */

#include "cli/sample/cuda.h"

typedef struct Work {
        const Cuda *cuda;
        void *kernel;
        unsigned kernel_us; /* how long one kernel has the card */
        unsigned
                rate; /* turns of its loop in a microsecond of this card; the simulated one looks at the length only */
        unsigned groups; /* thread blocks: as many as fill the card */
} Work;

/* Loads the kernel, and measures how fast the card goes through its loop. 0 or CUDA's error, which
 * has been told. */
int work_init(Work *w, const Cuda *cuda, unsigned kernel_us);

/* Does blocks until so many seconds have passed, with a line for each on standard output. *ret: how
 * many. 0 or CUDA's error, which has been told. */
int work_run(const Work *w, double seconds, unsigned long *ret);
