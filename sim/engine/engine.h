/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One process's view of the execution of one card: what libcuda and NVML do with the memory of
 * sim/engine/shape.h. To submit work is two stores. The engines advance when a process looks: it
 * copies the state, walks it to now, and swaps the result in. If another process was faster, the
 * result is dropped and the process begins again.
 *
 * All times are ns, of the caller's clock. The same submissions at the same times give the same
 * completions, however often any process looks. Not thread-safe: an Engine and its users need the
 * caller's lock. */

#include "sim/engine/shape.h"

typedef struct Engine Engine;

typedef struct EngineUser { /* a channel group of this process */
        Engine *engine;
        unsigned group;
        uint64_t generation;
        uint64_t tails[ENGINE_CHANNELS];
} EngineUser;

/* NULL: no memory. shared belongs to the caller, and must outlive it. A process that only reads may
 * map it read-only. */
Engine *engine_new(EngineShared *shared);
void engine_free(Engine *e);
const EngineShared *engine_shared(const Engine *e);

/* Finds the group that the server has entered under these handles, and opens it. -ENOENT: it has
 * not entered it. */
int engine_join(Engine *e, uint32_t client, uint32_t group, uint64_t now, EngineUser *ret);

/* Submits an entry. Its position is the number of those before it in the channel. false: the ring
 * is full, and nothing was submitted. now must not be less than at an earlier call for this
 * channel. */
bool engine_give(EngineUser *u, unsigned channel, EngineKind kind, uint64_t argument, uint64_t now,
                 uint64_t *ret_position);
bool engine_has_room(const EngineUser *u, unsigned channel, unsigned n);

/* Whether an entry is done by the last look, and when. Valid until its slot is used again, by the
 * entry ENGINE_RING_SIZE behind it. */
bool engine_is_done(const EngineUser *u, unsigned channel, uint64_t position, uint64_t *ret_time);

/* Whether the server has removed the group: its submitted work will never be done. */
bool engine_is_gone(const EngineUser *u);

/* Advances the engines to `now`, and publishes what was done. */
void engine_look(EngineUser *u, uint64_t now);

/* The earliest time at which the entry could be done if nothing more is submitted: at least now,
 * and a lower bound if that is far away. After engine_look(). */
uint64_t engine_expect(EngineUser *u, unsigned channel, uint64_t position, uint64_t now);

typedef struct EngineUsage {
        uint64_t now;     /* the time that the meters are of */
        EngineMeter busy; /* of the card */
        unsigned n;
        struct {
                uint32_t client, group, pid;
                EngineMeter ran;
        } groups[ENGINE_GROUPS];
} EngineUsage;

/* The meters at `now`, or at the later time that another process has published; changes nothing. */
void engine_usage(Engine *e, uint64_t now, EngineUsage *ret);
