/* SPDX-License-Identifier: Apache-2.0 */
#include "patterns.h"

#include <stddef.h>

enum {
        KINDS = 16,               /* of kernels in a step, each with a length of its own */
        FIRST_FUNCTION = 1 << 20, /* numbers below are of other tests */
        OTHERS_KERNEL = 500,      /* us */
};

const uint32_t pattern_caps[PATTERN_CAPS] = {10, 30, 50, 70, 90};

const Pattern patterns[] = {
        {.name = "eager inference",
         .warm = 2,
         .seconds = 5,
         .beside = 5,
         .steps = {{PATTERN_UP, .time = {20, 40}},
                   {PATTERN_KERNELS, .n = 300, .time = {5, 20}, .host = {10, 60}},
                   {PATTERN_DOWN, .time = {5, 5}},
                   {PATTERN_WAIT},
                   {PATTERN_COMPUTE, .time = {100, 300}}}},
        {.name = "decode with graphs",
         .warm = 2,
         .seconds = 10,
         .beside = 10,
         .steps = {{PATTERN_UP, .n = 1, .time = {5, 10}},
                   {PATTERN_KERNELS, .n = 1, .time = {5000, 5000}, .host = {50, 100}},
                   {PATTERN_KERNELS, .n = 15, .time = {5, 30}, .host = {5, 15}},
                   {PATTERN_DOWN, .time = {5, 5}},
                   {PATTERN_WAIT},
                   {PATTERN_COMPUTE, .time = {2000, 4000}}}},
        {.name = "training step",
         .warm = 2,
         .seconds = 10,
         .beside = 10,
         .steps = {{PATTERN_KERNELS, .n = 300, .time = {10, 200}, .host = {5, 20}},
                   {PATTERN_WAIT},
                   {PATTERN_PAUSE, .time = {4000, 8000}},
                   {PATTERN_KERNELS, .n = 20, .time = {50, 200}, .host = {5, 20}},
                   {PATTERN_WAIT},
                   {PATTERN_COMPUTE, .time = {300, 600}}}},
        {.name = "copy and compute",
         .n_streams = 2,
         .warm = 2,
         .seconds = 10,
         .beside = 10,
         .steps = {{PATTERN_COMPUTE, .time = {3000, 6000}},
                   {PATTERN_UP, .stream = 1, .time = {3200, 3200}},
                   {PATTERN_AFTER, .stream = 0, .n = 1},
                   {PATTERN_KERNELS, .n = 150, .time = {20, 400}, .host = {5, 20}},
                   {PATTERN_AFTER, .stream = 2, .n = 0},
                   {PATTERN_DOWN, .stream = 2, .time = {10, 10}},
                   {PATTERN_WAIT, .stream = 2}}},
        {.name = "video, three streams",
         .n_streams = 3,
         .rotates = true,
         .warm = 2,
         .seconds = 10,
         .beside = 10,
         .steps = {{PATTERN_PACE, .time = {11111, 11111}},
                   {PATTERN_WAIT, .stream = 1},
                   {PATTERN_UP, .stream = 1, .time = {260, 260}},
                   {PATTERN_KERNELS, .stream = 1, .n = 3, .time = {50, 200}, .host = {5, 10}},
                   {PATTERN_KERNELS, .stream = 1, .n = 60, .time = {20, 120}, .host = {5, 10}},
                   {PATTERN_DOWN, .stream = 1, .time = {20, 20}},
                   {PATTERN_COMPUTE, .time = {500, 1500}}}},
        {.name = "notebook",
         .warm = 0,
         .seconds = 1200,
         .beside = 300,
         .steps = {{PATTERN_KERNELS, .n = 8000, .time = {20, 300}, .host = {5, 20}},
                   {PATTERN_WAIT},
                   {PATTERN_REST, .time = {60000000, 120000000}}}},
        {.name = "persistent kernel",
         .warm = 20,
         .seconds = 100,
         .beside = 100,
         .steps = {{PATTERN_KERNELS, .n = 1, .time = {1000000, 1000000}, .host = {50, 50}}, {PATTERN_WAIT}}},
        {.name = "host functions, a lock",
         .warm = 2,
         .seconds = 10,
         .beside = 10,
         .steps = {{PATTERN_LOCK},
                   {PATTERN_KERNELS, .n = 30, .time = {50, 300}, .host = {5, 20}},
                   {PATTERN_HOST_FUNC, .time = {300, 800}},
                   {PATTERN_KERNELS, .n = 6, .time = {10, 40}, .host = {5, 20}},
                   {PATTERN_UNLOCK},
                   {PATTERN_WAIT},
                   {PATTERN_COMPUTE, .time = {200, 400}}}},
};
const unsigned patterns_n = sizeof patterns / sizeof patterns[0];

/* ---- the program ---- */

typedef struct PatternProgram {
        const Pattern *pattern;
        uintptr_t functions; /* the first number of its functions */
        unsigned streams[CARD_CHANNELS];
        unsigned round;
        uint64_t paced, rested, rests_since; /* since: when the rest began; 0: none */
        bool locked;
        PatternRange host_func;
} PatternProgram;

static uint64_t draw(PatternRange r) {
        return (r.least + fibers_draw(r.most - r.least + 1)) * USEC;
}

