/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One process's view of the execution of one card: what libcuda and NVML do with the memory that
 * sim/engine/shape.h lays out.
 *
 * Giving work is two stores; nobody else is asked. The engines go on when somebody looks: who wants
 * to know whether something is done copies the state, walks it to now, and puts the result in place
 * of what he copied. Who is late throws his away and begins again. All times are ns, and the
 * caller's: the same submissions at the same times give the same completions, whoever looks and how
 * often. Not thread-safe: an Engine, and the users on it, belong to who has the caller's lock. */

#include "sim/engine/shape.h"

typedef struct Engine Engine;

typedef struct EngineUser { /* a channel group of this process */
        Engine *engine;
        unsigned group;
        uint64_t generation;
        uint64_t tails[ENGINE_CHANNELS];
} EngineUser;

/* NULL: no memory. shared stays the caller's, and must outlive it; who only asks may have it mapped
 * read-only. */
Engine *engine_new(EngineShared *shared);
void engine_free(Engine *e);
const EngineShared *engine_shared(const Engine *e);

/* Finds the group that the server has entered under these handles, and takes it in. -ENOENT: it has
 * not entered it. */
int engine_join(Engine *e, uint32_t client, uint32_t group, uint64_t now, EngineUser *ret);

/* One more entry; its position is the number of those before it in the channel. false: the ring is
 * full, nothing was given. now must not be less than at an earlier call for this channel. */
bool engine_give(EngineUser *u, unsigned channel, EngineKind kind, uint64_t argument, uint64_t now,
                 uint64_t *ret_position);
bool engine_has_room(const EngineUser *u, unsigned channel, unsigned n);
void engine_set_priority(EngineUser *u, unsigned channel, unsigned priority); /* higher goes first */

/* Whether an entry is done as far as anybody has looked, and when that was. Holds until its place
 * is used again: by the entry that is ENGINE_PLACES behind it. */
bool engine_is_done(const EngineUser *u, unsigned channel, uint64_t position, uint64_t *ret_time);

/* Whether the server has taken the group away: what was given to it will never be done. */
bool engine_is_gone(const EngineUser *u);

/* Brings the engines to `now`, and makes known what was done. */
void engine_look(EngineUser *u, uint64_t now);

/* The earliest moment at which the entry could be done if nothing more is given; at least now, and
 * a lower bound where the way there is long. After engine_look(). */
uint64_t engine_expect(EngineUser *u, unsigned channel, uint64_t position, uint64_t now);

typedef struct EngineUsage {
        EngineMeter busy; /* of the card */
        unsigned n;
        struct {
                uint32_t client, group, pid;
                EngineMeter ran;
        } groups[ENGINE_GROUPS];
} EngineUsage;

/* The meters at `now`, with nothing changed for anybody. */
void engine_usage(Engine *e, uint64_t now, EngineUsage *ret);
