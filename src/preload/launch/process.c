/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#include "preload/inject/loaded.h"
#include "preload/launch/batch.h"
#include "preload/launch/context_destroy.h"
#include "preload/launch/host_func.h"
#include "preload/launch/pause.h"
#include "preload/launch/tunables.h"

enum {
        CLOCK_NONE = 1,
        DEFAULT_STREAMS = 2, /* names of streams that every context has */
        MAKING_TURNS = 100000,
};

/* ---- time ---- */

typedef int ClockGettime(clockid_t clock, struct timespec *ret);

/* The kernel's own page of code, where there is one: a tenth of a system call. */
static uintptr_t find_clock(void) {
        uint64_t p = 0;
        ElfObject o;

        if (loaded_object("linux-vdso.so.1", &o)) {
                p = loaded_function(&o, "__vdso_clock_gettime");
                if (p == 0)
                        p = loaded_function(&o, "__kernel_clock_gettime");
        }
        return p != 0 ? (uintptr_t) p : CLOCK_NONE;
}

uint64_t launch_now(void) {
        static _Atomic uintptr_t known;
        uintptr_t p = atomic_load_explicit(&known, memory_order_relaxed);
        struct timespec t = {0, 0};

        if (p == 0) {
                p = find_clock();
                atomic_store_explicit(&known, p, memory_order_relaxed);
        }
        if (p == CLOCK_NONE || ((ClockGettime *) p)(CLOCK_MONOTONIC, &t) != 0)
                (void) sys_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t); /* cannot fail */
        return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

/* ---- memory ---- */

static void *map(size_t size) {
        long p = sys_call(SYS_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return p < 0 && p > -4096 ? NULL : (void *) p;
}

/* Not asked for: who has no memory left is counted, too. */
static ProcessState the_account;

static void clear_usage(ProcessUsage *m) {
        static const ProcessUsage none;

        *m = none;
}

/* One thread makes it; the others wait some nanoseconds until it is whole, but not for a thread
 * below a signal handler. */
static bool is_ours_to_make(ProcessState *a, long pid, long making) {
        long there = atomic_load_explicit(&a->pid, memory_order_acquire);

        for (unsigned schedule = 0; there != pid; schedule++) {
                if ((there != making || schedule >= MAKING_TURNS) &&
                    atomic_compare_exchange_strong(&a->pid, &there, making))
                        return true;
                if (there != making)
                        continue;
                (void) sys_call(SYS_sched_yield);
                there = atomic_load_explicit(&a->pid, memory_order_acquire);
        }
        return false;
}

/* In a child of fork there is nothing on the card. */
static void begin_again(ProcessState *a, Gate *g) {
        if (!is_ours_to_make(a, g->pid, -g->pid))
                return;
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++)
                atomic_store(&a->contexts[i], NULL);
        for (unsigned i = 0; i < GATE_CARDS; i++)
                clear_usage(&a->usage[i]);
        atomic_store(&a->strays, false);
        host_func_reset();
        a->gate = g;
        atomic_store_explicit(&a->pid, g->pid, memory_order_release);
}

ProcessState *process_get(Gate *g) {
        ProcessState *a = &the_account;

        if (atomic_load_explicit(&a->pid, memory_order_acquire) != g->pid)
                begin_again(a, g);
        return a;
}

/* ---- contexts ---- */

static uint32_t digit(char c) {
        return c >= '0' && c <= '9'   ? (uint32_t) (c - '0')
               : c >= 'a' && c <= 'f' ? (uint32_t) (c - 'a' + 10)
                                      : 16;
}

static bool same_card(const char *text, const CuUuid *uuid) {
        size_t at = 4;

        if (text[0] != 'G' || text[1] != 'P' || text[2] != 'U' || text[3] != '-')
                return false;
        for (size_t i = 0; i < sizeof uuid->bytes; i++) {
                if (text[at] == '-')
                        at++;
                if (digit(text[at]) * 16 + digit(text[at + 1]) != uuid->bytes[i])
                        return false;
                at += 2;
        }
        return text[at] == '\0';
}

static int card_of_current(const Gate *g) {
        int (*get_device)(int *) = (int (*)(int *)) real_get(REAL_cuCtxGetDevice);
        int (*get_uuid)(CuUuid *, int) = (int (*)(CuUuid *, int)) real_get(REAL_cuDeviceGetUuid);
        CuUuid uuid;
        int device;

        if (g->n_cards == 1)
                return 0;
        if (!get_device || !get_uuid || get_device(&device) != 0 || get_uuid(&uuid, device) != 0)
                return -1;
        for (uint32_t i = 0; i < g->n_cards && i < GATE_CARDS; i++)
                if (g->cards[i].usable && same_card(g->cards[i].uuid, &uuid))
                        return (int) i;
        return -1;
}

