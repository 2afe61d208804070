/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels that do not end because nobody can say their end: a process is stopped, or frozen. Pages
 * alone cannot tell that from a kernel that hangs, so it is told of as what it is, and looked at
 * anew each time that the arbiter tells of it again: who was seen to run twice in a row, so that he
 * has run for as long as a kernel may, is judged as everybody else. */

#include "node/audit/hung_reader.h"

enum { HUNG_FILTER_KERNELS = 64, HUNG_FILTER_NAME = 512, HUNG_FILTER_RUNS = 2 };

typedef enum HungVerdict {
        HUNG_VERDICT_HUNG,   /* to be told of as such, and ended where that is wished */
        HUNG_VERDICT_PAUSED, /* to be told of as one that is stopped */
        HUNG_VERDICT_WAIT    /* nothing new */
} HungVerdict;

typedef struct HungFilter { /* all zero: nobody is */
        struct {
                char name[HUNG_FILTER_NAME]; /* "": free */
                unsigned runs;
        } kernels
                [HUNG_FILTER_KERNELS]; /* where there is no more room the oldest is forgotten: it stays told of */
        size_t next;
} HungFilter;

HungVerdict hung_filter_judge(HungFilter *s, const HungKernel *k, bool is_paused);
