/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Patterns of real programs as data, run on the card of card.h. docs/internals/patterns.md has the
 * sources of their figures. */

#include "card.h"

typedef enum PatternAct {
        PATTERN_END,
        PATTERN_KERNELS,   /* n kernels into the stream, one after the other */
        PATTERN_UP,        /* a copy to the card */
        PATTERN_DOWN,      /* a copy from the card */
        PATTERN_AFTER,     /* what follows in the stream waits for what is in stream n */
        PATTERN_WAIT,      /* the program waits for the stream */
        PATTERN_COMPUTE,   /* of a processor */
        PATTERN_PAUSE,     /* the program waits for something else */
        PATTERN_PACE,      /* until so long after the last time, if that is still to come */
        PATTERN_REST,      /* a pause that is not counted as the program's time */
        PATTERN_HOST_FUNC, /* in the stream; it takes the lock, then computes */
        PATTERN_LOCK,
        PATTERN_UNLOCK,
} PatternAct;

typedef struct PatternRange {
        uint32_t least, most; /* us */
} PatternRange;

typedef struct PatternStep {
        PatternAct act;
        unsigned stream, n;
        PatternRange time; /* of a kernel, a copy, a pause, ... */
        PatternRange host; /* of a processor, before each kernel */
} PatternStep;

enum { PATTERN_STEPS = 12, PATTERN_CAPS = 5 };

typedef struct Pattern {
        const char *name;
        unsigned n_streams;               /* beside the default one, which is stream 0 */
        bool rotates;                     /* each time the steps' streams are the next ones */
        uint32_t warm, seconds, beside;   /* not counted; counted, alone and beside another tenant */
        PatternStep steps[PATTERN_STEPS]; /* repeated without end */
} Pattern;

extern const Pattern patterns[];
extern const unsigned patterns_n;
extern const uint32_t pattern_caps[PATTERN_CAPS];

typedef enum PatternRule {                 /* how the program shares the card */
                           PATTERN_NATIVE, /* without Aliquot */
                           PATTERN_CAPPED, /* a fixed percentage */
} PatternRule;

typedef struct PatternCase {
        const Pattern *pattern;
        PatternRule rule;
        uint32_t cap;  /* percent; 0: none */
        uint32_t most; /* seconds that count; 0: those of the pattern */
        bool beside;   /* another tenant always wants the card, and has the rest of the percent */
} PatternCase;

typedef struct PatternResult {
        double share; /* percent of the card */
        double work;  /* the same without the rests: percent of the card while the program works */
        double other; /* the other tenant's share */
        double steps; /* of the arbiter, a second */
} PatternResult;

PatternResult pattern_run(const PatternCase *c, uint64_t seed);
