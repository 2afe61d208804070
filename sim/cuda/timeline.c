/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/timeline.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "sim/cuda/memory.h"

enum {
        SPIN_NSEC = 30 * 1000,
        SHORTEST_KERNEL_NS = 1000,
        FILL_DATA_BYTES = 4096,
        RESERVE = 8, /* free slots that a launch needs: for itself, and for what it waits for */
        NAP_NSEC = 20 * 1000 * 1000, /* the longest sleep between two looks: a process may have ended */
};

typedef struct Timeline {
        EngineUser user;
        unsigned next_channel;
        CUevent *marks[ENGINE_CHANNELS]; /* by slot: events whose completion time will be asked for */
} Timeline;

/* ---- time ---- */

/* Without the lock. A short wait spins, because a sleep would last longer. */
static void wait_until(uint64_t ns) {
        struct timespec t = {.tv_sec = (time_t) (ns / 1000000000u), .tv_nsec = (long) (ns % 1000000000u)};

        for (uint64_t now = clock_now(); now < ns; now = clock_now())
                if (ns - now > SPIN_NSEC &&
                    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != EINTR)
                        return;
}

/* ---- opening and closing ---- */

/* One mapping per card, for the life of the process. A child has no driver, and gets no mapping. */
static CUresult open_engine(Device *d) {
        void *shared;

        if (d->engine)
                return CUDA_SUCCESS;
        shared = mmap(NULL, sizeof(EngineShared), PROT_READ | PROT_WRITE, MAP_SHARED, d->card->fd, 0);
        if (shared == MAP_FAILED)
                return CUDA_ERROR_OPERATING_SYSTEM;
        (void) madvise(shared, sizeof(EngineShared), MADV_DONTFORK);
        d->engine = engine_new(shared);
        if (d->engine)
                return CUDA_SUCCESS;
        (void) munmap(shared, sizeof(EngineShared));
        return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult timeline_open(CUcontext c) {
        CUresult r = open_engine(c->device);

        if (r != CUDA_SUCCESS)
                return r;
        c->timeline = calloc(1, sizeof *c->timeline);
        if (!c->timeline)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (engine_join(c->device->engine, state.driver.client, c->group, clock_now(), &c->timeline->user) ==
            0)
                return CUDA_SUCCESS;
        free(c->timeline);
        c->timeline = NULL;
        return CUDA_ERROR_OPERATING_SYSTEM;
}

static void settle(Timeline *t, unsigned channel, uint64_t position) {
        CUevent *at = t->marks[channel] ? &t->marks[channel][position % ENGINE_RING_SIZE] : NULL;

        if (!at || !*at)
                return;
        if (!engine_is_done(&t->user, channel, (*at)->moment - 1, &(*at)->time))
                (*at)->time = clock_now();
        (*at)->where = NULL;
        *at = NULL;
}

void timeline_close(CUcontext c) {
        Timeline *t = c->timeline;

        if (!t)
                return;
        for (unsigned channel = 0; channel < ENGINE_CHANNELS; channel++) {
                for (uint64_t i = 0; i < ENGINE_RING_SIZE; i++)
                        settle(t, channel, i);
                free(t->marks[channel]);
        }
        free(t);
        c->timeline = NULL;
}

void timeline_add_stream(CUstream s) {
        s->channel = s->context->timeline->next_channel++ % ENGINE_CHANNELS;
}

/* ---- looking ---- */

/* moment: entries of the channel up to the awaited one; 0: none. */
static bool is_done(const Timeline *t, unsigned channel, uint64_t moment, uint64_t *ret_time) {
        if (!t || moment == 0 || t->user.tails[channel] >= moment + ENGINE_RING_SIZE)
                return true; /* its slot was used again */
        return engine_is_done(&t->user, channel, moment - 1, ret_time);
}

/* A program that has closed the driver's files has no group any more, and nothing to wait for. */
static bool look(Timeline *t, unsigned channel, uint64_t moment, uint64_t *ret_time) {
        if (is_done(t, channel, moment, ret_time))
                return true;
        engine_look(&t->user, clock_now());
        return is_done(t, channel, moment, ret_time) || engine_is_gone(&t->user);
}

bool timeline_is_over(const CUstream_st *s) {
        return look(s->context->timeline, s->channel, s->moment, NULL);
}

bool timeline_event_is_over(CUevent e) {
        CUcontext c = e->where;

        if (!c)
                return true;
        if (!look(c->timeline, e->channel, e->moment, &e->time))
                return false;
        timeline_forget(e);
        return true;
}

/* ---- waiting ---- */

static uint64_t when(Timeline *t, unsigned channel, uint64_t moment) {
        uint64_t now = clock_now(), end = engine_expect(&t->user, channel, moment - 1, now);

        return end < now + NAP_NSEC ? end : now + NAP_NSEC;
}

static void nap(Timeline *t, unsigned channel, uint64_t moment) {
        uint64_t end;

        if (is_done(t, channel, moment, NULL))
                return;
        end = when(t, channel, moment);
        state_unlock(NULL);
        wait_until(end);
        (void) state_lock();
}

void timeline_wait(CUstream s) {
        nap(s->context->timeline, s->channel, s->moment);
}

void timeline_wait_for_event(CUevent e) {
        if (e->where)
                nap(e->where->timeline, e->channel, e->moment);
}

static bool has_room(Timeline *t, unsigned channel, unsigned n) {
        return engine_has_room(&t->user, channel, n) || engine_is_gone(&t->user);
}

bool timeline_has_room(const CUstream_st *s) {
        Timeline *t = s->context->timeline;

        if (!t || has_room(t, s->channel, RESERVE))
                return true;
        engine_look(&t->user, clock_now());
        return has_room(t, s->channel, RESERVE);
}

void timeline_wait_for_room(CUstream s) {
        Timeline *t = s->context->timeline;

        if (t)
                nap(t, s->channel, t->user.tails[s->channel] + RESERVE - ENGINE_RING_SIZE);
}

/* ---- giving ---- */

void timeline_give(CUstream s, EngineKind kind, uint64_t argument) {
        Timeline *t = s->context->timeline;
        uint64_t position;

        if (!t)
                return;
        while (!has_room(t, s->channel, 1)) {
                engine_look(&t->user, clock_now());
                if (!has_room(t, s->channel, 1))
                        wait_until(when(t, s->channel, t->user.tails[s->channel] + 1 - ENGINE_RING_SIZE));
        }
        settle(t, s->channel, t->user.tails[s->channel]);
        if (engine_give(&t->user, s->channel, kind, argument, clock_now(), &position))
                s->moment = position + 1;
}

static uint64_t time_of(uint64_t bytes, const _Atomic uint64_t *rate) {
        uint64_t per_usec = atomic_load_explicit(rate, memory_order_relaxed);

        return per_usec == 0 || bytes > UINT64_MAX / 1000 ? 0 : bytes * 1000 / per_usec;
}

/* ---- copies and fills: by a kernel where NVIDIA's libcuda does so (native-driver.md) ---- */

static bool is_managed(CUdeviceptr at) {
        const Range *r = range_find(at);

        return r && r->kind == RANGE_MANAGED;
}

/* Managed memory that is named as memory of the host is the host's. */
static const Device *card_of(CUdeviceptr at) {
        const Range *r = range_find(at);

        return r && r->kind != RANGE_MANAGED && r->kind != RANGE_HOST && r->kind != RANGE_REGISTERED
                       ? r->device
                       : NULL;
}

static EngineKind engine_of(const Copy *c) {
        const Device *to = card_of(c->to), *from = card_of(c->from);

        if ((to && to == from) || (c->to_card && is_managed(c->to)) || (c->from_card && is_managed(c->from)))
                return ENGINE_RUN;
        return from ? ENGINE_DOWN : ENGINE_UP; /* between cards by way of the host */
}

/* Small single lines are data in the pushbuffer. */
static bool is_kernel(const Fill *f) {
        return f->height > 1 || f->width * f->element > FILL_DATA_BYTES || is_managed(f->to);
}

static uint64_t at_least(uint64_t ns, bool kernel) {
        return kernel && ns < SHORTEST_KERNEL_NS ? SHORTEST_KERNEL_NS : ns;
}

void timeline_give_work(CUstream s, const Work *w) {
        const EngineSettings *speed;
        EngineKind kind = ENGINE_RUN;
        uint64_t ns = 0;

        if (!s->context->timeline)
                return;
        speed = &engine_shared(s->context->timeline->user.engine)->settings;
        if (w->kind == WORK_KERNEL)
                ns = w->kernel.ns;
        else if (w->kind == WORK_FILL)
                ns = at_least(time_of(w->fill.width * w->fill.element * w->fill.height, &speed->memory),
                              is_kernel(&w->fill));
        else if (w->kind == WORK_COPY && (w->copy.to_card || w->copy.from_card)) {
                uint64_t bytes = w->copy.width * w->copy.height * w->copy.depth;

                kind = engine_of(&w->copy);
                ns = at_least(time_of(bytes, kind == ENGINE_UP     ? &speed->up
                                             : kind == ENGINE_DOWN ? &speed->down
                                                                   : &speed->memory),
                              kind == ENGINE_RUN && bytes > 0);
        }
        if (ns > 0)
                timeline_give(s, kind, ns);
}

static void follow(CUstream s, unsigned channel, uint64_t moment) {
        if (channel == s->channel || s->followed[channel] >= moment ||
            is_done(s->context->timeline, channel, moment, NULL))
                return;
        timeline_give(s, ENGINE_AFTER, engine_after(channel, moment - 1));
        s->followed[channel] = moment;
}

void timeline_follow(CUstream s, const CUstream_st *other) {
        follow(s, other->channel, other->moment);
}

void timeline_follow_event(CUstream s, const CUevent_st *e) {
        if (e->where == s->context)
                follow(s, e->channel, e->moment);
}

/* ---- events ---- */

void timeline_forget(CUevent e) {
        Timeline *t = e->where ? e->where->timeline : NULL;

        if (t && t->marks[e->channel] && t->marks[e->channel][(e->moment - 1) % ENGINE_RING_SIZE] == e)
                t->marks[e->channel][(e->moment - 1) % ENGINE_RING_SIZE] = NULL;
        e->where = NULL;
}

void timeline_mark(CUstream s, CUevent e) {
        Timeline *t = s->context->timeline;
        CUevent *marks = t ? t->marks[s->channel] : NULL;

        timeline_forget(e);
        e->time = clock_now();
        if (t && !marks)
                marks = t->marks[s->channel] = calloc(ENGINE_RING_SIZE, sizeof(CUevent));
        if (!marks) /* without a timeline or memory it is complete at once */
                return;
        timeline_give(s, ENGINE_EVENT, 0);
        e->where = s->context;
        e->channel = s->channel;
        e->moment = s->moment;
        marks[(e->moment - 1) % ENGINE_RING_SIZE] = e;
}
