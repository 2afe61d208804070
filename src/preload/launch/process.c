/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/process.h"

#include <errno.h>

#include "preload/launch/host_func.h"
#include "preload/launch/peers.h"
#include "preload/launch/tunables.h"

enum { MAKING_YIELDS = 100000 };

/* ---- the state ---- */

/* Static: works in a process without free memory. */
static ProcessState the_process;

static void clear_usage(ProcessUsage *m) {
        static const ProcessUsage none;

        *m = none;
}

/* Whether this thread has to initialize the state. Others wait until it is complete, but not
 * forever: the initializing thread may be below this one's signal handler. */
static bool claim_reset(ProcessState *a, long pid, long making) {
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

/* Initializes the state in a new process, or in a child of fork: there is no work on the card. */
static void reset_state(ProcessState *a, Gate *g) {
        if (!claim_reset(a, g->pid, -g->pid))
                return;
        for (unsigned i = 0; i < PROCESS_CONTEXTS; i++)
                atomic_store(&a->contexts[i], NULL);
        for (unsigned i = 0; i < GATE_CARDS; i++)
                clear_usage(&a->usage[i]);
        atomic_store(&a->without_context, false);
        spin_drop(&a->lock);
        host_func_reset();
        a->gate = g;
        atomic_store_explicit(&a->pid, g->pid, memory_order_release);
}

ProcessState *process_get(Gate *g) {
        ProcessState *a = &the_process;

        if (atomic_load_explicit(&a->pid, memory_order_acquire) != g->pid)
                reset_state(a, g);
        return a;
}

/* ---- sums ---- */

/* Returns the process's work in its row. A context has memory, so there is a row by then; else
 * nothing reads the report. */
static SliceWork *row_of(ProcessState *a, uint32_t card) {
        static SliceWork unread;
        SliceUser *s = &a->gate->cards[card].slice;
        uint32_t row = atomic_load_explicit(&s->row, memory_order_relaxed);

        return row == SLICE_NO_ROW ? &unread : &s->counters->rows[row].work;
}

static const SliceSchedule *schedule_of(const ProcessState *a, uint32_t card) {
        return &a->gate->cards[card].slice.limits->schedule;
}

uint64_t process_sharers(const ProcessState *a, uint32_t card) {
        uint64_t n = atomic_load_explicit(&schedule_of(a, card)->sharers, memory_order_relaxed);

        return n > 1 ? n : 1;
}

uint64_t process_others(const ProcessState *a, uint32_t card, uint32_t *ret_n) {
        const SliceUser *s = &a->gate->cards[card].slice;
        uint64_t sum = 0;

        *ret_n = 0;
        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                uint64_t one = row == s->row ? 0 : atomic_load(&s->counters->rows[row].work.in_flight);

                sum += one;
                *ret_n += one > 0;
        }
        return sum;
}

/* Writes the time used. It never decreases: a correction downwards is taken from later
 * increases. */
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

/* Stops at 0, because drop_lost_work() may have cleared a count meanwhile. */
void process_return(ProcessState *a, uint32_t card, uint64_t nsec, uint32_t kernels) {
        ProcessUsage *m = &a->usage[card];
        uint64_t was = atomic_load_explicit(&m->in_flight, memory_order_relaxed);
        uint32_t n = atomic_load_explicit(&m->kernels, memory_order_relaxed);

        while (!atomic_compare_exchange_weak(&m->in_flight, &was, was > nsec ? was - nsec : 0))
                ;
        while (kernels > 0 && !atomic_compare_exchange_weak(&m->kernels, &n, n > kernels ? n - kernels : 0))
                ;
}

/* Charges nsec at once: an estimate in `used` that is corrected later could be reported for good by
 * another thread meanwhile. */
void process_charge(ProcessState *a, uint32_t card, uint64_t in_flight, uint64_t nsec, uint32_t kernels) {
        ProcessUsage *m = &a->usage[card];

        process_return(a, card, in_flight, kernels);
        atomic_store(&m->progress, launch_now());
        (void) atomic_fetch_add_explicit(&m->used, (int64_t) nsec, memory_order_relaxed);
        (void) atomic_fetch_sub_explicit(&m->balance, (int64_t) nsec - (int64_t) in_flight,
                                         memory_order_relaxed);
        report_busy(a, card);
}

void process_count_launch(ProcessState *a, uint32_t card) {
        (void) atomic_fetch_add_explicit(&row_of(a, card)->launched, 1, memory_order_relaxed);
}

/* ---- pauses ---- */

/* A pause begins when the process has no work on the card and no waiting thread, and ends with its
 * next work. The doorbell rings for both, but for one pause per DOORBELL_PAUSE_NS at most. Returns
 * whether to ring. */
static bool begin_pause(ProcessUsage *m) {
        uint64_t now = launch_now();

        if (now < atomic_load_explicit(&m->rang_at, memory_order_relaxed) + DOORBELL_PAUSE_NS)
                return false;
        atomic_store_explicit(&m->rang_at, now, memory_order_relaxed);
        atomic_store_explicit(&m->rang_for_pause, 1, memory_order_relaxed);
        return true;
}

/* Ends a pause. open: the process may launch now. Returns whether to ring. */
static bool end_pause(ProcessUsage *m, bool open) {
        return atomic_exchange(&m->rang_for_pause, 0) != 0 || !open;
}

/* ---- the row ---- */

