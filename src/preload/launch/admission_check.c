/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission-internal.h"
#include "preload/launch/batch.h"
#include "preload/launch/duty.h"
#include "preload/launch/unbatched.h"

enum { EXTRA_LAUNCHES = 8 }; /* launches */

/* A launch of unknown length counts as half of the depth, so few are admitted until one has
 * ended. */
static void assume_length(LaunchRequest *k, uint64_t depth) {
        uint64_t nsec = depth / 2 > MAX_COLD_NS        ? MAX_COLD_NS
                        : depth / 2 > ESTIMATE_COLD_NS ? depth / 2
                                                       : ESTIMATE_COLD_NS;

        if (k->cold)
                k->nsec = k->known > nsec ? k->known : nsec;
}

/* Whether the launch waits for late work in front of it. At most MAX_HELD_NS: that work may itself
 * wait for something that this thread does after the launch. */
static bool must_wait_for_late(LaunchRequest *k) {
        if (!batch_is_overdue(k->process, k->card, k->stream, k->now))
                return false;
        if (k->held_since == 0 || k->now - k->held_since < MAX_HELD_NS)
                return true;
        atomic_store(&k->usage->closed_end, k->now + HELD_PAUSE_NS);
        return false;
}

static uint32_t backlog_launches(const LaunchRequest *k) {
        return k->backlog > 0 ? atomic_load(&k->usage->backlog_launches) : 0;
}

/* Whether too many launches are in flight. Estimates may be wrong: a function that was short and
 * becomes long is limited by count, and the count grows with measurements. After MAX_HELD_NS
 * EXCUSED more are admitted, except behind blocked work. */
static bool has_too_many(LaunchRequest *k) {
        uint32_t n = atomic_load_explicit(&k->usage->launches, memory_order_relaxed);

        if (n < backlog_launches(k) + k->room) {
                k->crowded_since = 0;
                return false;
        }
        if (k->crowded_since == 0)
                k->crowded_since = k->now;
        if (k->now - k->crowded_since < MAX_HELD_NS || k->backlog > 0)
                return true;
        process_return(k->process, k->card, 0, EXTRA_LAUNCHES);
        k->crowded_since = 0;
        return false;
}

static Admission admit(LaunchRequest *k) {
        uint32_t n = atomic_fetch_add_explicit(&k->usage->launches, 1, memory_order_relaxed);

        if (k->copy)
                (void) atomic_fetch_add(&k->usage->copies, 1);
        k->fills = k->fills || n + 1 >= backlog_launches(k) + k->room;
        host_func_admitted(k->usage, k->now);
        return PASS;
}

static Admission admit_at_once(LaunchRequest *k) {
        (void) atomic_fetch_add(&k->usage->in_flight, k->nsec);
        return admit(k);
}

/* Work in flight of the container's other processes, ns. A process that was killed may have left a
 * value there, which only makes this larger. */
static uint64_t others_in_flight(const LaunchRequest *k) {
        const SliceUser *s = &k->process->gate->cards[k->card].slice;
        uint64_t sum = 0, one;

        for (uint32_t row = 0; row < SLICE_ROWS; row++) {
                if (row == s->row)
                        continue;
                one = atomic_load_explicit(&s->counters->rows[row].work.in_flight, memory_order_relaxed);
                sum += one < MAX_ROOM_NS ? one : MAX_ROOM_NS;
        }
        return sum;
}

/* The work that may be in flight: what ends by the window's close or `rest` later. Several
 * processes divide it; what some do not use, the others may. */
static uint64_t room_in(const LaunchRequest *k, uint64_t depth, uint64_t in_flight) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t sharers = atomic_load_explicit(&t->sharers, memory_order_relaxed);
        uint64_t closes = atomic_load_explicit(&t->closes, memory_order_relaxed);
        uint64_t room = closes > k->now ? closes - k->now : 0, part, others;

        room += atomic_load_explicit(&t->rest, memory_order_relaxed);
        if (sharers <= 1)
                return room < depth ? room : depth;
        part = room / sharers < depth ? room / sharers : depth;
        if (in_flight < part || depth > MAX_ROOM_NS || k->backlog > 0)
                return part;
        others = others_in_flight(k);
        room = room < depth * sharers ? room : depth * sharers;
        return others < room && room - others > part ? room - others : part;
}

/* May blocked work plus this launch still be reported as not running? Only up to MAX_BLOCKED_NS, or
 * once the launch has waited MAX_HELD_NS. Windows behind blocked work (SCHED_F_IGNORE_BACKLOG) are
 * only opened for work that is reported so, so without this escape the launch would never be
 * admitted. */
static bool may_block_with(const LaunchRequest *k, uint64_t in_flight) {
        return admission_may_block(in_flight) &&
               (admission_may_block(in_flight + k->nsec) ||
                (k->held_since != 0 && k->now - k->held_since >= MAX_HELD_NS));
}

/* Sets k->backlog: work in flight that this window does not count. That is all work from before a
 * window with SCHED_F_IGNORE_BACKLOG, or blocked work, as long as it lasts. */
static void note_backlog(LaunchRequest *k, uint64_t in_flight) {
        ProcessUsage *m = k->usage;
        uint32_t known = atomic_load(&m->backlog_window);
        uint64_t before;
        bool behind = atomic_load_explicit(&k->limits->schedule.flags, memory_order_relaxed) &
                      SCHED_F_IGNORE_BACKLOG;

        if (!behind && (!host_func_excludes_backlog(m) || !may_block_with(k, in_flight)))
                return;
        if (host_func_excludes_backlog(m) && atomic_load(&m->backlog_allowed) < k->room)
                k->room = atomic_load(&m->backlog_allowed);
        if (behind && known != k->window) {
                atomic_store(&m->backlog, in_flight);
                atomic_store(&m->backlog_launches, atomic_load(&m->launches));
                (void) atomic_compare_exchange_strong(&m->backlog_window, &known, k->window);
        }
        before = atomic_load(&m->backlog);
        if (in_flight < before && atomic_compare_exchange_strong(&m->backlog, &before, in_flight))
                before = in_flight;
        k->backlog = before;
}

