/* SPDX-License-Identifier: Apache-2.0 */
#include "card.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "arbiter/card_step.h"
#include "arbiter/tunables.h"
#include "driver.h"
#include "preload/launch/admission.h"
#include "preload/launch/peers.h"
#include "preload/memory/gate_state.h"
#include "slicedir/slice_files.h"
#include "test.h"

#define LOCK_WAKES (5 * USEC)

/* Literature and driver sources: see docs/internals/card-model.md. */
const CardCosts card_real = {.slice = 2048 * USEC,
                             .change = 100 * USEC,
                             .launch = 2 * USEC,
                             .start = 4 * USEC,
                             .record = 1 * USEC,
                             .query = USEC / 2,
                             .host = 3 * USEC,
                             .grain = USEC / 2,
                             .host_least = 10 * USEC,
                             .host_most = 30 * USEC,
                             .wake_least = 5 * USEC,
                             .wake_most = 50 * USEC,
                             .timer = 10 * USEC,
                             .step = 15 * USEC,
                             .ring = 3 * USEC};

const CardCosts card_free = {.slice = MSEC,
                             .grain = 1,
                             .host_least = 10 * USEC,
                             .host_most = 30 * USEC,
                             .wake_least = 5 * USEC,
                             .wake_most = 50 * USEC,
                             .timer = 10 * USEC};

enum { COPY_BYTES_PER_NS = 12 }; /* GB/s, as in patterns.c */

typedef struct Hooks { /* a copy of the launch hooks; one process at a time uses it */
        void *library;
        Gate *(*gate)(void);
        void (*enter)(Gate *, AdmittedLaunch *, CuHandle, uint64_t, CuHandle, bool);
        void (*enter_copy)(Gate *, AdmittedLaunch *, const Copy *, CuHandle, bool);
        void (*leave)(AdmittedLaunch *, int);
        HostFuncSlot *(*host_func)(Gate *, const HostFunc *, CuHandle, bool);
        void (*host_func_run)(void *);
} Hooks;

struct CardProcess {
        CardTenant *tenant;
        const Hooks *hooks;
        Gate *gate; /* NULL: there is no Aliquot */
        DriverContext *context;
        void (*program)(void *argument);
        void *argument;
        int row_lock; /* an open file description of its own */
};

struct CardTenant {
        ArbiterTenant base;
        bool gated;
        SliceCounters *counters;
        uint32_t window; /* as the arbiter wrote it last */
        uint32_t rows;
};

static struct {
        CardCosts costs;
        ArbiterCard arbiter;
        uint64_t steps, stopped_until, next_heartbeat;
        uint32_t bell; /* the futex word on which the arbiter sleeps */
        CardTenant tenants[CARD_TENANTS];
        CardProcess processes[CARD_PROCESSES];
        Hooks hooks[CARD_PROCESSES]; /* used again by the next simulation */
        uint32_t n_tenants, n_processes, pid;
} world;

static uint64_t wake_delay(void) {
        return world.costs.wake_least + fibers_draw(world.costs.wake_most - world.costs.wake_least + 1);
}

/* ---- what the hooks call in place of the system ---- */

static CardProcess *current(void) {
        return fibers_owner();
}

Gate *gate_get(void) {
        return current()->gate;
}

uint64_t launch_now(void) {
        return fibers_now();
}