static unsigned stream_of(const PatternProgram *p, const PatternStep *s) {
        const Pattern *w = p->pattern;

        return p->streams[w->rotates && w->n_streams > 0 ? 1 + (s->stream + p->round) % w->n_streams
                                                         : s->stream];
}

/* The same kernel of a step always takes the same time. */
static uint64_t length_of(PatternRange r, unsigned kind) {
        return r.least * USEC + (r.most - r.least) * USEC * (kind * 7 % KINDS) / (KINDS - 1);
}

static void launch_all(PatternProgram *p, const PatternStep *s) {
        uintptr_t functions = p->functions + (uintptr_t) (s - p->pattern->steps) * KINDS;

        for (unsigned i = 0; i < s->n; i++) {
                card_compute(draw(s->host));
                card_launch(stream_of(p, s), functions + i % KINDS, length_of(s->time, i % KINDS));
        }
}

static void host_func(void *program) {
        PatternProgram *p = program;

        card_lock(&p->locked);
        card_compute(draw(p->host_func));
        card_unlock(&p->locked);
}

static void rest(PatternProgram *p, PatternRange r) {
        p->rests_since = fibers_now();
        card_sleep(draw(r));
        p->rested += fibers_now() - p->rests_since;
        p->rests_since = 0;
}

static void pace(PatternProgram *p, PatternRange r) {
        p->paced += draw(r);
        if (p->paced > fibers_now())
                card_sleep(p->paced - fibers_now());
        else
                p->paced = fibers_now();
}

static void act(PatternProgram *p, const PatternStep *s) {
        switch (s->act) {
        case PATTERN_KERNELS:
                launch_all(p, s);
                break;
        case PATTERN_UP:
        case PATTERN_DOWN:
                card_copy(stream_of(p, s), s->act == PATTERN_UP, draw(s->time));
                break;
        case PATTERN_AFTER:
                card_stream_wait(stream_of(p, s), p->streams[s->n]);
                break;
        case PATTERN_WAIT:
                card_synchronize(stream_of(p, s));
                break;
        case PATTERN_COMPUTE:
                card_compute(draw(s->time));
                break;
        case PATTERN_PAUSE:
                card_sleep(draw(s->time));
                break;
        case PATTERN_PACE:
                pace(p, s->time);
                break;
        case PATTERN_REST:
                rest(p, s->time);
                break;
        case PATTERN_HOST_FUNC:
                p->host_func = s->time;
                card_host_func(stream_of(p, s), host_func, p);
                break;
        case PATTERN_LOCK:
                card_lock(&p->locked);
                break;
        case PATTERN_UNLOCK:
                card_unlock(&p->locked);
                break;
        case PATTERN_END:
                break;
        }
}

static void run_program(void *program) {
        PatternProgram *p = program;

        for (unsigned i = 1; i <= p->pattern->n_streams; i++)
                p->streams[i] = card_stream();
        for (p->paced = fibers_now();; p->round++)
                for (const PatternStep *s = p->pattern->steps; s->act != PATTERN_END; s++)
                        act(p, s);
}

static void run_other(void *unused) {
        (void) unused;
        for (;;)
                card_launch(0, FIRST_FUNCTION - 1, OTHERS_KERNEL * USEC);
}

/* ---- a case ---- */

static CardTenant *tenant(const PatternCase *c, uint32_t cap) {
        const CardCompute capped = {.policy = COMPUTE_FIXED};
        const ComputeRequest request = {.percent = cap, .weight = 1};

        return card_tenant(c->rule == PATTERN_CAPPED ? &capped : NULL, &request);
}

static uint64_t rested_of(const PatternProgram *p) {
        return p->rested + (p->rests_since != 0 ? fibers_now() - p->rests_since : 0);
}

PatternResult pattern_run(const PatternCase *c, uint64_t seed) {
        static PatternProgram p;
        static uintptr_t functions = FIRST_FUNCTION; /* new ones for each case: their length is not known */
        const Pattern *w = c->pattern;
        uint64_t ran, other_ran, rested, steps, seconds = c->beside ? w->beside : w->seconds, ns;
        CardTenant *t, *other = NULL;

        ns = (c->most != 0 && c->most < seconds ? c->most : seconds) * SEC;
        card_begin(&card_real, seed);
        functions += PATTERN_STEPS * KINDS;
        p = (PatternProgram){.pattern = w, .functions = functions};
        t = tenant(c, c->cap);
        (void) card_process(t, run_program, &p);
        if (c->beside) {
                other = tenant(c, 100 - c->cap);
                (void) card_process(other, run_other, NULL);
        }
        card_run(fibers_now() + w->warm * SEC);
        ran = card_ran(t);
        rested = rested_of(&p);
        steps = card_steps();
        other_ran = other ? card_ran(other) : 0;
        card_run(fibers_now() + ns);
        ran = card_ran(t) - ran;
        rested = rested_of(&p) - rested;
        return (PatternResult){.share = 100 * (double) ran / (double) ns,
                               .work = 100 * (double) ran / (double) (ns - rested),
                               .other =
                                       other ? 100 * (double) (card_ran(other) - other_ran) / (double) ns : 0,
                               .steps = (double) (card_steps() - steps) * SEC / (double) ns};
}