static void begin(Context *c, uint32_t card) {
        static const Overlap nothing;
        Intervals none = {0};

        c->card = card;
        c->watch = c->origin = NULL;
        c->origin_nsec =
                UINT64_C(1) << 48; /* what began before the first that was measured is after zero, too */
        c->intervals = none;
        c->overlap = nothing;
        atomic_store(&c->over, 0);
        atomic_store(&c->end_asked_at, launch_now());
        batch_release_all(c);
}

static bool take_again(Context *c) {
        uintptr_t handle = 0;

        if (!atomic_compare_exchange_strong(&c->handle, &handle, 1))
                return false;
        if (batch_reclaim_all(c))
                return true;
        atomic_store(&c->handle, 0);
        return false;
}

static Context *make_place(void) {
        Context *c = map(sizeof *c);

        if (!c)
                return NULL;
        atomic_store(&c->handle, 1);
        batch_init_all(c);
        return c;
}

/* A place whose context has ended, and of which neither the driver nor another thread has anything
 * to say any more; or one more. */
static Context *take_place(ProcessState *a) {
        Context *fresh = NULL;

        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (!fresh && c && take_again(c))
                        return c;
                if (c)
                        continue;
                fresh = fresh ? fresh : make_place();
                if (!fresh || atomic_compare_exchange_strong(&a->contexts[i], &c, fresh))
                        return fresh;
        }
        if (fresh)
                (void) sys_call(SYS_munmap, fresh, sizeof *fresh);
        return NULL;
}

static Context *find(ProcessState *a, uintptr_t handle, const Context *but) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load_explicit(&a->contexts[i], memory_order_acquire);

                if (!c)
                        return NULL;
                if (c != but && atomic_load_explicit(&c->handle, memory_order_acquire) == handle)
                        return c;
        }
        return NULL;
}

static void end_place(ProcessState *a, Context *c, uintptr_t there, bool gone) {
        if (!atomic_compare_exchange_strong(&c->handle, &there, 1))
                return; /* somebody else does the same */
        batch_drop_all(a, c, gone);
        batch_charge_all(a, c, true);
        atomic_store(&c->handle, 0);
}

/* Where two threads come with the same one, both have said so before either looks: at least one
 * sees the other, and goes back. */
static Context *add_context(ProcessState *a, uintptr_t handle, int *ret_card) {
        Context *c, *other;

        *ret_card = card_of_current(a->gate);
        c = *ret_card >= 0 ? take_place(a) : NULL;
        if (!c)
                return NULL;
        begin(c, (uint32_t) *ret_card);
        atomic_store(&c->handle, handle);
        other = find(a, handle, c);
        if (!other)
                return c;
        end_place(a, c, handle, false);
        return other;
}

uintptr_t launch_context_handle(const ProcessState *a, CuHandle stream, bool *ret_foreign) {
        int (*get_current)(CuHandle *) = (int (*)(CuHandle *)) real_get(REAL_cuCtxGetCurrent);
        int (*get_of)(CuHandle, CuHandle *) = (int (*)(CuHandle, CuHandle *)) real_get(REAL_cuStreamGetCtx);
        CuHandle handle = NULL, of = NULL;

        *ret_foreign = false;
        if (!get_current || get_current(&handle) != 0 || (uintptr_t) handle <= 1)
                handle = NULL;
        if ((handle && a->gate->n_cards == 1) || (uintptr_t) stream <= DEFAULT_STREAMS || !get_of)
                return (uintptr_t) handle;
        if (get_of(stream, &of) != 0 || (uintptr_t) of <= 1)
                return (uintptr_t) handle;
        *ret_foreign = of != handle;
        return (uintptr_t) of;
}

Context *process_context(ProcessState *a, uintptr_t handle, int *ret_card) {
        Context *c;

        *ret_card = -1;
        if (handle == 0)
                return NULL;
        c = find(a, handle, NULL);
        if (!c)
                return add_context(a, handle, ret_card);
        *ret_card = (int) c->card;
        return c;
}

void context_destroy_now(ProcessState *a, uintptr_t handle, bool gone) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t there = c ? atomic_load(&c->handle) : 0;

                if (there > 1 && (handle == 0 || there == handle))
                        end_place(a, c, there, gone);
        }
}

bool context_destroy_is_known(ProcessState *a, uintptr_t handle) {
        return handle > 1 && find(a, handle, NULL);
}

void context_destroy_mark(ProcessState *a, uintptr_t handle, bool ends) {
        Context *c = handle > 1 ? find(a, handle, NULL) : NULL;

        if (c)
                batch_mark_all(a, c, ends);
}