/* The processor time that the arbiter measures stands still: interrupts are not simulated. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);

int __wrap_clock_gettime(clockid_t id, struct timespec *ret) {
        ASSERT_INT(id, CLOCK_THREAD_CPUTIME_ID);
        *ret = (struct timespec){0, 0};
        return 0;
}

static uint64_t late(uint64_t nsec) {
        return fibers_now() + nsec + fibers_draw(world.costs.timer + 1);
}

void launch_sleep_on(const _Atomic uint32_t *at, uint32_t value, bool local, uint64_t nsec) {
        (void) local;
        if (*at == value)
                fibers_sleep_on((const void *) at, late(nsec));
}

void launch_wake(const _Atomic uint32_t *at, bool local) {
        (void) local;
        fibers_wake((const void *) at, wake_delay());
}

void launch_sleep(uint64_t nsec) {
        fibers_sleep_until(late(nsec));
}

void peers_ring_doorbell(const SliceUser *s) {
        for (uint32_t i = 0; i < world.n_tenants; i++)
                if (world.tenants[i].base.channel.limits == s->limits)
                        world.tenants[i].base.rung = true;
        world.arbiter.next = 0;
        fibers_spend(world.costs.ring);
        if (fibers_now() >= world.stopped_until)
                fibers_wake(&world.bell, wake_delay());
}

unsigned peers_count(const SliceUser *s) {
        unsigned n = 0;

        for (uint32_t row = 0; row < SLICE_ROWS; row++)
                n += s->counters->rows[row].work.wants != 0 || row == s->row;
        return n;
}

/* ---- the arbiter ---- */

static void wake_tenants(void) {
        for (uint32_t i = 0; i < world.n_tenants; i++) {
                CardTenant *t = &world.tenants[i];
                const SliceSchedule *s = t->gated ? &t->base.channel.limits->schedule : NULL;

                if (!s || s->window == t->window)
                        continue;
                t->window = s->window;
                if (t->window & SCHED_WINDOW_OPEN)
                        fibers_wake(&s->window, wake_delay());
        }
}

static void arbitrate(void *unused) {
        (void) unused;
        for (;;) {
                bool heartbeat = fibers_now() >= world.next_heartbeat;
                uint64_t next;

                if (fibers_now() < world.stopped_until) {
                        fibers_sleep_until(world.stopped_until);
                        continue;
                }
                fibers_spend(world.costs.step);
                card_step(&world.arbiter, fibers_now(), heartbeat);
                world.steps++;
                if (heartbeat)
                        world.next_heartbeat = fibers_now() + HEARTBEAT_NS;
                wake_tenants();
                next = world.arbiter.next < world.next_heartbeat ? world.arbiter.next : world.next_heartbeat;
                if (next > fibers_now())
                        fibers_sleep_on(&world.bell, next + fibers_draw(world.costs.timer + 1));
        }
}

void card_arbiter_stops(uint64_t until) {
        world.stopped_until = until;
}

uint64_t card_steps(void) {
        return world.steps;
}

/* ---- tenants ---- */

static void *shared_file(const char *name, size_t size, int *ret_fd) {
        int fd = memfd_create(name, MFD_CLOEXEC);
        void *p;

        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(ftruncate(fd, (off_t) size));
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_TRUE(p != MAP_FAILED);
        *ret_fd = fd;
        return p;
}

CardTenant *card_tenant(const CardCompute *compute, const ComputeRequest *request) {
        CardTenant *t = &world.tenants[world.n_tenants++];
        SliceChannel *s = &t->base.channel;

        ASSERT_TRUE(world.n_tenants <= CARD_TENANTS);
        *t = (CardTenant){.gated = compute != NULL};
        if (!compute)
                return t;
        *s = (SliceChannel){.limits_fd = -1,
                            .counters = -1,
                            .doorbell = -1,
                            .aggregate = REPORT_AGGREGATE_NULL,
                            .compute = *compute,
                            .request = *request};
        s->limits = shared_file("limits", sizeof *s->limits, &s->limits_fd);
        t->counters = shared_file("counters", sizeof *t->counters, &s->counters);
        s->limits->policy = compute->policy;
        s->limits->core_percent = request->percent;
        s->limits->weight = request->weight;
        s->limits->max_inst = compute->max_inst;
        ASSERT_TRUE(card_step_add(&world.arbiter, &t->base, fibers_now()));
        world.arbiter.next = 0;
        fibers_wake(&world.bell, 0);
        return t;
}

static void *function(const Hooks *h, const char *name) {
        void *p = dlsym(h->library, name);

        ASSERT_TRUE(p != NULL);
        return p;
}

