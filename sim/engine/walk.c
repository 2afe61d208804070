/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/engine/walk.h"

#include <string.h>

static uint64_t load(const _Atomic uint64_t *at) {
        return atomic_load_explicit(at, memory_order_relaxed);
}

static uint64_t later(uint64_t a, uint64_t b) {
        return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* ---- meters ---- */

void engine_meter_shift(EngineMeter *m, uint64_t now) {
        uint64_t window = now / ENGINE_WINDOW_NSEC;

        if (window == m->window)
                return;
        m->before = window == m->window + 1 ? m->inside : 0;
        m->inside = 0;
        m->window = window;
}

static void meter(EngineMeter *m, uint64_t from, uint64_t to) {
        uint64_t begin = to / ENGINE_WINDOW_NSEC * ENGINE_WINDOW_NSEC;
        uint64_t before = begin > ENGINE_WINDOW_NSEC ? begin - ENGINE_WINDOW_NSEC : 0;

        engine_meter_shift(m, to);
        m->all += to - from;
        m->inside += to - earlier(later(from, begin), to);
        m->before += begin - earlier(later(from, before), begin);
}

/* ---- entries ---- */

static bool log_has_room(const EngineWalk *w, unsigned n) {
        return w->forget || w->state->n_log + n <= ENGINE_LOG;
}

static void complete(EngineWalk *w, unsigned g, unsigned c) {
        EngineState *s = w->state;
        EngineGroup *group = &s->group[g];
        uint64_t position = group->heads[c].position;

        if (!w->forget)
                s->log[s->n_log++] =
                        (EngineDone){g, c, position, engine_tag(group->generation, position), s->now};
        group->heads[c] = (EngineHead){position + 1, 0};
        w->stopped = w->stopped || (g == w->group && c == w->channel && position == w->position);
}

typedef enum Next { NEXT_NOTHING, NEXT_DONE, NEXT_WAITS, NEXT_READY } Next;

static uint64_t argument_of(const EngineSlot *p) {
        return load(&p->what) & ENGINE_NS_MAX;
}

static EngineKind kind_of(const EngineSlot *p) {
        return (EngineKind) (load(&p->what) >> 56);
}

static const EngineSlot *place_of(const EngineWalk *w, unsigned g, unsigned c) {
        return &w->shared->rings[g].slots[c][w->state->group[g].heads[c].position % ENGINE_RING_SIZE];
}

static Next judge_after(const EngineWalk *w, unsigned g, uint64_t argument) {
        const EngineHead *other = &w->state->group[g].heads[argument >> 48 & (ENGINE_CHANNELS - 1)];

        return other->position > (argument & ENGINE_POSITION) ? NEXT_DONE : NEXT_WAITS;
}

static Next judge_time(EngineWalk *w, unsigned g, uint64_t time) {
        if (time <= w->state->now)
                return NEXT_DONE;
        w->wake[g] = earlier(w->wake[g], time);
        return NEXT_WAITS;
}

/* A channel's methods, those that write time stamps among them, are processed while its group has a
 * time slice (NVIDIA/open-gpu-doc, manuals/ampere/ga100/dev_ram.ref.txt, "Runlist TSG Entry Type").
 * Copy engines have runlists of their own: they process the first event after a copy. */
static Next judge_event(EngineWalk *w, unsigned g, unsigned c) {
        uint64_t position = w->state->group[g].heads[c].position;
        EngineKind before = kind_of(&w->shared->rings[g].slots[c][(position - 1) % ENGINE_RING_SIZE]);

        if (w->state->owner == g || (position > 0 && (before == ENGINE_UP || before == ENGINE_DOWN)))
                return NEXT_DONE;
        w->kernels[g] |= 1u << c;
        return NEXT_WAITS;
}

static Next judge_work(EngineWalk *w, unsigned g, unsigned c, EngineKind kind, uint64_t ns) {
        const EngineCopier *copier;

        if (ns == 0)
                return NEXT_DONE;
        if (kind == ENGINE_RUN) {
                w->kernels[g] |= 1u << c;
                return NEXT_READY;
        }
        copier = &w->state->copiers[kind == ENGINE_DOWN];
        if (copier->group != g || copier->channel != c)
                w->copies[kind == ENGINE_DOWN][g] |= 1u << c;
        return NEXT_READY;
}

/* What the next entry of a channel can do now. An invalid entry counts as done: a process has
 * written over the ring. */
static Next judge(EngineWalk *w, unsigned g, unsigned c) {
        const EngineGroup *group = &w->state->group[g];
        const EngineSlot *p = place_of(w, g, c);
        EngineKind kind = kind_of(p);

        if (group->heads[c].position >= w->tails[g][c])
                return NEXT_NOTHING;
        if (load(&p->done) != engine_tag(group->generation, group->heads[c].position))
                return NEXT_DONE;
        if (judge_time(w, g, load(&p->stamp)) != NEXT_DONE)
                return NEXT_WAITS;
        switch (kind) {
        case ENGINE_AFTER:
                return judge_after(w, g, argument_of(p));
        case ENGINE_EVENT:
                return judge_event(w, g, c);
        case ENGINE_RUN:
        case ENGINE_UP:
        case ENGINE_DOWN:
                return judge_work(w, g, c, kind, argument_of(p));
        default:
                return NEXT_DONE;
        }
}

/* Completes all entries of a group that need no time, and notes the others. An entry may wait for
 * another channel, so the loop runs until nothing changes. false: the log is full. */
static bool settle(EngineWalk *w, unsigned g) {
        EngineGroup *group = &w->state->group[g];
        bool moved = true;

        w->wake[g] = UINT64_MAX;
        w->kernels[g] = w->copies[0][g] = w->copies[1][g] = 0;
        while (moved) {
                moved = false;
                for (unsigned c = 0; c < group->channels; c++)
                        while (judge(w, g, c) == NEXT_DONE) {
                                if (!log_has_room(w, 1))
                                        return false;
                                complete(w, g, c);
                                moved = true;
                        }
        }
        w->stirred[g] = false;
        return true;
}

static bool settle_all(EngineWalk *w) {
        for (unsigned g = 0; g < w->state->groups; g++)
                if (w->stirred[g] && !settle(w, g))
                        return false;
        return true;
}

/* ---- choosing ---- */

/* The next group after `last` with its bit set; `last` comes last. */
static unsigned next_group(const EngineWalk *w, const uint32_t *bits, uint64_t last) {
        unsigned n = (unsigned) w->state->groups, from = last < n ? (unsigned) last + 1 : 0;

        for (unsigned i = 0; i < n; i++)
                if (bits[(from + i) % n] != 0)
                        return (from + i) % n;
        return ENGINE_NONE;
}

static unsigned next_channel(uint32_t bits, uint64_t last) {
        uint32_t above = last < ENGINE_CHANNELS - 1 ? bits & ~((2u << last) - 1) : 0;

        return (unsigned) __builtin_ctz(above != 0 ? above : bits);
}

/* A running kernel is not interrupted. Between kernels the channels take turns. */
static void choose_kernel(EngineWalk *w, unsigned g) {
        EngineGroup *group = &w->state->group[g];

        if (group->channel < ENGINE_CHANNELS && w->kernels[g] >> group->channel & 1 &&
            group->heads[group->channel].left > 0)
                return;
        group->channel = group->last = next_channel(w->kernels[g], group->last);
        group->heads[group->channel].left = later(argument_of(place_of(w, g, (unsigned) group->channel)), 1);
}

/* The owner's events are due now: the loop settles them before it chooses a kernel. */
static void give_turn(EngineWalk *w, unsigned g) {
        EngineState *s = w->state;

        w->stirred[g] = w->stirred[g] || s->owner != g;
        s->owner = g;
        s->slice_end = s->now + w->slice;
}

/* The time of a switch is not part of a time slice (as in the manual, see judge_event()). */
static void load_context(EngineWalk *w, unsigned g) {
        EngineState *s = w->state;

        if (s->loaded == g)
                return;
        s->loaded = g;
        s->ready = s->now + w->change;
        s->slice_end += w->change;
}

/* If no other group wanted the engine, its time slices followed one another: the current one ends
 * where the last of them does. */
static void renew_turn(EngineWalk *w) {
        EngineState *s = w->state;

        if (s->now > s->slice_end)
                s->slice_end += (s->now - s->slice_end + w->slice - 1) / w->slice * w->slice;
}

static bool is_contended(const EngineWalk *w) {
        for (unsigned g = 0; g < w->state->groups; g++)
                if (g != w->state->owner && w->kernels[g] != 0)
                        return true;
        return false;
}

/* Chooses the group that has the time slice from now on. Returns it, or ENGINE_NONE. */
static unsigned choose_owner(EngineWalk *w, bool *ret_contended) {
        EngineState *s = w->state;
        bool ready = s->owner < s->groups && w->kernels[s->owner] != 0 && s->resting == 0;
        unsigned next;

        *ret_contended = is_contended(w);
        if (ready && *ret_contended)
                renew_turn(w);
        if (ready && (!*ret_contended || s->now < s->slice_end))
                return (unsigned) s->owner;
        next = next_group(w, w->kernels, s->owner);
        s->resting = next == ENGINE_NONE;
        if (next == ENGINE_NONE)
                return ENGINE_NONE;
        give_turn(w, next);
        *ret_contended = is_contended(w);
        return next;
}

static void start_copy(EngineWalk *w, unsigned direction) {
        EngineCopier *copier = &w->state->copiers[direction];
        unsigned g, c;

        if (copier->group < ENGINE_GROUPS)
                return;
        g = next_group(w, w->copies[direction], copier->last_group);
        if (g == ENGINE_NONE)
                return;
        c = next_channel(w->copies[direction][g],
                         copier->last_group == g ? copier->last_channel : ENGINE_CHANNELS);
        w->copies[direction][g] &= ~(1u << c);
        *copier = (EngineCopier){
                g, c, w->state->now + earlier(argument_of(place_of(w, g, c)), ENGINE_HELD_NSEC), g, c};
}

/* ---- time ---- */

static uint64_t next_event(const EngineWalk *w, unsigned runs, bool contended) {
        const EngineState *s = w->state;
        uint64_t t = w->until;

        for (unsigned g = 0; g < s->groups; g++)
                t = earlier(t, w->wake[g]);
        for (unsigned i = 0; i < 2; i++)
                if (s->copiers[i].group < ENGINE_GROUPS)
                        t = earlier(t, s->copiers[i].end);
        if (runs != ENGINE_NONE)
                t = earlier(t, later(s->now, s->ready) + s->group[runs].heads[s->group[runs].channel].left);
        if (runs != ENGINE_NONE && contended)
                t = earlier(t, s->slice_end);
        return later(t, s->now);
}

static void run_kernel(EngineWalk *w, unsigned g, uint64_t from, uint64_t to) {
        EngineGroup *group = &w->state->group[g];
        EngineHead *head = &group->heads[group->channel];

        if (to <= from)
                return;
        meter(&group->ran, from, to);
        meter(&w->state->busy, from, to);
        head->left -= to - from;
        if (head->left > 0)
                return;
        complete(w, g, (unsigned) group->channel);
        group->channel = ENGINE_NONE;
        w->stirred[g] = true;
}

/* Nothing begins or ends between now and `to`. */
static void go_to(EngineWalk *w, unsigned runs, uint64_t to) {
        EngineState *s = w->state;
        uint64_t from = later(s->now, s->ready);

        s->now = to;
        if (runs != ENGINE_NONE)
                run_kernel(w, runs, from, to);
        for (unsigned i = 0; i < 2; i++) {
                EngineCopier *copier = &s->copiers[i];

                if (copier->group >= ENGINE_GROUPS || copier->end > to)
                        continue;
                complete(w, (unsigned) copier->group, (unsigned) copier->channel);
                w->stirred[copier->group] = true;
                copier->group = ENGINE_NONE;
        }
        for (unsigned g = 0; g < s->groups; g++)
                w->stirred[g] = w->stirred[g] || w->wake[g] <= to;
}

static void look_at_rings(EngineWalk *w) {
        EngineState *s = w->state;

        for (unsigned g = 0; g < s->groups; g++) {
                const EngineRings *r = &w->shared->rings[g];
                EngineGroup *group = &s->group[g];
                uint64_t n = earlier(load(&r->channels), ENGINE_CHANNELS);

                w->stirred[g] = true;
                if (group->generation == 0)
                        n = group->channels = 0;
                for (; group->channels < n; group->channels++)
                        group->heads[group->channels] = (EngineHead){0, 0};
                for (unsigned c = 0; c < group->channels; c++) {
                        EngineHead *head = &group->heads[c];
                        uint64_t tail = atomic_load_explicit(&r->tails[c], memory_order_acquire);

                        tail = (tail & ~ENGINE_POSITION) == engine_tag(group->generation, 0)
                                       ? tail & ENGINE_POSITION
                                       : 0; /* of another group that had this slot before */
                        w->tails[g][c] = tail;
                        if (tail - head->position >
                            ENGINE_RING_SIZE) /* it began before this state, or is not a valid time */
                                *head = (EngineHead){tail > ENGINE_RING_SIZE ? tail - ENGINE_RING_SIZE : 0,
                                                     0};
                }
        }
}

EngineEnd engine_walk(EngineWalk *w) {
        EngineState *s = w->state;
        bool contended;

        w->slice = earlier(later(load(&w->shared->settings.slice), 1000), ENGINE_HELD_NSEC);
        w->change = earlier(load(&w->shared->settings.change), ENGINE_HELD_NSEC);
        w->stopped = false;
        look_at_rings(w);
        for (;;) {
                unsigned runs;

                if (!settle_all(w) || !log_has_room(w, 3))
                        return ENGINE_LOG_FULL;
                if (w->stopped)
                        return ENGINE_STOPPED;
                if (s->now >= w->until)
                        return ENGINE_THERE;
                if (w->budget-- == 0)
                        return ENGINE_TIRED;
                start_copy(w, 0);
                start_copy(w, 1);
                runs = choose_owner(w, &contended);
                if (runs != ENGINE_NONE && w->stirred[runs])
                        continue;
                if (runs != ENGINE_NONE) {
                        load_context(w, runs);
                        choose_kernel(w, runs);
                }
                go_to(w, runs, next_event(w, runs, contended));
        }
}

void engine_drop(EngineState *s, unsigned group) {
        memset(&s->group[group], 0, sizeof s->group[group]);
        s->group[group].channel = s->group[group].last = ENGINE_NONE;
        for (unsigned i = 0; i < 2; i++)
                if (s->copiers[i].group == group)
                        s->copiers[i].group = ENGINE_NONE;
}
