/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Advances the engines of a card from one time to a later one: pure, without a clock, and without a
 * write to shared memory. The result depends on the state and on the submissions up to then, not on
 * the number of steps. A decision that is due at the end of a step is made when the next step
 * begins, so that work submitted at that time counts. */

#include "sim/engine/shape.h"

typedef enum EngineEnd {
        ENGINE_THERE,    /* at `until` */
        ENGINE_LOG_FULL, /* earlier: the log must be emptied first */
        ENGINE_TIRED,    /* earlier: the budget is used up */
        ENGINE_STOPPED,  /* the awaited entry is done */
} EngineEnd;

typedef struct EngineWalk {
        EngineState *state;
        const EngineShared *shared;
        uint64_t until;
        unsigned budget; /* events */
        bool forget;     /* do not log completions */
        /* Stop when this entry is done; group ENGINE_NONE: do not. */
        unsigned group, channel;
        uint64_t position;

        /* of the walk itself */
        uint64_t slice, change;
        uint64_t tails[ENGINE_GROUPS][ENGINE_CHANNELS];
        uint64_t wake[ENGINE_GROUPS]; /* next time at which the group can continue by itself */
        uint32_t kernels[ENGINE_GROUPS],
                copies[2][ENGINE_GROUPS]; /* channels with a kernel (or event), or a copy next */
        bool stirred[ENGINE_GROUPS];      /* must be examined again */
        bool stopped;
} EngineWalk;

EngineEnd engine_walk(EngineWalk *w);

/* Removes a group with all its work from the engines, now. */
void engine_drop(EngineState *s, unsigned group);

/* The meter at a later time, if nothing was added. */
void engine_meter_shift(EngineMeter *m, uint64_t now);
