/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/admission-internal.h"
#include "preload/launch/batch.h"
#include "preload/launch/duty.h"

static uint64_t balance_wait(LaunchRequest *k) {
        uint64_t nsec = duty_until(k->usage, admission_percent(k->limits));

        return nsec < MIN_BALANCE_POLL_NS ? MIN_BALANCE_POLL_NS
               : nsec < WINDOW_POLL_NS    ? nsec
                                          : WINDOW_POLL_NS;
}

static uint64_t depth_wait(const LaunchRequest *k) {
        uint64_t due = atomic_load(&k->usage->closed_end),
                 nsec = due > k->now + DEPTH_LEAD_NS ? due - k->now - DEPTH_LEAD_NS : 0;

        return nsec < MIN_DEPTH_POLL_NS   ? MIN_DEPTH_POLL_NS
               : nsec < MAX_DEPTH_POLL_NS ? nsec
                                          : MAX_DEPTH_POLL_NS;
}

/* ns until work in flight may count as blocked. */
static uint64_t blocked_wait(const LaunchRequest *k) {
        uint64_t from = host_func_blocked_from(k->usage, k->held_since);

        if (from == UINT64_MAX || host_func_is_blocked(k->usage))
                return WINDOW_POLL_NS;
        if (from <= k->now)
                return BLOCKED_POLL_NS;
        return from - k->now < WINDOW_POLL_NS ? from - k->now : WINDOW_POLL_NS;
}

/* Sleeps until a change, a signal or the time ends it; then admission is checked again. */
static void sleep_for(LaunchRequest *k, Admission v) {
        uint64_t nsec = v == WAIT_WINDOW  ? WINDOW_POLL_NS
                        : v == WAIT_LATE  ? LATE_POLL_NS
                        : v == WAIT_DEPTH ? depth_wait(k)
                                          : balance_wait(k);

        nsec = blocked_wait(k) < nsec ? blocked_wait(k) : nsec;
        if (v == WAIT_WINDOW || v == WAIT_LATE)
                launch_sleep_on(&k->limits->schedule.window, k->window, false, nsec);
        else
                launch_sleep_on(&k->usage->wake, k->wake, true, nsec);
}

/* A thread that ended between admission and launch leaves an amount in flight that no other thread
 * takes out: drops it after LOST_AFTER_NS. */
static void drop_lost_work(LaunchRequest *k) {
        if (k->now - k->held_since < LOST_AFTER_NS || atomic_load(&k->usage->closed) != 0)
                return;
        atomic_store(&k->usage->in_flight, 0);
        atomic_store(&k->usage->launches, 0);
        atomic_store(&k->usage->copies, 0);
        k->held_since = k->now;
}

/* Reports a launch that has waited for long, and whether the work in flight is blocked. */
static void report_flags(LaunchRequest *k) {
        bool blocked = k->context && atomic_load(&k->usage->closed) > 0 &&
                       batch_is_blocked(k->process, k->context, k->now);

        atomic_store(&k->usage->flags, (uint32_t) WORK_F_WAITER | (blocked ? WORK_F_BLOCKED : 0U));
}

/* Whether no work in flight makes progress, maybe because of this launch. True: check admission
 * again. With more than MAX_BLOCKED_NS in flight no launch may be admitted for that reason, and the
 * report is taken back. */
static bool check_blocked(LaunchRequest *k, Admission v) {
        if (!admission_may_block(atomic_load(&k->usage->in_flight))) {
                if (v == WAIT_DEPTH)
                        host_func_unblock(k->usage);
                return false;
        }
        if (!k->context || k->now < host_func_blocked_from(k->usage, k->held_since) ||
            !batch_is_blocked(k->process, k->context, k->now))
                return false;
        return host_func_mark_blocked(k->usage, v == WAIT_WINDOW || v == WAIT_LATE) && v == WAIT_DEPTH;
}

static void wait_once(LaunchRequest *k, Admission v) {
        bool first = k->held_since == 0, again;

        atomic_store(&k->usage->waited, k->now);
        if (first) {
                k->held_since = k->now;
                (void) atomic_fetch_add(&k->usage->waiters, 1);
        }
        if (k->context)
                batch_poll(k->process, k->context, BATCH_POLL_ASK | (first ? BATCH_POLL_CLOSE : 0), k->now);
        if (first && atomic_load(&k->usage->in_flight) == 0)
                atomic_store(&k->usage->restarted, 1);
        again = check_blocked(k, v);
        if (k->now - k->held_since >= LONG_WAIT_NS)
                report_flags(k);
        process_report_want(k->process, k->card, k->now);
        process_report_drained(k->process, k->card);
        if (v == WAIT_DEPTH)
                drop_lost_work(k);
        if (again)
                return;
        sleep_for(k, v);
}

void admission_wait(AdmittedLaunch *l, CuHandle stream) {
        LaunchRequest k = {.process = l->process,
                           .context = l->context,
                           .limits = l->process->gate->cards[l->card].slice.limits,
                           .usage = &l->process->usage[l->card],
                           .card = l->card,
                           .stream = stream,
                           .copy = l->copy,
                           .max_launches = estimate_max_launches(l->estimate),
                           .cold = estimate_is_uncertain(l->estimate),
                           .nsec = estimate_nsec(l->estimate),
                           .known = estimate_is_cold(l->estimate) ? 0 : estimate_nsec(l->estimate)};
        uint32_t waiters;
        Admission v;

        while ((v = admission_check(&k)) != PASS)
                wait_once(&k, v);
        l->now = k.now;
        l->nsec = k.nsec;
        l->waited = k.held_since != 0;
        l->fills = k.fills;
        if (!l->waited)
                return;
        atomic_store(&k.usage->flags, 0); /* a thread that still waits sets them again */
        waiters = atomic_load(&k.usage->waiters);
        while (waiters > 0 && !atomic_compare_exchange_weak(&k.usage->waiters, &waiters, waiters - 1))
                ;
}
