/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "preload/inject/loaded.h"
#include "preload/launch/host_func.h"
#include "preload/launch/pause.h"
#include "preload/launch/tunables.h"

enum {
        CLOCK_NONE = 1,
        MAKING_YIELDS = 100000,
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

/* ---- the state ---- */

/* Not asked for: who has no memory left is counted, too. */
static ProcessState the_process;

static void clear_usage(ProcessUsage *m) {
        static const ProcessUsage none;

        *m = none;
}

/* One thread makes it; the others wait some nanoseconds until it is whole, but not for a thread
 * below a signal handler. */
static bool is_ours_to_make(ProcessState *a, long pid, long making) {
        long there = atomic_load_explicit(&a->pid, memory_order_acquire);

        for (unsigned n = 0; there != pid; n++) {
                if ((there != making || n >= MAKING_YIELDS) &&
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
        ProcessState *a = &the_process;

        if (atomic_load_explicit(&a->pid, memory_order_acquire) != g->pid)
                begin_again(a, g);
        return a;
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
        return &the_process;
}