static uint64_t not_in_backlog(const LaunchRequest *k, uint64_t in_flight) {
        return in_flight > k->backlog ? in_flight - k->backlog : 0;
}

/* After a pause a function may have other work than before, so only ESTIMATE_FEW launches are
 * admitted until the first has ended. A launch that was held does not end a pause. */
static void note_restart(LaunchRequest *k, uint64_t in_flight) {
        if (in_flight == 0 && k->held_since == 0 &&
            k->now - atomic_load_explicit(&k->usage->marked, memory_order_relaxed) >= RESTART_PAUSE_NS)
                atomic_store(&k->usage->restarted, 1);
        if (k->room > ESTIMATE_FEW && atomic_load_explicit(&k->usage->restarted, memory_order_relaxed))
                k->room = ESTIMATE_FEW;
}

/* A kernel in flight may wait for what this copy brings. */
static bool is_copy_behind_kernels(const LaunchRequest *k) {
        return k->copy && atomic_load(&k->usage->launches) > atomic_load(&k->usage->copies);
}

static Admission admit_by_window(LaunchRequest *k) {
        const SliceSchedule *t = &k->limits->schedule;
        uint64_t in_flight = atomic_load_explicit(&k->usage->in_flight, memory_order_relaxed);
        uint64_t depth = atomic_load_explicit(&t->depth, memory_order_relaxed), hosts, room;

        assume_length(k, depth);
        if (!(atomic_load_explicit(&t->flags, memory_order_relaxed) & SCHED_F_GATED) ||
            is_copy_behind_kernels(k))
                return admit_at_once(k);
        k->window = atomic_load_explicit(&t->window, memory_order_acquire);
        if (!(k->window & SCHED_WINDOW_OPEN))
                return WAIT_WINDOW;
        if (k->now >= atomic_load_explicit(&t->closes, memory_order_relaxed))
                return WAIT_LATE;
        note_backlog(k, in_flight);
        note_restart(k, in_flight);
        if (not_in_backlog(k, in_flight) != 0 &&
            (has_too_many(k) || (k->backlog == 0 && must_wait_for_late(k))))
                return WAIT_DEPTH;
        hosts = k->backlog == 0 ? host_func_time(k->usage, batch_key(k->stream), k->now) : 0;
        room = room_in(k, depth, not_in_backlog(k, in_flight));
        do
                if (not_in_backlog(k, in_flight) + hosts >= room && not_in_backlog(k, in_flight) != 0)
                        return WAIT_DEPTH;
        while (!atomic_compare_exchange_weak(&k->usage->in_flight, &in_flight, in_flight + k->nsec));
        k->fills = not_in_backlog(k, in_flight) + hosts + k->nsec >= room;
        if (atomic_load_explicit(&k->usage->window, memory_order_relaxed) != k->window)
                process_report_first_launch(k->process, k->card, k->window, k->now);
        return admit(k);
}

/* Work in flight may wait for this launch, so one launch per HELD_PAUSE_NS is admitted behind
 * it. */
static bool may_go_into_debt(const LaunchRequest *k) {
        return k->held_since != 0 && k->now - k->held_since >= HELD_PAUSE_NS;
}

static Admission admit_by_balance(LaunchRequest *k, uint32_t percent) {
        uint64_t in_flight = atomic_load(&k->usage->in_flight);

        assume_length(k, LOCAL_DEPTH_NS);
        if (percent == 0) /* there is no limit to keep */
                return admit_at_once(k);
        duty_fill(k->usage, &k->process->gate->cards[k->card].slice, percent, k->now);
        if (is_copy_behind_kernels(k)) {
                (void) atomic_fetch_sub(&k->usage->balance, (int64_t) k->nsec);
                return admit_at_once(k);
        }
        if ((in_flight >= LOCAL_DEPTH_NS && !may_go_into_debt(k) && !host_func_excludes_backlog(k->usage)) ||
            (in_flight != 0 && has_too_many(k)))
                return WAIT_DEPTH;
        if (!duty_take(k->usage, k->nsec))
                return WAIT_BALANCE;
        return admit_at_once(k);
}

/* Whether the arbiter has not written for long, or by another clock. */
static bool is_away(uint64_t seen, uint64_t now) {
        return seen == 0 || (now > seen ? now - seen > SCHED_STALE_NSEC : seen - now > HEARTBEAT_AHEAD_NS);
}

Admission admission_check(LaunchRequest *k) {
        uint64_t seen = atomic_load_explicit(&k->limits->schedule.seen, memory_order_acquire);

        k->room = k->max_launches;
        k->backlog = 0;
        k->now = launch_now(); /* read after `seen`, so `seen` is never in the future */
        k->wake = atomic_load(&k->usage->wake);
        unbatched_poll(k->process, k->card, k->now);
        if (is_away(seen, k->now))
                return admit_by_balance(k, admission_percent(k->limits));
        if (atomic_load_explicit(&k->usage->filled, memory_order_relaxed) != 0)
                atomic_store(&k->usage->filled, 0); /* the arbiter is back and has the debts */
        return admit_by_window(k);
}
