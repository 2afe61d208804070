/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/next_deadline.h"

#include "arbiter/open_window.h"
#include "arbiter/pick.h"
#include "arbiter/window_end.h"

/* The doorbell tells, and this is for doorbells that do not come. */
static uint64_t without_doorbell(const EngineTenant *t, uint64_t now, bool haste) {
        uint64_t first = t->window.closes + t->drain_min + (haste ? 3 * NOTIFY_LATENCY_NS : DOORBELL_LOST_NS);
        uint64_t again = now + NOTIFY_LATENCY_NS + since(t->window.closes, now) / (haste ? 4 : 2);

        return window_end_deadline(t) > now ? min_u64(window_end_deadline(t), max_u64(first, again)) : again;
}

/* Whoever has work again rings, and so does anybody else who wants the card. */
static uint64_t after_idle(const Engine *e, const EngineTenant *t, int waiting, uint64_t now) {
        uint64_t gone = t->idle_since + idle_close_after(t), earliest = pick_earliest(e, PICK_CLOSING, now);

        if (waiting >= 0) /* later there is still one before that one to wait for */
                return min_u64(t->window.closes, gone > now ? gone : now + IDLE_POLL_NS);
        return min_u64(t->window.closes, max_u64(max_u64(earliest, gone), now + PREOPEN_NS / 4));
}

static uint64_t after_owner(const Engine *e, uint64_t now) {
        const EngineTenant *t = &e->tenants[e->owner];
        int waiting = pick_next(e, PICK_CLOSING, now);
        uint64_t closes = t->window.closes, earliest = pick_earliest(e, PICK_CLOSING, now),
                 end = closes +
                       since(open_window_preopen(e, waiting), min_u64(t->drain_min, t->window.drain_ns));
        uint64_t next = max_u64(max_u64(end, waiting < 0 ? earliest : 0), now + PREOPEN_NS / 4);

        if (waiting < 0) /* who has drained by then has rung */
                next = min_u64(next, without_doorbell(t, now, true));

        if (is_resting(t) || (t->window.sole && t->report.idle_since != 0))
                return after_idle(e, t, waiting, now);
        if (!open_window_is_stalled(e, t, now) && pick_keeps_owner(e, t, waiting, since(now, closes)))
                next = since(open_window_margin(e, waiting), closes);
        if (earliest > now && t->exclusive_until < closes) /* it goes on only as long as nobody waits */
                next = min_u64(next, max_u64(earliest, t->exclusive_until));
        if (t->first_launch == 0 && t->start_delay > 2 * NOTIFY_LATENCY_NS &&
            now < t->opened + t->start_delay / 2)
                next = min_u64(next,
                               t->opened + t->start_delay /
                                                   2); /* who says that he is late has nothing in flight */
        if ((t->was_idle && !t->window.sole) || (t->n_empty > 0 && t->report.busy == t->busy_before))
                next = min_u64(next, now + IDLE_POLL_NS);
        return next;
}

static uint64_t after_closing(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t deadline = window_end_deadline(t),
                 end = since(pick_longest_preopen(e), window_end_predicted(t, now)),
                 earliest = pick_earliest(e, PICK_CLOSED, now);
        int next = pick_next(e, PICK_CLOSED, now);

        if (deadline <= now)
                deadline = UINT64_MAX; /* nobody waits for its end, so it may take as long as it does */
        if (e->owner >= 0)             /* seen with the end of the other one's */
                return deadline;
        if (earliest > now) /* nobody may have one yet */
                return min_u64(without_doorbell(t, now, false), max_u64(earliest, end));
        if (end <= now && next >= 0 && t->report.n_active == 1) /* one process's word is good enough */
                end = since(engine_preopen(&e->tenants[next]), window_end_predicted(t, now));
        if (end > now)
                return min_u64(deadline, end);
        return min_u64(deadline, now + PREOPEN_NS / 2 + since(t->window.closes, now) / 8);
}

uint64_t next_deadline(const Engine *e, uint64_t now) {
        uint64_t next = now + min_u64(e->overrun_limit, OVERRUN_REPORT_NS);

        if (e->owner >= 0)
                next = after_owner(e, now);
        else if (!engine_is_closing(e))
                next = min_u64(next, max_u64(pick_earliest(e, PICK_CLOSED, now), now + PREOPEN_NS / 4));
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_CLOSING)
                        next = min_u64(next, after_closing(e, t, now));
                else if (t->state == ENGINE_OVERRUN)
                        next = min_u64(next, now + min_u64(IDLE_POLL_NS + since(t->overrun.since, now) / 8,
                                                           t->report.waiter ? BLOCKED_NEXT_NS : UINT64_MAX));
        }
        return max_u64(next, now + 1);
}
