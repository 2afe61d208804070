/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/window_end.h"

uint64_t window_end_first_kernel(const EngineTenant *t) {
        return t->first_launch != 0 ? t->first_launch : t->expected_start + NOTIFY_LATENCY_NS;
}

/* What was launched follows without a gap on what has ended: so the end is known from the
 * beginning, as well as kernels are. */
uint64_t window_end_expected(const EngineTenant *t) {
        return window_end_first_kernel(t) + t->idle_time + since(t->busy_before, t->report.busy) +
               min_u64(t->report.in_flight, MAX_DRAIN_TIMEOUT_NS);
}

uint64_t window_end_predicted(const EngineTenant *t, uint64_t now) {
        uint64_t latest = now + min_u64(t->report.in_flight, MAX_DRAIN_TIMEOUT_NS),
                 end = window_end_expected(t);

        if (t->report.drained)
                return now;
        if (t->report.n_active > 1 && t->report.in_flight <= t->window.depth)
                return min_u64(max_u64(now, t->window.closes + t->drain_min), latest);
        if (since(t->opened, now) > SOLE_WINDOW_NS)
                return latest;
        return end < now ? now : min_u64(end, latest);
}

uint64_t window_end_deadline(const EngineTenant *t) {
        uint64_t work = min_u64(t->report.in_flight, MAX_DRAIN_TIMEOUT_NS);

        return t->window.closes + max_u64(2 * QUANTUM_NS, min_u64(2 * work + QUANTUM_NS, t->drain_timeout)) +
               t->arbiter_late;
}

/* When it was over by what a process says to have used: not before all of that. Of several each has
 * seen all of it pass. */
static uint64_t used_until(const EngineTenant *t) {
        return t->report.n_active > 1
                       ? 0
                       : window_end_first_kernel(t) + t->idle_time + since(t->busy_before, t->report.busy);
}

/* When it was noticed that a window was over, or would have been by whoever waited for it. Who does
 * not say it had the card until he was looked at. */
static uint64_t over_at(const EngineTenant *t, uint64_t now) {
        uint64_t reported = max_u64(t->report.drained_at, t->window.closes) + NOTIFY_LATENCY_NS * 3 / 4;

        return t->report.drained_at == 0 ? now : min_u64(now, max_u64(reported, used_until(t)));
}

uint64_t window_end_noticed(const EngineTenant *t, uint64_t now) {
        return is_drained(t) ? over_at(t, now) : UINT64_MAX;
}

/* Who does not say when he was over pays until he is looked at, but what others have of that is his
 * own word, or a window's work. */
uint64_t window_end_drained(const EngineTenant *t, uint64_t now) {
        uint64_t worked = window_end_first_kernel(t) + since(t->busy_before, t->report.busy);

        if (!is_drained(t))
                return UINT64_MAX;
        if (t->report.drained_at == 0 && t->window.no_notify)
                return min_u64(now,
                               max_u64(worked, t->window.closes + t->window.drain_ns + NOTIFY_LATENCY_NS));
        return since(2 * NOTIFY_LATENCY_NS, over_at(t, now)); /* which it takes to notice */
}
