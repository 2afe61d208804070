/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/engine.h"

#include <assert.h>
#include <string.h>

#include "arbiter/engine_time.h"
#include "arbiter/overrun_report.h"
#include "arbiter/pick.h"
#include "arbiter/window.h"
#include "slice/schedule.h"

/* ---- tenants ---- */

void engine_init(Engine *e, uint64_t now) {
        memset(e, 0, sizeof *e);
        e->owner = -1;
        e->now = now;
        e->overrun_limit = OVERRUN_REPORT_NS;
}

int engine_add(Engine *e, uint64_t now, const TenantPolicy *policy, uint32_t number, bool open) {
        uint32_t i = 0;
        EngineTenant *t;

        while (i < e->n && e->tenants[i].state != ENGINE_FREE)
                i++;
        if (i == ENGINE_TENANTS)
                return -1;
        e->n += i == e->n;
        t = &e->tenants[i];
        *t = (EngineTenant){
                .policy = *policy,
                .report = {.drained = !open},
                .window = {.gated = policy->gated, .number = number & (UINT32_MAX >> 1), .closes = now},
                .opened = now,
                .begins = now,
                .progress_at = now};
        window_set_state(t, open ? ENGINE_CLOSING : ENGINE_CLOSED);
        account_init(&t->account, policy, e->virtual_clocks[policy->high]);
        return (int) i;
}

void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy) {
        EngineTenant *t = &e->tenants[i];
        const TenantPolicy before = t->policy;

        t->policy = *policy;
        if (policy->gated != t->window.gated)
                window_reset(e, i);
        if (policy->conserving != before.conserving || policy->high != before.high ||
            policy->weight != before.weight)
                account_set_rank(&t->account, policy, e->virtual_clocks[policy->high]);
}

void engine_remove(Engine *e, uint32_t i) {
        if (e->owner == (int32_t) i)
                e->owner = -1;
        window_set_state(&e->tenants[i], ENGINE_FREE);
        e->tenants[i] = (EngineTenant){.state = ENGINE_FREE};
        while (e->n > 0 && e->tenants[e->n - 1].state == ENGINE_FREE)
                e->n--;
}

/* ---- reports ---- */

void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report) {
        EngineTenant *t = &e->tenants[i];
        uint64_t busy = max_u64(report->busy, t->report.busy), over = report->drained_at;

        if (report->n_changes != t->report.n_changes)
                t->progress_at = now;
        if (t->state == ENGINE_CLOSED && t->policy.gated && since(e->now, now) <= SCHED_STALE_NSEC)
                window_late_report(e, t, busy - t->report.busy, now);
        if (t->policy.gated) /* a process that was left out ran beside any window */
                window_charge(e, t, (int64_t) (report->silent_busy - t->report.silent_busy));
        if (report->n_launched != t->report.n_launched)
                t->backoff_until = min_u64(t->backoff_until, now + EMPTY_BACKOFF_NS);
        if (!t->report.drained && over != 0) /* the previous report still showed work */
                over = max_u64(over, min_u64(t->reported_at, now));
        t->newly_used += busy - t->report.busy;
        t->report = *report;
        t->report.busy = busy;
        t->report.drained_at = over;
        t->reported_at = now;
}

bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now) {
        const EngineTenant *t = &e->tenants[i];

        if (t->state == ENGINE_CLOSED)
                return wants(t) && since(t->reported_at, now) > 10 * ACTIVE_GRACE_NS;
        return t->state != ENGINE_FREE;
}

/* ---- the open window ---- */

/* Whether the tenant did not use its window for a quantum. */
static bool has_not_started(const EngineTenant *t, uint64_t now) {
        return since(t->opened, now) >= QUANTUM_NS && t->reported_at > t->opened && !window_is_used(t);
}

/* Sets idle_since when the tenant has no work left in its open window. */
static void note_idle(EngineTenant *t, uint64_t now) {
        if (wants(t) || t->report.in_flight > 0 || t->reported_at < t->opened)
                t->idle_since = 0;
        else if (t->idle_since == 0)
                t->idle_since = now;
}

bool engine_is_stalled(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->report.in_flight > 0 &&
               since(max_u64(t->progress_at, t->opened), now) >= min_u64(NO_PROGRESS_NS, e->overrun_limit);
}

/* A process took the window for closed just before it was extended. A new number tells it that the
 * window is open. */
