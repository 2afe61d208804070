/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/engine.h"

#include <string.h>

#include "arbiter/advance.h"
#include "arbiter/attribute.h"
#include "arbiter/next_deadline.h"
#include "arbiter/open_window.h"
#include "arbiter/overrun_report.h"
#include "arbiter/pick.h"
#include "arbiter/window.h"
#include "slice/schedule.h"

/* A step goes through the parts of the engine: what has passed (advance.h) and whose the time was (attribute.h); the
 * open window's owner and the next one (open_window.h), who is chosen by rank (pick.h); what becomes
 * of a window (window.h), and until when its work is on the card (window_end.h); work that others
 * wait for no longer (overrun.h), and kernels that hang (overrun_report.h); and when it is time to
 * look again (next_deadline.h). */

/* ---- tenants ---- */

void engine_init(Engine *e, uint64_t now) {
        memset(e, 0, sizeof *e);
        e->owner = -1;
        e->now = e->next_step = now;
        e->overhead = 2 * NOTIFY_LATENCY_NS;
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
                .state = open ? ENGINE_CLOSING : ENGINE_CLOSED,
                .policy = *policy,
                .report = {.drained = !open},
                .window = {.gated = policy->gated, .number = number & (UINT32_MAX >> 1), .closes = now},
                .opened = now,
                .expected_start = now,
                .settled_at = now,
                .silent_charged_until = now,
                .alive_at = now,
                .late_allowance = MAX_LATE_ALLOWANCE_NS,
                .drain_timeout = MAX_DRAIN_TIMEOUT_NS};
        account_init(&t->account, policy, virtual_clock(e, policy));
        return (int) i;
}

void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy) {
        EngineTenant *t = &e->tenants[i];
        TenantPolicy before = t->policy;

        t->policy = *policy;
        if (policy->gated != t->window.gated)
                window_reset(e, i);
        if (policy->conserving != before.conserving || policy->high != before.high)
                account_set_rank(&t->account, policy, virtual_clock(e, policy));
        else if (policy->weight != before.weight)
                account_set_weight(&t->account, &before, policy, virtual_clock(e, policy));
}

void engine_remove(Engine *e, uint32_t i) {
        if (e->owner == (int32_t) i)
                e->owner = -1;
        e->tenants[i] = (EngineTenant){.state = ENGINE_FREE};
        while (e->n > 0 && e->tenants[e->n - 1].state == ENGINE_FREE)
                e->n--;
}

/* Who has work in flight and has not begun, or will, began when he could. */
static void note_first_launch(EngineTenant *t, const TenantReport *report) {
        uint64_t began = report->first_launch;

        if (began == 0 && report->in_flight > 0)
                began = t->opened;
        if (began != 0 && (t->first_launch == 0 || began < t->first_launch))
                t->first_launch = max_u64(t->opened, began);
}

/* Of processes that were silent beside its windows, all of them no more than there was time for;
 * and of one that is no more, nothing is to be told. */
static void note_silent_busy(const Engine *e, EngineTenant *t, const TenantReport *report, uint64_t now) {
        uint64_t from = max_u64(t->silent_charged_until, t->report.stuck_since),
                 more = min_u64(since(t->report.silent_busy, report->silent_busy), since(from, now));

        t->silent_charged_until = from + more;
        account_charge(&t->account, &t->policy, (int64_t) more, virtual_clock(e, &t->policy));
        t->window.used += more;
        if (report->stuck_since == 0 && !is_overrun(t))
                t->overrun_reported = false;
}

static void learn_gap(EngineTenant *t, uint64_t ns) {
        t->gap_mean = (7 * t->gap_mean + min_u64(ns, IDLE_CLOSE_NS)) / 8;
}

/* How long it has nothing to do between its kernels or requests; of a long pause it counts that it
 * was one. Who has launched something and pauses again does so anew: nobody has looked when the
 * pause before was over. */
static void note_gap(EngineTenant *t, const TenantReport *report, uint64_t now) {
        bool anew = t->gap_since == 0 || report->n_launched != t->report.n_launched;

        if (report->want_since != 0) {
                if (t->gap_since != 0)
                        learn_gap(t, since(t->gap_since, min_u64(report->want_since, now)));
                t->gap_since = 0;
        } else if (report->in_flight == 0 && anew) {
                if (t->gap_since != 0)
                        learn_gap(t, since(t->gap_since, now) / 2);
                t->gap_since = report->idle_since != 0 ? report->idle_since : now;
        }
}

/* Nobody has looked for so long that the gates kept to their percentages by themselves. */
static bool was_away(const Engine *e, uint64_t now) {
        return since(e->now, now) > SCHED_STALE_NSEC;
}

void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report) {
        EngineTenant *t = &e->tenants[i];
        uint64_t busy = max_u64(report->busy, t->report.busy), over = report->drained_at,
                 rested = max_u64(report->idle_time, t->report.idle_time);

        if (report->n_changes != t->report.n_changes) {
                t->alive_at = now;
                t->backoff_until = min_u64(t->backoff_until, now + EMPTY_BACKOFF_NS);
        }
        if (was_away(e, now))
                t->silent_charged_until = now;
        note_silent_busy(e, t, report, now);
        note_gap(t, report, now);
        if (report->n_launched != t->report.n_launched || busy != t->report.busy || !report->waiter)
                t->progress_at = now;
        if (!t->report.drained) /* as we have seen */
                over = over != 0 ? max_u64(over, t->reported_at) : 0;
        t->report = *report;
        t->report.busy = busy;
        t->report.idle_time = rested;
        t->report.drained_at = over;
        t->reported_at = now;
        if (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING)
                note_first_launch(t, report);
        if (t->state == ENGINE_CLOSED && t->policy.gated && !was_away(e, now))
                window_late_report(e, i, now);
}

bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now) {
        const EngineTenant *t = &e->tenants[i];

        switch (t->state) {
        case ENGINE_OPEN:
        case ENGINE_CLOSING:
        case ENGINE_OVERRUN:
                return true;
        case ENGINE_CLOSED:
                return wants(t) && since(t->reported_at, now) > 10 * ACTIVE_GRACE_NS;
        default:
                return false;
        }
}

/* ---- a step ---- */

/* Nobody else has work on the card, or could have before its window closes, whether it rests or
 * not. */
static bool is_sole(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_OPEN && t->report.n_rows <= 1 && !engine_is_closing(e) &&
               !attribute_is_contested(e) && pick_next(e, PICK_CLOSING, now) < 0 &&
               pick_earliest(e, PICK_CLOSING, now) >= t->window.closes;
}

static void update_notify_flags(Engine *e, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                t->window.no_notify = e->owner >= 0 && t->state == ENGINE_CLOSING;
                t->window.sole = is_sole(e, t, now);
        }
}

uint64_t engine_step(Engine *e, uint64_t now) {
        int32_t owner;

        now = max_u64(now, e->now);
        if (was_away(e, now))
                advance_absence(e, now);
        else
                advance_time(e, now);
        owner = e->owner;
        overrun_report_update(e, now);
        for (uint32_t i = 0; i < e->n; i++)
                window_step(e, i, now);
        if (owner >= 0) {
                open_window_step(e, now);
                window_step(e, (uint32_t) owner, now);
        }
        if (e->owner < 0)
                open_window_next(e, now);
        update_notify_flags(e, now);
        e->next_step = next_deadline(e, now);
        return e->next_step;
}
