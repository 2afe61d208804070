/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels that do not end because nobody can say their end: a process is stopped, or frozen. Pages
 * alone cannot tell that from a kernel that hangs, so it is told of as what it is, and looked at
 * anew each time that the arbiter tells of it again: who was seen to run twice in a row, so that he
 * has run for as long as a kernel may, is judged as everybody else. */

#include "node/audit/hung.h"

enum { SPARED_KERNELS = 64, SPARED_NAME = 512, SPARED_RUNS = 2 };

typedef enum SparedVerdict {
        SPARED_HANGS,  /* to be told of as such, and ended where that is wished */
        SPARED_PAUSED, /* to be told of as one that is stopped */
        SPARED_WAIT    /* nothing new */
} SparedVerdict;

typedef struct Spared { /* all zero: nobody is */
        struct {
                char name[SPARED_NAME]; /* "": free */
                unsigned runs;
        } kernels[SPARED_KERNELS]; /* where there is no more room the oldest is forgotten: it stays told of */
        size_t next;
} Spared;

SparedVerdict spared_judge(Spared *s, const HungKernel *k, bool is_paused);
