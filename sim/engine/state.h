/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the engines of a card are at one moment: who has which of them, how far every channel has
 * come, and what was done on the way there. Words of 64 bits only, so that it can be copied while
 * somebody writes. Times are ns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ENGINE_GROUPS = 256,
        ENGINE_CHANNELS = 32, /* of a group */
        ENGINE_PLACES = 1024, /* of a channel: work that is given and not done */
        ENGINE_LOG = 128,     /* completions that one advance can have */
        ENGINE_NONE = 0xFFFF, /* no group, no channel */
        ENGINE_PAGE = 4096,
};

#define ENGINE_HELD_NSEC                                                                                     \
        UINT64_C(10000000000) /* no group has an engine for longer at a time, whatever is written */
#define ENGINE_WINDOW_NSEC UINT64_C(166666667) /* over which utilisation is measured */

typedef struct EngineMeter {
        uint64_t all; /* ns, ever */
        uint64_t window, inside,
                before; /* number of the window that runs; busy ns in it, and in the one before */
} EngineMeter;

typedef struct EngineHead {
        uint64_t position; /* of the entry that is next, or under way */
        uint64_t left;     /* ns that it still has to run, once it has begun; 0: it has not */
} EngineHead;

typedef struct EngineGroup {
        uint64_t generation; /* as in its row; 0: nobody */
        uint64_t channels;   /* those from here on were never used */
        uint64_t channel;    /* whose kernel is under way; ENGINE_NONE */
        uint64_t last;       /* channel that had a kernel last */
        EngineMeter ran;
        EngineHead heads[ENGINE_CHANNELS];
} EngineGroup;

typedef struct EngineDone {
        uint64_t group, channel, position, tag, time;
} EngineDone;

typedef struct EngineCopier {
        uint64_t group, channel, end; /* group ENGINE_NONE: it is idle */
        uint64_t last_group, last_channel;
} EngineCopier;

typedef struct EngineState {
        uint64_t now;
        uint64_t groups;    /* those from here on are nobody */
        uint64_t owner;     /* group that has the compute engine, or had it last */
        uint64_t resting;   /* 1: the compute engine had nothing to do */
        uint64_t slice_end; /* the owner's turn */
        uint64_t ready;     /* from when on it can compute: a change costs time */
        uint64_t n_log;
        EngineMeter busy;
        EngineCopier copiers[2];    /* up, down */
        EngineDone log[ENGINE_LOG]; /* what was done on the way to `now` from the state before */
        EngineGroup group[ENGINE_GROUPS];
} EngineState;

_Static_assert(sizeof(EngineState) % 8 == 0, "EngineState");