static void renumber_if_ended(EngineTenant *t, uint64_t now) {
        if (t->report.ended && now + NOTIFY_LATENCY_NS < t->window.closes)
                t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
}

/* A joined window: it stays open while idle, up to JOINED_IDLE_NS if another tenant waits. */
static void step_joined(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];
        int waiting = pick_next(e, NULL, false, now);
        bool high = waiting >= 0 && e->tenants[waiting].policy.high && !t->policy.high;

        note_idle(t, now);
        if (t->planned_end > t->window.closes)
                window_extend(e, i, now, true);
        t->window.closes = max_u64(now, min_u64(t->window.closes, t->planned_end));
        renumber_if_ended(t, now);
        if (now >= t->window.closes ||
            (waiting >= 0 && (high || has_not_started(t, now) ||
                              (t->idle_since != 0 && now - t->idle_since >= JOINED_IDLE_NS))))
                window_close(e, i, now);
}

/* A window of one card: closes it, shortens it, or extends it. */
static void step_owner(Engine *e, uint64_t now) {
        uint32_t i = (uint32_t) e->owner;
        EngineTenant *t = &e->tenants[i];
        int waiting = pick_next(e, NULL, false, now);
        bool keeps, idle;

        note_idle(t, now);
        idle = (t->idle_since != 0 && now - t->idle_since >= IDLE_CLOSE_NS) || has_not_started(t, now);
        renumber_if_ended(t, now);
        keeps = t->policy.gated && !engine_is_stalled(e, t, now) && e->reserved == 0 &&
                pick_keeps_owner(e, t, pick_tenant(e, waiting), 0);
        if (idle && e->reserved != 0)
                window_close(e, i, now);
        else if (waiting >= 0 && (idle || (!keeps && (now >= t->begins + QUANTUM_NS ||
                                                      (e->tenants[waiting].policy.high && !t->policy.high)))))
                window_close(e, i, now);
        else if (keeps && !idle && now + EXTEND_MARGIN_NS >= t->window.closes && now < t->window.closes)
                window_extend(e, i, now, waiting >= 0);
        else if (waiting >= 0 && !keeps)
                t->window.closes = min_u64(t->window.closes, max_u64(now, t->begins + QUANTUM_NS));
        if (e->reserved != 0)
                t->window.closes = min_u64(t->window.closes, max_u64(now, e->reserved));
        if (e->owner >= 0 && now >= t->window.closes)
                window_close(e, i, now);
}

/* ---- the next one ---- */

/* The rest of one closed window (PREOPEN_NS) keeps the card busy while the next owner is notified.
 * A high-priority tenant does not wait for more than a quantum of that work. */
bool engine_may_open(const Engine *e, uint64_t now, bool high) {
        unsigned closing = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                uint64_t left = t->state == ENGINE_CLOSING ? since(now, window_predicted_end(t, now)) : 0;

                if (t->state == ENGINE_CLOSING && !(high && left > QUANTUM_NS) &&
                    (left > PREOPEN_NS || ++closing > 1))
                        return false;
        }
        return true;
}

int engine_opens_planned(const Engine *e, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++)
                if ((e->tenants[i].state == ENGINE_CLOSED || e->tenants[i].state == ENGINE_OVERRUN) &&
                    e->tenants[i].planned_end > now)
                        return (int) i;
        return -1;
}

static void open_next(Engine *e, uint64_t now) {
        int i = engine_opens_planned(e, now);
        bool contended, reserved = false;

        if (i < 0) {
                i = pick_next(e, NULL, false, now);
                reserved = i >= 0 && e->reserved != 0 && !e->tenants[i].policy.high;
        }
        if (i < 0 || (reserved && e->reserved < now + QUANTUM_NS / 4) ||
            !engine_may_open(e, now, e->tenants[i].policy.high))
                return;
        contended = pick_earliest(e, &e->tenants[i], true, now) < now + QUANTUM_NS;
        window_open(e, (uint32_t) i, now, contended);
        if (reserved)
                e->tenants[i].window.closes = min_u64(e->tenants[i].window.closes, e->reserved);
}

/* ---- when to look again ---- */

