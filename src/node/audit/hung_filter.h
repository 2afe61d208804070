/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Separates kernels that hang from kernels of a process that is stopped or frozen, and so cannot
 * report their end. The slice pages alone do not show the difference.
 *
 * A kernel of a paused process is reported as that, and checked again each time the arbiter reports
 * it. Once its process was seen to run twice in a row, the kernel has had its time and is handled
 * as any other. */

#include "node/audit/hung_reader.h"

enum { HUNG_FILTER_KERNELS = 64, HUNG_FILTER_NAME = 512, HUNG_FILTER_RUNS = 2 };

typedef enum HungVerdict {
        HUNG_VERDICT_HUNG,   /* report it, and kill its container where that is configured */
        HUNG_VERDICT_PAUSED, /* report it as a kernel of a paused process */
        HUNG_VERDICT_WAIT    /* nothing to report */
} HungVerdict;

/* The kernels that were reported as paused. All zero: none. */
typedef struct HungFilter {
        struct {
                char name[HUNG_FILTER_NAME]; /* "": free */
                unsigned runs;
        } kernels[HUNG_FILTER_KERNELS]; /* the oldest is forgotten where there is no room */
        size_t next;
} HungFilter;

HungVerdict hung_filter_judge(HungFilter *f, const HungKernel *k, bool is_paused);