/* dlopen() returns the same library for the same file. So each copy is loaded from a file of its
 * own. */
static void load_hooks(Hooks *h) {
        char bytes[1 << 16], path[32];
        int from = open(LAUNCH_HOOKS, O_RDONLY | O_CLOEXEC), to = memfd_create("hooks", MFD_CLOEXEC);
        ssize_t n;

        ASSERT_TRUE(from >= 0 && to >= 0);
        while ((n = read(from, bytes, sizeof bytes)) > 0)
                ASSERT_INT(write(to, bytes, (size_t) n), n);
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", to);
        h->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!h->library)
                TEST_FAIL_("%s", dlerror());
        ASSERT_OK(close(from)); /* `to` stays open: dlopen() would take a new file of its number for it */
        h->gate = (Gate * (*) (void) ) function(h, "admission_gate");
        h->enter = (void (*)(Gate *, AdmittedLaunch *, CuHandle, uint64_t, CuHandle, bool)) function(
                h, "admission_enter");
        h->enter_copy = (void (*)(Gate *, AdmittedLaunch *, const Copy *, CuHandle, bool)) function(
                h, "admission_enter_copy");
        h->leave = (void (*)(AdmittedLaunch *, int)) function(h, "admission_leave");
        h->host_func = (HostFuncSlot * (*) (Gate *, const HostFunc *, CuHandle, bool) )
                function(h, "admission_host_func");
        h->host_func_run = (void (*)(void *)) function(h, "host_func_run");
}

