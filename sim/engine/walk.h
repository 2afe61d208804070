/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The engines of a card, from one moment to a later one: pure, no clock, no writing to what is
 * shared. What happens depends on the state and on what was given up to then, not on how many steps
 * it is walked in: what is decided at a moment is decided when the walk goes on from there, so that
 * whatever is given at that moment has its say. */

#include "sim/engine/shape.h"

typedef enum EngineEnd {
        ENGINE_THERE,    /* at `until` */
        ENGINE_LOG_FULL, /* before: the log must be taken away first */
        ENGINE_TIRED,    /* before: the budget is used up */
        ENGINE_STOPPED,  /* what was waited for is done */
} EngineEnd;

typedef struct EngineWalk {
        EngineState *state;
        const EngineShared *shared;
        uint64_t until;
        unsigned budget; /* events */
        bool forget;     /* completions are not logged */
        /* Stops when this entry is done; group ENGINE_NONE: no such wish. */
        unsigned group, channel;
        uint64_t position;

        /* of the walk itself */
        uint64_t slice, change;
        uint64_t tails[ENGINE_GROUPS][ENGINE_CHANNELS];
        uint64_t wake[ENGINE_GROUPS]; /* when something of the group can go on by itself */
        uint32_t kernels[ENGINE_GROUPS], copies[2][ENGINE_GROUPS]; /* channels that have one next */
        bool stirred[ENGINE_GROUPS];                               /* must be looked at anew */
        bool stopped;
} EngineWalk;

EngineEnd engine_walk(EngineWalk *w);

/* Takes a group with all its work off the engines, now. */
void engine_drop(EngineState *s, unsigned group);

/* The meter at a later moment at which nothing was added. */
void engine_meter_shift(EngineMeter *m, uint64_t now);