/* While it ends its place has no handle, and is nobody else's. */
void context_destroy_begin(ProcessState *a, uintptr_t handle) {
        Context *c = handle > 1 ? find(a, handle, NULL) : NULL;
        uintptr_t there = handle;

        if (!c || !atomic_compare_exchange_strong(&c->handle, &there, 1))
                return;
        batch_drop_all(a, c, false);
        atomic_store(&c->ending, handle);
}

void context_destroy_end(ProcessState *a, uintptr_t handle, bool gone) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);
                uintptr_t there = handle;

                if (!c)
                        return;
                if (handle <= 1 || !atomic_compare_exchange_strong(&c->ending, &there, 0))
                        continue;
                batch_charge_all(a, c, gone);
                atomic_store(&c->handle, 0);
        }
}

void context_destroy_stream(ProcessState *a, CuHandle stream) {
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++) {
                Context *c = atomic_load(&a->contexts[i]);

                if (c && atomic_load(&c->handle) > 1)
                        batch_end_stream(a, c, stream);
        }
}

/* ---- sums ---- */

static SliceWork *row_of(ProcessState *a, uint32_t card) {
        SliceUser *s = &a->gate->cards[card].slice;

        return &s->counters->rows[s->row].work;
}

static const SliceSchedule *schedule_of(ProcessState *a, uint32_t card) {
        return &a->gate->cards[card].slice.limits->schedule;
}

/* Never less than what was said before: a correction downwards is taken from what comes. */
static void report_busy(ProcessState *a, uint32_t card) {
        int64_t used = atomic_load_explicit(&a->usage[card].used, memory_order_relaxed);
        _Atomic uint64_t *busy = &row_of(a, card)->busy;
        uint64_t reported = atomic_load_explicit(busy, memory_order_relaxed);

        while (used > 0 && (uint64_t) used > reported)
                if (atomic_compare_exchange_weak(busy, &reported, (uint64_t) used))
                        return;
}

void process_correct(ProcessState *a, uint32_t card, int64_t nsec) {
        ProcessUsage *m = &a->usage[card];

        (void) atomic_fetch_add_explicit(&m->used, nsec, memory_order_relaxed);
        (void) atomic_fetch_sub_explicit(&m->balance, nsec, memory_order_relaxed);
        report_busy(a, card);
}

void process_return(ProcessState *a, uint32_t card, uint64_t nsec, uint32_t launches) {
        ProcessUsage *m = &a->usage[card];
        uint64_t was = atomic_load_explicit(&m->in_flight, memory_order_relaxed);
        uint32_t n = atomic_load_explicit(&m->launches, memory_order_relaxed);

        while (!atomic_compare_exchange_weak(&m->in_flight, &was, was > nsec ? was - nsec : 0))
                ;
        while (launches > 0 &&
               !atomic_compare_exchange_weak(&m->launches, &n, n > launches ? n - launches : 0))
                ;
}

/* At once: what was estimated is never in `used`, where another thread would say it for good. */
void process_charge(ProcessState *a, uint32_t card, uint64_t in_flight, uint64_t nsec, uint32_t launches) {
        ProcessUsage *m = &a->usage[card];

        process_return(a, card, in_flight, launches);
        (void) atomic_fetch_add_explicit(&m->used, (int64_t) nsec, memory_order_relaxed);
        (void) atomic_fetch_sub_explicit(&m->balance, (int64_t) nsec - (int64_t) in_flight,
                                         memory_order_relaxed);
        report_busy(a, card);
}

void process_count_launch(ProcessState *a, uint32_t card) {
        (void) atomic_fetch_add_explicit(&row_of(a, card)->launched, 1, memory_order_relaxed);
}

/* ---- the row ---- */

static bool has_waiters(const ProcessUsage *m) {
        uint64_t now;

        if (atomic_load(&m->waiters) == 0)
                return false;
        now = launch_now();
        return now - atomic_load(&m->waited) < WAITER_LOST_NS || atomic_load(&m->waited) > now;
}

/* Also by its time, before the arbiter has said so: it hears that it may look. Whoever makes a
 * window longer gives it another number where somebody takes it for over. */
static bool is_over(const SliceSchedule *t, const ProcessUsage *m, uint32_t window) {
        uint64_t closes = atomic_load(&t->closes);

        return !(window & SCHED_WINDOW_OPEN) ||
               (heartbeat_time(&m->heartbeat, launch_now()) >= closes && atomic_load(&t->window) == window);
}

static bool is_open(const SliceSchedule *t) {
        return (atomic_load(&t->flags) & SCHED_F_GATED) && (atomic_load(&t->window) & SCHED_WINDOW_OPEN);
}