static void lock_row(CardProcess *p, uint32_t row) {
        struct flock lock = {.l_type = F_WRLCK,
                             .l_whence = SEEK_SET,
                             .l_start = (off_t) (offsetof(SliceCounters, rows) + row * sizeof(SliceRow)),
                             .l_len = 1};
        char path[32];

        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", p->tenant->base.channel.counters);
        p->row_lock = open(path, O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(p->row_lock >= 0);
        ASSERT_OK(fcntl(p->row_lock, F_OFD_SETLK, &lock));
}

static void make_gate(CardProcess *p) {
        CardTenant *t = p->tenant;
        Gate *g = calloc(1, sizeof *g);

        ASSERT_TRUE(g != NULL);
        g->pid = ++world.pid;
        g->n_cards = 1;
        g->cards[0].usable = true;
        g->cards[0].slice.limits = t->base.channel.limits;
        g->cards[0].slice.counters = t->counters;
        g->cards[0].slice.row = t->rows;
        lock_row(p, t->rows++);
        p->gate = g;
}

static void begin_program(void *process) {
        CardProcess *p = process;

        fibers_sleep_until(fibers_now() + fibers_draw(MSEC));
        p->program(p->argument);
}

CardProcess *card_process(CardTenant *t, void (*program)(void *argument), void *argument) {
        uint32_t i = world.n_processes++;
        CardProcess *p = &world.processes[i];

        ASSERT_TRUE(i < CARD_PROCESSES);
        *p = (CardProcess){.tenant = t,
                           .hooks = &world.hooks[i],
                           .program = program,
                           .argument = argument,
                           .row_lock = -1};
        p->context = driver_context(p);
        if (t->gated) {
                if (!world.hooks[i].library)
                        load_hooks(&world.hooks[i]);
                make_gate(p);
        }
        (void) fibers_add(begin_program, p, p);
        return p;
}

void card_kill(CardProcess *p) {
        fibers_end(p);
        driver_end(p->context);
        if (p->row_lock >= 0)
                ASSERT_OK(close(p->row_lock));
        p->row_lock = -1;
}

uint64_t card_ran(const CardTenant *t) {
        uint64_t ns = 0;

        for (uint32_t i = 0; i < world.n_processes; i++)
                if (world.processes[i].tenant == t)
                        ns += driver_ran(world.processes[i].context);
        return ns;
}

uint64_t card_charged(const CardTenant *t) {
        return t->gated ? t->base.channel.limits->schedule.used : 0;
}

/* ---- the simulation ---- */

static void clear(void) {
        for (uint32_t i = 0; i < world.n_processes; i++) {
                if (world.processes[i].row_lock >= 0)
                        ASSERT_OK(close(world.processes[i].row_lock));
                free(world.processes[i].gate);
        }
        for (uint32_t i = 0; i < world.n_tenants; i++) {
                if (!world.tenants[i].gated)
                        continue;
                ASSERT_OK(munmap(world.tenants[i].counters, sizeof *world.tenants[i].counters));
                slice_channel_done(&world.tenants[i].base.channel);
        }
        world.n_processes = world.n_tenants = 0;
}

void card_begin(const CardCosts *costs, uint64_t seed) {
        clear();
        fibers_begin(seed);
        driver_begin(costs);
        world.costs = *costs;
        world.steps = world.stopped_until = world.next_heartbeat = 0;
        world.arbiter = (ArbiterCard){.n = 0};
        (void) real_find();
        engine_init(&world.arbiter.engine, fibers_now());
        (void) fibers_add(arbitrate, NULL, &world);
}

void card_run(uint64_t until) {
        fibers_run(until);
}

/* ---- programs ---- */

void card_launch(unsigned stream, uintptr_t f, uint64_t ns) {
        CardProcess *p = current();
        Gate *g = p->gate ? p->hooks->gate() : NULL;
        AdmittedLaunch l;

        if (!g) {
                driver_launch(p->context, stream, ns);
                return;
        }
        p->hooks->enter(g, &l, (CuHandle) f, 1, driver_handle(stream), false);
        driver_launch(p->context, stream, ns);
        p->hooks->leave(&l, CU_SUCCESS);
}

static void drive_copy(const CardProcess *p, unsigned stream, bool up, uint64_t ns, bool blocks) {
        driver_copy(p->context, stream, up, ns);
        if (blocks)
                driver_wait(p->context, stream);
}

static void copy(unsigned stream, bool up, uint64_t ns, bool blocks) {
        CardProcess *p = current();
        Gate *g = p->gate && up ? p->hooks->gate() : NULL;
        Copy one = {.kind = COPY_FROM_HOST, .blocks = blocks, .bytes = ns * COPY_BYTES_PER_NS};
        AdmittedLaunch l;

        if (!g) {
                drive_copy(p, stream, up, ns, blocks);
                return;
        }
        p->hooks->enter_copy(g, &l, &one, driver_handle(stream), false);
        drive_copy(p, stream, up, ns, blocks);
        p->hooks->leave(&l, CU_SUCCESS);
}

void card_copy(unsigned stream, bool up, uint64_t ns) {
        copy(stream, up, ns, false);
}

void card_copy_and_wait(uint64_t ns) {
        copy(0, true, ns, true);
}

unsigned card_stream(void) {
        return driver_stream(current()->context);
}

void card_stream_wait(unsigned stream, unsigned other) {
        driver_stream_wait(current()->context, stream, other);
}

void card_synchronize(unsigned stream) {
        driver_wait(current()->context, stream);
        fibers_spend(world.costs.query);
}

void card_compute(uint64_t ns) {
        fibers_spend(ns);
}

void card_sleep(uint64_t ns) {
        fibers_sleep_until(late(ns));
}

void card_lock(bool *locked) {
        while (*locked)
                fibers_sleep_on(locked, fibers_now() + SEC);
        *locked = true;
}

void card_unlock(bool *locked) {
        *locked = false;
        fibers_wake(locked, LOCK_WAKES);
}

void card_host_func(unsigned stream, void (*run)(void *data), void *data) {
        CardProcess *p = current();
        Gate *g = p->gate ? p->hooks->gate() : NULL;
        HostFunc call = {.run = run, .data = data};
        HostFuncSlot *slot = g ? p->hooks->host_func(g, &call, driver_handle(stream), false) : NULL;

        driver_host_func(p->context, stream, slot ? p->hooks->host_func_run : run,
                         slot ? (void *) slot : data);
}
