/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/walk.h"

enum {
        TRIES = 64, /* attempts at a state that others replaced first; then the caller gets an older state */
        EVENTS = 1 << 13,       /* of a walk, before its state is published */
        EVENTS_AHEAD = 1 << 12, /* of a walk into the future */
};

#define PUBLISH_NSEC UINT64_C(2000000)     /* an older state is replaced even if nothing was done */
#define AHEAD_NSEC   UINT64_C(10000000000) /* a state further ahead of the clock is invalid */

struct Engine {
        EngineShared *shared;
        uint64_t current; /* the state was copied from */
        bool changed;     /* a group came or went since */
        EngineState state;
        EngineWalk walk;
};

Engine *engine_new(EngineShared *shared) {
        Engine *e = calloc(1, sizeof *e);

        if (e)
                e->shared = shared;
        return e;
}

void engine_free(Engine *e) {
        free(e);
}

const EngineShared *engine_shared(const Engine *e) {
        return e->shared;
}

/* ---- copying ---- */

/* `current`: the number of swaps, the process that the buffer is of, and which of its two it is. */
static uint64_t current_next(uint64_t before, unsigned group, unsigned which) {
        return ((before >> 9) + 1) << 9 | (uint64_t) group << 1 | which;
}

static EngineBuffer *buffer_of(EngineShared *shared, uint64_t current) {
        return &shared->buffers[current >> 1 & (ENGINE_GROUPS - 1)][current & 1];
}

/* The parts of a state that matter: everything before the log, the log so far, and the used
 * channels of each group. If a word is overwritten during the copy, the reader finds `current`
 * changed afterwards. */
static void copy_words(EngineState *s, EngineBuffer *b, bool out, size_t at, size_t bytes) {
        uint64_t *words = (uint64_t *) s;

        for (size_t i = at / 8; i < (at + bytes) / 8; i++)
                if (out)
                        atomic_store_explicit(&b->words[i], words[i], memory_order_release);
                else
                        words[i] = atomic_load_explicit(&b->words[i], memory_order_acquire);
}

static uint64_t at_most(uint64_t a, uint64_t limit) {
        return a < limit ? a : limit;
}

static void copy_group(EngineState *s, EngineBuffer *b, bool out, unsigned g) {
        size_t at = offsetof(EngineState, group) + g * sizeof(EngineGroup);
        EngineGroup *group = &s->group[g];

        copy_words(s, b, out, at, offsetof(EngineGroup, heads));
        group->channels = at_most(group->channels, ENGINE_CHANNELS);
        copy_words(s, b, out, at + offsetof(EngineGroup, heads), group->channels * sizeof(EngineHead));
}

static void copy_state(EngineState *s, EngineBuffer *b, bool out) {
        copy_words(s, b, out, 0, offsetof(EngineState, log));
        s->n_log = at_most(s->n_log, ENGINE_LOG);
        s->groups = at_most(s->groups, ENGINE_GROUPS);
        copy_words(s, b, out, offsetof(EngineState, log), s->n_log * sizeof(EngineDone));
        for (unsigned g = 0; g < s->groups; g++)
                copy_group(s, b, out, g);
}

static void clear(EngineState *s) {
        memset(s, 0, offsetof(EngineState, log));
        s->owner = s->loaded = ENGINE_NONE;
        s->resting = 1;
        for (unsigned i = 0; i < 2; i++)
                s->copiers[i] = (EngineCopier){ENGINE_NONE, 0, 0, ENGINE_NONE, 0};
}

/* Replaces values that no walk produces by ones that a walk can begin with. */
static void check(EngineState *s) {
        for (unsigned i = 0; i < 2; i++) {
                EngineCopier *c = &s->copiers[i];

                if (c->group >= s->groups || c->channel >= ENGINE_CHANNELS ||
                    c->channel >= s->group[c->group].channels || c->end > s->now + ENGINE_HELD_NSEC)
                        c->group = ENGINE_NONE;
        }
        s->ready = at_most(s->ready, s->now + ENGINE_HELD_NSEC);
        s->slice_end = at_most(s->slice_end, s->now + 2 * ENGINE_HELD_NSEC);
        for (unsigned g = 0; g < s->groups; g++) {
                EngineGroup *group = &s->group[g];

                if (group->channel >= group->channels)
                        group->channel = ENGINE_NONE;
                for (unsigned c = 0; c < group->channels; c++)
                        group->heads[c].left = at_most(group->heads[c].left, ENGINE_NS_MAX);
        }
}

/* Marks what the last swap completed: the process that swapped may have ended before it did. A slot
 * that was used again has another tag. */