/* In a window that is open, and not by its flag only. */
static bool may_launch(ProcessState *a, uint32_t card) {
        const SliceSchedule *schedule = schedule_of(a, card);

        return is_open(schedule) && !is_over(schedule, &a->usage[card], atomic_load(&schedule->window));
}

/* Since when is the first one's to say; what is said of who waits is as of now. */
static void report_want(ProcessState *a, uint32_t card, uint64_t now) {
        uint64_t flags = has_waiters(&a->usage[card]) ? atomic_load(&a->usage[card].flags) : 0, wants = 0;
        _Atomic uint64_t *word = &row_of(a, card)->wants;

        if (atomic_load_explicit(word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(word, &wants, (now & ~(uint64_t) WORK_F_MASK) | flags)) {
                if (pause_ends(a, card, may_launch(a, card)))
                        peers_ring_doorbell(&a->gate->cards[card].slice);
                return;
        }
        wants = atomic_load_explicit(word, memory_order_relaxed);
        if (wants != 0 && (wants & WORK_F_MASK) != flags)
                (void) atomic_compare_exchange_strong(word, &wants,
                                                      (wants & ~(uint64_t) WORK_F_MASK) | flags);
}

void process_report_want(ProcessState *a, uint32_t card, uint64_t now) {
        ProcessUsage *m = &a->usage[card];
        SliceWork *row = row_of(a, card);
        bool works = atomic_load(&m->closed) > 0 && !host_func_is_blocked(m);
        uint64_t nsec = works ? atomic_load(&m->in_flight) : 0;

        atomic_store_explicit(&row->in_flight,
                              (uint32_t) (nsec < WORK_IN_FLIGHT_MAX ? nsec : WORK_IN_FLIGHT_MAX),
                              memory_order_relaxed);
        report_busy(a, card);
        report_want(a, card, heartbeat_time(&m->heartbeat, now));
}

/* So that it is known when that was, though it may be looked at later. False: it wants nothing,
 * which nobody would look for. */
static bool renew_want(SliceWork *row) {
        uint64_t wants = atomic_load(&row->wants), now = launch_now() & ~(uint64_t) WORK_F_MASK;

        return wants != 0 && atomic_compare_exchange_strong(&row->wants, &wants, now | (wants & WORK_F_MASK));
}

/* idles: since just now it wants nothing, and what is left of its window is not charged. */
static void report_drained(ProcessState *a, uint32_t card, bool is_idle) {
        const SliceSchedule *schedule = schedule_of(a, card);
        uint32_t window = atomic_load(&schedule->window), number = window >> 1;
        SliceWork *row = row_of(a, card);
        bool renewed;

        if (!is_over(schedule, &a->usage[card], window) ||
            (atomic_load(&a->usage[card].closed) != 0 && !host_func_is_blocked(&a->usage[card])) ||
            atomic_load(&row->drained) == number) {
                if (is_idle && is_open(schedule) && pause_begins(a, card))
                        peers_ring_doorbell(&a->gate->cards[card].slice);
                return;
        }
        renewed = renew_want(row);
        atomic_store(&row->in_flight, 0);
        atomic_store(&row->drained, number);
        if (!renewed || !(atomic_load(&schedule->flags) & SCHED_F_NO_NOTIFY))
                peers_ring_doorbell(&a->gate->cards[card].slice);
}

void process_report_drained(ProcessState *a, uint32_t card) {
        report_drained(a, card, false);
}

/* Between the question and the words another thread may have begun; it says so once more, then. */
void process_report_idle(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];
        SliceWork *row = row_of(a, card);
        bool is_idle;

        report_busy(a, card);
        atomic_store(&row->in_flight, 0);
        is_idle = !has_waiters(m) && atomic_exchange(&row->wants, 0) != 0;
        report_drained(a, card, is_idle);
        if (atomic_load(&m->closed) > 0 || has_waiters(m))
                process_report_want(a, card, launch_now());
}

void process_report_first_launch(ProcessState *a, uint32_t card, uint32_t window, uint64_t now) {
        atomic_store_explicit(&a->usage[card].window, window, memory_order_relaxed);
        atomic_store_explicit(&row_of(a, card)->began,
                              WORK_BEGAN(heartbeat_time(&a->usage[card].heartbeat, now)),
                              memory_order_relaxed);
}

void process_wake(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];

        (void) atomic_fetch_add(&m->wake, 1);
        if (atomic_load(&m->waiters) > 0)
                (void) sys_call(SYS_futex, &m->wake, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, 0, 0, 0);
}

ProcessState *process_known(void) {
        return &the_account;
}