static bool has_waiters(const ProcessUsage *m) {
        uint64_t now;

        if (atomic_load(&m->waiters) == 0)
                return false;
        now = launch_now();
        return now - atomic_load(&m->waited) < WAITER_LOST_NS || atomic_load(&m->waited) > now;
}

/* Whether the window is closed, by its time too, before the arbiter has written so. When the
 * arbiter extends a window that a process took for closed, it gives it a new number. */
static bool is_closed(const SliceSchedule *t, uint32_t window) {
        uint64_t closes = atomic_load(&t->closes);

        return !(window & SCHED_WINDOW_OPEN) || (launch_now() >= closes && atomic_load(&t->window) == window);
}

static bool is_open(const SliceSchedule *t) {
        return (atomic_load(&t->flags) & SCHED_F_GATED) && (atomic_load(&t->window) & SCHED_WINDOW_OPEN);
}

/* Whether the window is open by its flag and its time. */
static bool may_launch(ProcessState *a, uint32_t card) {
        const SliceSchedule *schedule = schedule_of(a, card);

        return is_open(schedule) && !is_closed(schedule, atomic_load(&schedule->window));
}

/* Writes since when the process has work, if it had none. */
static void report_want(ProcessState *a, uint32_t card, uint64_t now) {
        _Atomic uint64_t *word = &row_of(a, card)->wants;
        uint64_t none = 0;

        if (atomic_load_explicit(word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(word, &none, now) &&
            end_pause(&a->usage[card], may_launch(a, card)))
                peers_ring_doorbell(&a->gate->cards[card].slice);
}

void process_report_want(ProcessState *a, uint32_t card, uint64_t now) {
        ProcessUsage *m = &a->usage[card];
        SliceWork *row = row_of(a, card);
        uint64_t nsec = atomic_load(&m->closed) > 0 ? atomic_load(&m->in_flight) : 0;

        atomic_store_explicit(&row->in_flight,
                              (uint32_t) (nsec < WORK_IN_FLIGHT_MAX ? nsec : WORK_IN_FLIGHT_MAX),
                              memory_order_relaxed);
        report_busy(a, card);
        report_want(a, card, now);
}

/* Renews the time in `wants` if the process has work, because the arbiter may read it later. */
static void renew_want(SliceWork *row) {
        uint64_t wants = atomic_load(&row->wants);

        if (wants != 0)
                (void) atomic_compare_exchange_strong(&row->wants, &wants, launch_now());
}

/* Whether no other process of the container has work of this window on the card: the last one
 * rings. Of two that drain at the same time, one sees the other. If the other was killed the
 * arbiter finds out by itself. */
static bool is_last(ProcessState *a, uint32_t card, uint32_t window) {
        const SliceUser *s = &a->gate->cards[card].slice;

        if (process_sharers(a, card) == 1)
                return true;
        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                const SliceWork *w = &s->counters->rows[row].work;

                if (row != s->row && atomic_load(&w->in_flight) > 0 && atomic_load(&w->drained) != window)
                        return false;
        }
        return true;
}

/* is_idle: a pause has just begun, and the rest of the window is not charged. */
static void report_drained(ProcessState *a, uint32_t card, bool is_idle) {
        const SliceSchedule *schedule = schedule_of(a, card);
        uint32_t window = atomic_load(&schedule->window), number = window >> 1;
        SliceWork *row = row_of(a, card);

        if (!is_closed(schedule, window) || atomic_load(&a->usage[card].closed) != 0 ||
            atomic_load(&row->drained) == number) {
                if (is_idle && is_open(schedule) && begin_pause(&a->usage[card]))
                        peers_ring_doorbell(&a->gate->cards[card].slice);
                return;
        }
        renew_want(row);
        atomic_store(&row->in_flight, 0);
        atomic_store(&row->drained, number);
        if (is_last(a, card, number))
                peers_ring_doorbell(&a->gate->cards[card].slice);
}

void process_report_drained(ProcessState *a, uint32_t card) {
        report_drained(a, card, false);
}

/* Another thread may begin work between the check and the writes; then the report is repeated. */
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

/* Raises closed_end: other work is expected to end no later than by this call's estimate. */
void process_begin_call(ProcessState *a, uint32_t card, uint64_t nsec, uint64_t now) {
        ProcessUsage *m = &a->usage[card];
        uint64_t due = atomic_load(&m->closed_end);

        while (due < now + nsec && !atomic_compare_exchange_weak(&m->closed_end, &due, now + nsec))
                ;
        (void) atomic_fetch_add(&m->closed, 1);
        process_report_want(a, card, now);
}

void process_end_call(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];

        if (atomic_fetch_sub(&m->closed, 1) == 1)
                process_report_idle(a, card);
        process_wake(a, card);
}

void process_report_first_launch(ProcessState *a, uint32_t card, uint32_t window, uint64_t now) {
        atomic_store_explicit(&a->usage[card].window, window, memory_order_relaxed);
        atomic_store_explicit(&row_of(a, card)->began, WORK_BEGAN(now), memory_order_relaxed);
}

void process_wake(ProcessState *a, uint32_t card) {
        ProcessUsage *m = &a->usage[card];

        (void) atomic_fetch_add(&m->wake, 1);
        if (atomic_load(&m->waiters) > 0)
                launch_wake(&m->wake, true);
}

ProcessState *process_known(void) {
        return &the_process;
}