static void flush_log(const EngineState *s, EngineShared *shared) {
        for (size_t i = 0; i < s->n_log; i++) {
                const EngineDone *d = &s->log[i];
                EngineSlot *p = &shared->rings[d->group % ENGINE_GROUPS]
                                         .slots[d->channel % ENGINE_CHANNELS][d->position % ENGINE_RING_SIZE];
                uint64_t expected = d->tag;

                if (atomic_load_explicit(&p->done, memory_order_relaxed) == expected &&
                    d->time < ENGINE_PENDING)
                        (void) atomic_compare_exchange_strong_explicit(
                                &p->done, &expected, d->time, memory_order_release, memory_order_relaxed);
        }
}

/* Copies the current state; false: other processes replaced it at each attempt. A state from the
 * future is invalid: all begins anew at 0, and completed work is skipped. */
static bool copy_current(Engine *e, uint64_t now) {
        for (unsigned i = 0; i < TRIES; i++) {
                uint64_t current = atomic_load_explicit(&e->shared->current, memory_order_acquire);

                if (current == 0)
                        clear(&e->state);
                else
                        copy_state(&e->state, buffer_of(e->shared, current), false);
                if (atomic_load_explicit(&e->shared->current, memory_order_relaxed) != current)
                        continue;
                if (e->state.now > now + AHEAD_NSEC)
                        clear(&e->state);
                check(&e->state);
                e->current = current;
                return true;
        }
        return false;
}

static bool swap(const EngineUser *u) {
        Engine *e = u->engine;
        unsigned which = (e->current >> 1 & (ENGINE_GROUPS - 1)) == u->group ? !(e->current & 1) : 0;
        uint64_t next = current_next(e->current, u->group, which);

        if (atomic_load_explicit(&e->shared->current, memory_order_acquire) != e->current)
                return false;
        copy_state(&e->state, buffer_of(e->shared, next), true);
        return atomic_compare_exchange_strong_explicit(&e->shared->current, &e->current, next,
                                                       memory_order_acq_rel, memory_order_relaxed);
}

/* ---- groups come and go ---- */

static uint64_t life_of(const Engine *e, unsigned g) {
        return atomic_load_explicit(&e->shared->rows[g].life, memory_order_acquire);
}

bool engine_is_gone(const EngineUser *u) {
        return life_of(u->engine, u->group) != (u->generation << 1 | 1);
}

static bool is_gone(const Engine *e, unsigned g) {
        uint64_t generation = e->state.group[g].generation, life = life_of(e, g);

        return generation != 0 && (life >> 1 != generation || !(life & 1));
}

/* The group that was removed first, and when: not before the state's own time. */
static unsigned first_gone(const Engine *e, uint64_t *ret_cut) {
        unsigned found = ENGINE_NONE;

        for (unsigned g = 0; g < e->state.groups; g++) {
                uint64_t cut = atomic_load_explicit(&e->shared->rows[g].cut, memory_order_relaxed);

                if (!is_gone(e, g) || (found != ENGINE_NONE && cut >= *ret_cut))
                        continue;
                *ret_cut = cut;
                found = g;
        }
        return found;
}

static void take_in(Engine *e) {
        uint64_t n = at_most(atomic_load_explicit(&e->shared->settings.groups, memory_order_relaxed),
                             ENGINE_GROUPS);
        EngineState *s = &e->state;

        while (s->groups > 0 && s->group[s->groups - 1].generation == 0)
                s->groups--;
        for (unsigned g = 0; g < n; g++) {
                uint64_t life = life_of(e, g);

                for (; s->groups <= g; s->groups++)
                        engine_drop(s, (unsigned) s->groups);
                if (s->group[g].generation != 0 || !(life & 1))
                        continue;
                s->group[g].generation = life >> 1;
                e->changed = true;
        }
}

/* ---- walking ---- */

static EngineEnd walk(Engine *e, uint64_t until) {
        EngineWalk *w = &e->walk;

        w->state = &e->state;
        w->shared = e->shared;
        w->until = until;
        return engine_walk(w);
}

/* Walks from the copied state to `now`; a removed group stays until its removal. */
static EngineEnd walk_to(Engine *e, uint64_t now) {
        EngineEnd end = ENGINE_THERE;
        uint64_t cut = 0;
        unsigned gone;

        if (!e->walk.forget)
                e->state.n_log = 0;
        while ((gone = first_gone(e, &cut)) != ENGINE_NONE) {
                if (cut > e->state.now)
                        end = walk(e, at_most(cut, now));
                if (end != ENGINE_THERE)
                        return end;
                engine_drop(&e->state, gone);
                e->changed = true;
        }
        take_in(e);
        return walk(e, now);
}

static void begin(Engine *e, bool forget) {
        e->walk.forget = forget;
        e->walk.budget = EVENTS;
        e->walk.group = ENGINE_NONE;
        e->changed = false;
}