static uint64_t after_owner(const Engine *e, uint64_t now) {
        const EngineTenant *t = &e->tenants[e->owner];
        int waiting = pick_next(e, NULL, false, now);
        uint64_t earliest = pick_earliest(e, NULL, true, now), next = t->window.closes;

        if (t->idle_since != 0 && (waiting >= 0 || e->reserved != 0))
                next = min_u64(next,
                               max_u64(t->idle_since + (t->planned_end != 0 ? JOINED_IDLE_NS : IDLE_CLOSE_NS),
                                       now + NOTIFY_LATENCY_NS));
        if (t->window.closes > now + EXTEND_MARGIN_NS && (t->planned_end != 0 || e->reserved == 0) &&
            !engine_is_stalled(e, t, now) &&
            pick_keeps_owner(e, t, pick_tenant(e, waiting), since(now, t->window.closes)))
                next = min_u64(next, t->window.closes - EXTEND_MARGIN_NS);
        if (earliest > now) /* another tenant may have the card then */
                next = min_u64(next, max_u64(earliest, t->begins + QUANTUM_NS));
        if (!window_is_used(t))
                next = min_u64(next, max_u64(t->opened + QUANTUM_NS, now + IDLE_POLL_NS));
        return max_u64(next, now + NOTIFY_LATENCY_NS / 2);
}

/* When to look at a closing tenant again. Until another window may open, only its drain matters, of
 * which the process notifies by the doorbell. The other cards of a joined set wait for the drain,
 * so it is polled more often there. */
static uint64_t after_closing(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t end = since(PREOPEN_NS, window_predicted_end(t, now)), late = since(t->window.closes, now),
                 next = e->n_planned > 0 || e->owner >= 0 ? end : pick_earliest(e, NULL, true, now);

        if (next > end)
                end = min_u64(next, max_u64(end, window_drain_deadline(t)));
        return max_u64(end, now + NOTIFY_LATENCY_NS + late / (e->n_planned > 0 ? 8 : 4));
}

static uint64_t next_deadline(const Engine *e, uint64_t now) {
        uint64_t next = now + min_u64(e->overrun_limit, OVERRUN_REPORT_NS);

        if (e->owner >= 0)
                next = after_owner(e, now);
        else if (e->reserved != 0)
                next = min_u64(next, max_u64(e->reserved, now + IDLE_POLL_NS));
        else if (!window_any_closing(e))
                next = min_u64(next, max_u64(pick_earliest(e, NULL, false, now), now + PREOPEN_NS / 4));
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_CLOSING)
                        next = min_u64(next, after_closing(e, t, now));
                else if (t->state == ENGINE_OVERRUN)
                        next = min_u64(next,
                                       now + IDLE_POLL_NS +
                                               min_u64(since(t->overrun_since, now) / 8, OVERRUN_POLL_NS));
        }
        return max_u64(next, now + 1);
}

/* ---- a step ---- */

/* Asserts in debug builds what holds after each step. */
static void check_states(const Engine *e) {
        unsigned open = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                open += t->state == ENGINE_OPEN;
                assert(t->window.open == (t->state == ENGINE_OPEN));
                assert(t->state == ENGINE_FREE || t->state == ENGINE_CLOSED ||
                       t->window.gated == t->policy.gated);
                assert(t->state != ENGINE_OPEN || e->owner == (int32_t) i);
                assert(t->idle_since == 0 || t->idle_since <= e->now);
        }
        assert(open == (e->owner >= 0));
        (void) open;
}

void engine_advance(Engine *e, uint64_t now) {
        now = max_u64(now, e->now);
        if (since(e->now, now) > SCHED_STALE_NSEC)
                engine_time_skip(e, now);
        else
                engine_time_charge(e, now);
        overrun_report_update(e, now);
        for (uint32_t i = 0; i < e->n; i++)
                window_step(e, i, now);
}

uint64_t engine_decide(Engine *e, uint64_t now) {
        now = max_u64(now, e->now);
        if (e->owner >= 0) {
                int32_t owner = e->owner;

                if (e->tenants[owner].planned_end != 0)
                        step_joined(e, (uint32_t) owner, now);
                else
                        step_owner(e, now);
                window_step(e, (uint32_t) owner, now);
        }
        if (e->owner < 0)
                open_next(e, now);
        check_states(e);
        return next_deadline(e, now);
}

uint64_t engine_step(Engine *e, uint64_t now) {
        engine_advance(e, now);
        return engine_decide(e, now);
}
