/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of a card's engines at one time: which group has which engine, how far every channel
 * has got, and what was done on the way. It has words of 64 bits only, so that it can be copied
 * while another process writes. Times are ns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        ENGINE_GROUPS = 256,
        ENGINE_CHANNELS = 32,    /* of a group */
        ENGINE_RING_SIZE = 1024, /* of a channel: submitted and not done */
        ENGINE_LOG = 128,        /* completions that one advance can log */
        ENGINE_NONE = 0xFFFF,    /* no group or channel */
        ENGINE_PAGE = 4096,
};

#define ENGINE_HELD_NSEC   UINT64_C(10000000000) /* longest time slice of a group, whatever the settings say */
#define ENGINE_WINDOW_NSEC UINT64_C(166666667)   /* window for the utilisation */

typedef struct EngineMeter {
        uint64_t all; /* ns, ever */
        uint64_t window, inside,
                before; /* number of the current window; busy ns in it and in the one before */
} EngineMeter;

typedef struct EngineHead {
        uint64_t position; /* of the next entry, or of the one under way */
        uint64_t left;     /* remaining ns once it has begun; 0: it has not */
} EngineHead;

typedef struct EngineGroup {
        uint64_t generation; /* as in its row; 0: none */
        uint64_t channels;   /* those from here on were never used */
        uint64_t channel;    /* channel of the running kernel, or ENGINE_NONE */
        uint64_t last;       /* channel of the last kernel */
        EngineMeter ran;
        EngineHead heads[ENGINE_CHANNELS];
} EngineGroup;

typedef struct EngineDone {
        uint64_t group, channel, position, tag, time;
} EngineDone;

typedef struct EngineCopier {
        uint64_t group, channel, end; /* group ENGINE_NONE: idle */
        uint64_t last_group, last_channel;
} EngineCopier;

typedef struct EngineState {
        uint64_t now;
        uint64_t groups;    /* those from here on are unused */
        uint64_t owner;     /* group that has, or last had, the time slice */
        uint64_t loaded;    /* group that computed last: its context is in the compute engine */
        uint64_t resting;   /* 1: the compute engine was idle */
        uint64_t slice_end; /* end of the owner's time slice */
        uint64_t ready;     /* when it can begin to compute: a switch takes time */
        uint64_t n_log;
        EngineMeter busy;
        EngineCopier copiers[2];    /* up, down */
        EngineDone log[ENGINE_LOG]; /* what was done between the previous state and `now` */
        EngineGroup group[ENGINE_GROUPS];
} EngineState;

_Static_assert(sizeof(EngineState) % 8 == 0, "EngineState");