void engine_look(EngineUser *u, uint64_t now) {
        Engine *e = u->engine;
        EngineEnd end = ENGINE_TIRED;

        for (unsigned i = 0; i < TRIES && end != ENGINE_THERE; i++) {
                uint64_t before;

                if (!copy_current(e, now))
                        return;
                flush_log(&e->state, e->shared);
                before = e->state.now;
                if (now < before)
                        now = before; /* another process read its clock a little later */
                begin(e, false);
                end = walk_to(e, now);
                if (end == ENGINE_THERE && e->state.n_log == 0 && !e->changed && now - before < PUBLISH_NSEC)
                        return;
                if (swap(u))
                        flush_log(&e->state, e->shared);
                else
                        end = ENGINE_TIRED;
        }
}

uint64_t engine_expect(EngineUser *u, unsigned channel, uint64_t position, uint64_t now) {
        Engine *e = u->engine;

        if (engine_is_done(u, channel, position, NULL) || !copy_current(e, now))
                return now;
        begin(e, true);
        e->walk.group = u->group;
        e->walk.channel = channel;
        e->walk.position = position;
        if (walk_to(e, now) != ENGINE_THERE) /* it is among those that are done by now */
                return now;
        e->walk.budget = EVENTS_AHEAD;
        (void) walk(e, now + AHEAD_NSEC);
        return e->state.now;
}

void engine_usage(Engine *e, uint64_t now, EngineUsage *ret) {
        EngineState *s = &e->state;

        *ret = (EngineUsage){.now = now};
        if (!copy_current(e, now))
                return;
        begin(e, true);
        (void) walk_to(e, now < s->now ? s->now : now); /* as far as it got */
        ret->now = now = s->now;
        ret->busy = s->busy;
        engine_meter_shift(&ret->busy, now);
        for (unsigned g = 0; g < s->groups; g++) {
                const EngineRow *row = &e->shared->rows[g];

                if (s->group[g].generation == 0)
                        continue;
                engine_meter_shift(&s->group[g].ran, now);
                ret->groups[ret->n].client = atomic_load_explicit(&row->client, memory_order_relaxed);
                ret->groups[ret->n].group = atomic_load_explicit(&row->group, memory_order_relaxed);
                ret->groups[ret->n].pid = atomic_load_explicit(&row->pid, memory_order_relaxed);
                ret->groups[ret->n++].ran = s->group[g].ran;
        }
}

/* ---- giving ---- */

int engine_join(Engine *e, uint32_t client, uint32_t group, uint64_t now, EngineUser *ret) {
        for (unsigned g = 0; g < ENGINE_GROUPS; g++) {
                const EngineRow *row = &e->shared->rows[g];
                uint64_t life = life_of(e, g);

                if (!(life & 1) || atomic_load_explicit(&row->client, memory_order_relaxed) != client ||
                    atomic_load_explicit(&row->group, memory_order_relaxed) != group)
                        continue;
                *ret = (EngineUser){.engine = e, .group = g, .generation = life >> 1};
                engine_look(ret, now);
                return 0;
        }
        return -ENOENT;
}

static EngineSlot *place_of(const EngineUser *u, unsigned channel, uint64_t position) {
        return &u->engine->shared->rings[u->group]
                        .slots[channel % ENGINE_CHANNELS][position % ENGINE_RING_SIZE];
}

bool engine_is_done(const EngineUser *u, unsigned channel, uint64_t position, uint64_t *ret_time) {
        uint64_t done = atomic_load_explicit(&place_of(u, channel, position)->done, memory_order_acquire);

        if (done & ENGINE_PENDING)
                return false;
        if (ret_time)
                *ret_time = done;
        return true;
}

bool engine_has_room(const EngineUser *u, unsigned channel, unsigned n) {
        uint64_t last = u->tails[channel % ENGINE_CHANNELS] + n - 1;

        return last < ENGINE_RING_SIZE || engine_is_done(u, channel, last - ENGINE_RING_SIZE, NULL);
}

bool engine_give(EngineUser *u, unsigned channel, EngineKind kind, uint64_t argument, uint64_t now,
                 uint64_t *ret_position) {
        EngineRings *r = &u->engine->shared->rings[u->group];
        uint64_t *tail = &u->tails[channel % ENGINE_CHANNELS];
        EngineSlot *p = place_of(u, channel, *tail);

        if (!engine_has_room(u, channel, 1))
                return false;
        atomic_store_explicit(&p->stamp, now, memory_order_relaxed);
        atomic_store_explicit(&p->what, (uint64_t) kind << 56 | at_most(argument, ENGINE_NS_MAX),
                              memory_order_relaxed);
        atomic_store_explicit(&p->done, engine_tag(u->generation, *tail), memory_order_relaxed);
        *ret_position = (*tail)++;
        if (atomic_load_explicit(&r->channels, memory_order_relaxed) <= channel)
                atomic_store_explicit(&r->channels, channel + 1, memory_order_relaxed);
        atomic_store_explicit(&r->tails[channel % ENGINE_CHANNELS], engine_tag(u->generation, *tail),
                              memory_order_release);
        return true;
}
