/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/open_window.h"

#include "arbiter/pick.h"
#include "arbiter/window.h"
#include "arbiter/window_end.h"

/* It goes on, or its window is over all the same. Where another one is kept from the card meanwhile
 * it is charged for a short rest. */
static void end_idle(EngineTenant *t, int waiting) {
        uint64_t held;

        if (t->idle_since == 0)
                return;
        held = waiting >= 0 ? min_u64(t->idle_time - t->idle_time_before, IDLE_CLOSE_NS) : 0;
        t->usage.own += held;
        t->idle_time -= held;
        t->idle_since = 0;
}

/* For longer than it takes to launch the next kernel when one has ended. Of who comes first a pause
 * that was seen and another one after the next kernel are two, and he keeps the card; of others
 * they may be taken for one, so that tiny kernels with pauses do not keep it for long. */
static bool is_idle(Engine *e, EngineTenant *t, int waiting, uint64_t now) {
        uint64_t from =
                t->report.idle_since != 0 ? min_u64(max_u64(t->report.idle_since, t->opened), now) : now;

        if (wants(t) || t->report.in_flight > 0 || t->reported_at < t->opened) {
                end_idle(t, waiting);
                return false;
        }
        if (t->policy.high && t->gap_since > t->idle_since)
                end_idle(t, waiting);
        if (t->idle_since == 0 && t->report.idle_since != 0 && t->window.sole && waiting < 0)
                return now - from >= idle_close_after(t); /* it writes that down: window_apply_idle() */
        if (t->idle_since == 0) {
                t->idle_since = from;
                window_idle(e, t, now);
        }
        return now - t->idle_since >= idle_close_after(t);
}

/* It was let in, and does nothing. */
static bool has_not_started(const EngineTenant *t, uint64_t now) {
        return since(t->opened, now) >= NO_START_NS && t->reported_at > t->opened && !has_launched(t);
}

/* A launch waits for room in it, and may be what those wait for that are in flight. */
static bool is_blocked_in(const EngineTenant *t, uint64_t now) {
        return !t->window.ignore_backlog && t->policy.gated && t->report.in_flight > 0 &&
               now >= pick_backlog_from(t) && since(t->opened, now) >= BLOCKED_FIRST_NS;
}

bool open_window_is_stalled(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->report.in_flight > 0 &&
               since(max_u64(t->alive_at, t->opened), now) >= min_u64(NO_PROGRESS_NS, e->overrun_limit);
}

static bool may_go_on(const EngineTenant *t, uint64_t now) {
        return now + NOTIFY_LATENCY_NS / 2 <
               t->window.closes; /* later it has closed by itself, or might have */
}

uint64_t open_window_preopen(const Engine *e, int next) {
        return next >= 0 ? engine_preopen(&e->tenants[next]) : pick_longest_preopen(e);
}

uint64_t open_window_margin(const Engine *e, int next) {
        return EXTEND_MARGIN_NS + open_window_preopen(e, next) - PREOPEN_NS;
}

void open_window_step(Engine *e, uint64_t now) {
        uint32_t i = (uint32_t) e->owner;
        EngineTenant *t = &e->tenants[i];
        int waiting = pick_next(e, PICK_CLOSED, now);
        bool idle, keeps;

        window_apply_idle(e, t, now);
        idle = is_idle(e, t, waiting, now) || (waiting >= 0 && has_not_started(t, now));
        if (t->report.ended && may_go_on(t, now))
                window_renew(e, i);
        t->was_idle = idle || (t->was_idle && now < t->window.closes);
        keeps = t->policy.gated && !idle && !t->window.ignore_backlog && !has_not_started(t, now) &&
                !open_window_is_stalled(e, t, now) && pick_keeps_owner(e, t, waiting, 0);
        if (is_blocked_in(t, now)) {
                window_close(e, i, now);
                return;
        }
        if (idle && waiting >= 0) {
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps &&
            (now >= t->exclusive_until || (e->tenants[waiting].policy.high && !t->policy.high) ||
             (t->borrowed && pick_reclaims(&e->tenants[waiting], t)))) {
                end_idle(t, waiting);
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps)
                t->window.closes = min_u64(t->window.closes, t->exclusive_until);
        if (keeps && may_go_on(t, now) && now + open_window_margin(e, waiting) >= t->window.closes)
                window_extend(e, i, now, waiting >= 0);
        if (now < t->window.closes)
                return;
        end_idle(t, waiting);
        window_close(e, i, now);
}

/* ---- the next one ---- */

/* Beside a window that is about to end: what is left of it keeps the card busy while the next one's
 * owner gets the word. */
static bool may_open(const Engine *e, uint64_t now, const EngineTenant *next) {
        uint64_t lead = engine_preopen(next);
        bool high = next->policy.high;
        unsigned closing = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state != ENGINE_CLOSING)
                        continue;
                if (!high && (now + lead + NOTIFY_LATENCY_NS / 5 < window_end_predicted(t, now) ||
                              t->reported_at < t->window.closes || ++closing > 1))
                        return false;
        }
        return true;
}

void open_window_next(Engine *e, uint64_t now) {
        int i = pick_next(e, PICK_CLOSED, now), second;

        if (i < 0 || !may_open(e, now, &e->tenants[i]))
                return;
        e->tenants[i].window.ignore_backlog = e->tenants[i].state == ENGINE_OVERRUN;
        e->tenants[i].state = ENGINE_OPEN; /* to see who else waits */
        second = pick_next(e, PICK_CLOSING, now);
        window_open(e, (uint32_t) i, now,
                    second >= 0 || pick_earliest(e, PICK_CLOSING, now) < now + QUANTUM_NS);
}
