/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <sys/mman.h>

#include "preload/launch/real.h"
#include "sim/engine/engine.h"
#include "test.h"

enum { CALLS = 1024, EVENTS = 4096, FENCE = ENGINE_CHANNELS - 1 };

#define CLIENT         0xC1D00000U
#define STREAM_HANDLES 0x5000U

typedef struct Mark { /* an event */
        bool used, recorded, done;
        unsigned channel;
        uint64_t position, at;
} Mark;

typedef struct Call { /* a host function behind an entry */
        unsigned channel;
        uint64_t position;
        void (*run)(void *data);
        void *data;
        bool fences; /* later work of its stream waits for its end */
} Call;

struct DriverContext {
        void *owner;
        EngineUser user;
        bool ended;
        unsigned n_streams;
        uint64_t last[ENGINE_CHANNELS]; /* number of entries so far */
        uint64_t n_fences;
        Mark marks[EVENTS], *holder[ENGINE_CHANNELS][ENGINE_RING_SIZE];
        Call calls[CALLS];
        uint32_t n_calls, mode;
};

static struct {
        CardCosts costs;
        EngineShared *shared;
        Engine *engine;
        DriverContext *contexts[CARD_PROCESSES];
        unsigned n;
} card;

/* ---- the card ---- */

void driver_begin(const CardCosts *costs) {
        if (card.shared) {
                engine_free(card.engine);
                ASSERT_OK(munmap(card.shared, sizeof *card.shared));
        }
        for (unsigned i = 0; i < card.n; i++)
                free(card.contexts[i]);
        card.n = 0;
        card.costs = *costs;
        card.shared = mmap(NULL, sizeof *card.shared, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ASSERT_TRUE(card.shared != MAP_FAILED);
        card.shared->settings.slice = costs->slice;
        card.shared->settings.change = costs->change;
        card.engine = engine_new(card.shared);
        ASSERT_TRUE(card.engine != NULL);
}

static void look(DriverContext *c) {
        engine_look(&c->user, fibers_now());
}

static bool is_done(DriverContext *c, unsigned channel, uint64_t position, uint64_t *ret_at) {
        if (engine_is_done(&c->user, channel, position, ret_at) && (!ret_at || *ret_at <= fibers_now()))
                return true;
        look(c);
        return engine_is_done(&c->user, channel, position, ret_at) && (!ret_at || *ret_at <= fibers_now());
}

static uint64_t expect(DriverContext *c, unsigned channel, uint64_t position) {
        uint64_t at = engine_expect(&c->user, channel, position, fibers_now());

        return at > fibers_now() ? at : fibers_now() + USEC / 10;
}

/* No end is expected for work behind a host function before that function has returned. */
static void wait_entry(DriverContext *c, unsigned channel, uint64_t position) {
        while (!is_done(c, channel, position, NULL))
                fibers_sleep_on(&c->n_fences, expect(c, channel, position));
}

/* An event keeps its time when the slot of its entry is used again. */
static void settle_mark(DriverContext *c, Mark *m) {
        if (!m->done && m->recorded && is_done(c, m->channel, m->position, &m->at))
                m->done = true;
}

static uint64_t give(DriverContext *c, unsigned channel, EngineKind kind, uint64_t argument, uint64_t stamp) {
        uint64_t position;
        Mark **holder;

        while (!engine_has_room(&c->user, channel, 1)) {
                look(c);
                if (!engine_has_room(&c->user, channel, 1))
                        wait_entry(c, channel, c->last[channel] - ENGINE_RING_SIZE);
        }
        holder = &c->holder[channel][c->last[channel] % ENGINE_RING_SIZE];
        if (*holder)
                settle_mark(c, *holder);
        *holder = NULL;
        ASSERT_TRUE(engine_give(&c->user, channel, kind, argument, stamp, &position));
        c->last[channel] = position + 1;
        return position;
}

/* ---- the driver's thread ---- */

static int next_call(DriverContext *c, uint64_t *ret_at) {
        uint64_t first = UINT64_MAX, at;
        int next = -1;

        for (uint32_t i = 0; i < c->n_calls; i++)
                if (is_done(c, c->calls[i].channel, c->calls[i].position, &at) && at < first) {
                        first = at;
                        next = (int) i;
                }
        *ret_at = first;
        return next;
}

static uint64_t next_expected(DriverContext *c) {
        uint64_t at = UINT64_MAX;

        for (uint32_t i = 0; i < c->n_calls; i++) {
                uint64_t one = expect(c, c->calls[i].channel, c->calls[i].position);

                at = one < at ? one : at;
        }
        return at;
}

static uint64_t between(uint64_t least, uint64_t most) {
        return least + fibers_draw(most - least + 1);
}

static void drive(void *context) {
        DriverContext *c = context;

        for (;;) {
                uint64_t at;
                int i = next_call(c, &at);
                Call call;

                if (i < 0) {
                        fibers_sleep_on(&c->n_calls, next_expected(c));
                        continue;
                }
                call = c->calls[i];
                memmove(&c->calls[i], &c->calls[i + 1], (--c->n_calls - (uint32_t) i) * sizeof call);
                fibers_sleep_until(at + between(card.costs.host_least, card.costs.host_most));
                call.run(call.data);
                if (call.fences) {
                        (void) give(c, FENCE, ENGINE_RUN, 0, fibers_now());
                        fibers_wake(&c->n_fences, 0);
                }
        }
}

static void add_call(DriverContext *c, unsigned channel, void (*run)(void *), void *data, bool fences) {
        uint64_t position = give(c, channel, ENGINE_EVENT, 0, fibers_now());

        ASSERT_TRUE(c->n_calls < CALLS);
        c->calls[c->n_calls++] = (Call){channel, position, run, data, fences};
        fibers_wake(&c->n_calls, 0);
}

/* ---- contexts ---- */

DriverContext *driver_context(void *owner) {
        unsigned g = card.n;
        DriverContext *c = calloc(1, sizeof *c);

        ASSERT_TRUE(c != NULL && g < CARD_PROCESSES);
        card.contexts[card.n++] = c;
        c->owner = owner;
        card.shared->rows[g].client = CLIENT + g;
        card.shared->rows[g].group = 7;
        card.shared->rows[g].life = 1 << 1 | 1;
        card.shared->settings.groups = g + 1;
        ASSERT_OK(engine_join(card.engine, CLIENT + g, 7, fibers_now(), &c->user));
        (void) fibers_add(drive, c, owner);
        return c;
}

void driver_end(DriverContext *c) {
        look(c);
        card.shared->rows[c->user.group].cut = fibers_now();
        card.shared->rows[c->user.group].life &= ~UINT64_C(1);
        c->ended = true;
}

uint64_t driver_ran(const DriverContext *c) {
        static EngineUsage usage;

        engine_usage(card.engine, fibers_now(), &usage);
        for (unsigned i = 0; i < usage.n; i++)
                if (usage.groups[i].client == CLIENT + c->user.group)
                        return usage.groups[i].ran.all;
        return 0;
}

DriverContext *driver_current(void) {
        for (unsigned i = 0; i < card.n; i++)
                if (card.contexts[i]->owner == fibers_owner() && !card.contexts[i]->ended)
                        return card.contexts[i];
        return NULL;
}

void driver_launch(DriverContext *c, unsigned stream, uint64_t ns) {
        fibers_spend(card.costs.launch);
        (void) give(c, stream, ENGINE_RUN, ns, fibers_now() + card.costs.start);
}

void driver_copy(DriverContext *c, unsigned stream, bool up, uint64_t ns) {
        fibers_spend(card.costs.launch);
        (void) give(c, stream, up ? ENGINE_UP : ENGINE_DOWN, ns, fibers_now() + card.costs.start);
}

void driver_wait(DriverContext *c, unsigned stream) {
        if (c->last[stream] > 0)
                wait_entry(c, stream, c->last[stream] - 1);
}

unsigned driver_stream(DriverContext *c) {
        ASSERT_TRUE(c->n_streams + 1 < FENCE);
        return ++c->n_streams;
}

void driver_stream_wait(DriverContext *c, unsigned stream, unsigned other) {
        fibers_spend(card.costs.record);
        if (c->last[other] > 0)
                (void) give(c, stream, ENGINE_AFTER, engine_after(other, c->last[other] - 1), fibers_now());
}

void driver_host_func(DriverContext *c, unsigned stream, void (*run)(void *data), void *data) {
        fibers_spend(card.costs.host);
        add_call(c, stream, run, data, true);
        (void) give(c, stream, ENGINE_AFTER, engine_after(FENCE, c->n_fences++), fibers_now());
}

/* ---- the calls of libcuda ---- */

static int get_current(CuHandle *ret) {
        *ret = driver_current();
        return *ret ? 0 : 201;
}

static int event_create(CuHandle *ret, unsigned flags) {
        DriverContext *c = driver_current();

        ASSERT_INT(flags, 0);
        for (unsigned i = 0; i < EVENTS; i++)
                if (!c->marks[i].used) {
                        c->marks[i] = (Mark){.used = true};
                        *ret = &c->marks[i];
                        return 0;
                }
        return 2;
}

static void release_mark(DriverContext *c, const Mark *m) {
        Mark **holder = &c->holder[m->channel][m->position % ENGINE_RING_SIZE];

        if (m->recorded && *holder == m)
                *holder = NULL;
}

static int event_destroy(CuHandle e) {
        Mark *m = e;

        ASSERT_TRUE(m->used);
        release_mark(driver_current(), m);
        m->used = false;
        return 0;
}

/* The lowest numbers name the default streams. */
CuHandle driver_handle(unsigned stream) {
        return stream > 0 ? (CuHandle) (uintptr_t) (STREAM_HANDLES + stream) : NULL;
}

static unsigned channel_of(CuHandle stream) {
        unsigned channel = stream ? (unsigned) ((uintptr_t) stream - STREAM_HANDLES) : 0;

        ASSERT_TRUE(channel < FENCE);
        return channel;
}

static int event_record(CuHandle e, CuHandle stream) {
        DriverContext *c = driver_current();
        Mark *m = e;

        ASSERT_TRUE(m->used);
        fibers_spend(card.costs.record);
        release_mark(c, m);
        m->recorded = m->done = false;
        m->channel = channel_of(stream);
        m->position = give(c, m->channel, ENGINE_EVENT, 0, fibers_now());
        m->recorded = true;
        c->holder[m->channel][m->position % ENGINE_RING_SIZE] = m;
        return 0;
}

static int event_query(CuHandle e) {
        Mark *m = e;

        fibers_spend(card.costs.query);
        ASSERT_TRUE(m->used);
        settle_mark(driver_current(), m);
        return m->done || !m->recorded ? 0 : CU_ERROR_NOT_READY;
}

static int event_elapsed(float *ret, CuHandle from, CuHandle to) {
        DriverContext *c = driver_current();
        Mark *a = from, *b = to;

        fibers_spend(card.costs.query);
        settle_mark(c, a);
        settle_mark(c, b);
        if (!a->done || !b->done)
                return CU_ERROR_NOT_READY;
        *ret = (float) ((double) (int64_t) (b->at / card.costs.grain * card.costs.grain -
                                            a->at / card.costs.grain * card.costs.grain) /
                        1e6);
        return 0;
}

static int stream_create(CuHandle *ret, unsigned flags) {
        ASSERT_INT(flags, 1);
        *ret = driver_handle(driver_stream(driver_current()));
        return 0;
}

static int stream_destroy(CuHandle stream) {
        (void) channel_of(stream);
        return 0;
}

static int stream_wait(CuHandle stream, CuHandle e, unsigned flags) {
        DriverContext *c = driver_current();
        const Mark *m = e;

        ASSERT_INT(flags, 0);
        fibers_spend(card.costs.record);
        (void) give(c, channel_of(stream), ENGINE_AFTER, engine_after(m->channel, m->position), fibers_now());
        return 0;
}

static int launch_host(CuHandle stream, CuHostFn run, void *data) {
        fibers_spend(card.costs.host);
        add_call(driver_current(), channel_of(stream), run, data, false);
        return 0;
}

static int stream_capturing(CuHandle stream, int *ret) {
        (void) channel_of(stream);
        *ret = 0;
        return 0;
}

static int stream_query(CuHandle stream) {
        DriverContext *c = driver_current();
        unsigned s = channel_of(stream);

        fibers_spend(card.costs.query);
        return c->last[s] == 0 || is_done(c, s, c->last[s] - 1, NULL) ? 0 : CU_ERROR_NOT_READY;
}

static int exchange_mode(int *mode) {
        (void) mode;
        return 0;
}

_Atomic uintptr_t real_table[REAL_ALL];
_Atomic uint64_t real_base = 1;

bool real_is_captured(CuHandle stream) {
        (void) stream;
        return false;
}

bool real_find(void) {
        static const struct {
                unsigned number;
                void *function;
        } served[] = {{REAL_cuCtxGetCurrent, get_current},
                      {REAL_cuEventCreate, event_create},
                      {REAL_cuEventDestroy_v2, event_destroy},
                      {REAL_cuEventElapsedTime, event_elapsed},
                      {REAL_cuEventQuery, event_query},
                      {REAL_cuEventRecord, event_record},
                      {REAL_cuLaunchHostFunc, launch_host},
                      {REAL_cuStreamCreate, stream_create},
                      {REAL_cuStreamDestroy_v2, stream_destroy},
                      {REAL_cuStreamIsCapturing, stream_capturing},
                      {REAL_cuStreamQuery, stream_query},
                      {REAL_cuStreamWaitEvent, stream_wait},
                      {REAL_cuThreadExchangeStreamCaptureMode, exchange_mode}};

        for (size_t i = 0; i < sizeof served / sizeof served[0]; i++)
                real_table[served[i].number] = (uintptr_t) served[i].function;
        return true;
}
