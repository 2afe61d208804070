/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "arbiter/attribute.h"
#include "arbiter/overrun.h"
#include "arbiter/pick.h"
#include "arbiter/window.h"
#include "arbiter/window_end.h"

enum { ONE_KERNEL = 1 }; /* as a depth, ns */
enum { FORGIVEN = 2 };   /* windows in a row that nothing was done with */

/* ---- opening ---- */

/* All that a window has room for: its gate launches no more than will be over by then. A conserving
 * one that is alone has no such end, and is to make room soon; with one who comes first about, a
 * single kernel is all there is to wait for. */
static void set_depth(const Engine *e, EngineTenant *t, uint64_t now, bool contested) {
        bool bounded = contested || !t->policy.conserving;

        t->window.drain_ns = MIN_DRAIN_NS + pick_longest_preopen(e) - PREOPEN_NS;
        t->window.sharers = t->report.n_active > 0 ? t->report.n_active : 1;
        if (t->window.ignore_backlog && !t->report.blocked) { /* its kernel may just be long: one more */
                t->window.depth = ONE_KERNEL;
                t->borrowed = false;
                return;
        }
        t->window.depth =
                bounded ? (QUANTUM_NS + 2 * t->window.drain_ns) / t->window.sharers : QUANTUM_NS / 2;
        t->borrowed = pick_lends(e, t);
        if (t->borrowed)
                t->window.depth = QUANTUM_NS / 8 / t->window.sharers;
        if (!t->policy.high && now < e->high_until)
                t->window.depth = ONE_KERNEL;
}

/* As long as there are tokens for it, to twice a quantum where another one's kernel has kept it
 * waiting. */
static uint64_t length_of(const EngineTenant *t, int64_t used) {
        int64_t tokens = account_tokens(&t->account) - used;
        int64_t most = (int64_t) QUANTUM_NS * (t->account.arrears > 0 ? 2 : 1);

        if (t->policy.conserving)
                return QUANTUM_NS;
        if (tokens > most)
                return (uint64_t) most;
        return tokens > (int64_t) QUANTUM_NS / 4 ? (uint64_t) tokens : QUANTUM_NS / 4;
}

/* Until the windows before are over. */
static uint64_t still_closing(const Engine *e, uint64_t now) {
        uint64_t ns = 0;

        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        ns = max_u64(ns, since(now, window_end_predicted(&e->tenants[i], now)));
        return min_u64(ns, PREOPEN_NS + MAX_START_DELAY_NS);
}

void window_open(Engine *e, uint32_t i, uint64_t now, bool contested) {
        EngineTenant *t = &e->tenants[i];
        uint64_t length = length_of(t, 0), early = min_u64(t->drain_min, length / 2);

        contested = contested || t->window.ignore_backlog; /* what is not used of it is lost */
        t->overrun.late_before += t->window.ignore_backlog ? t->arbiter_late : 0;
        t->state = ENGINE_OPEN;
        t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
        t->window.open = true;
        set_depth(e, t, now, contested);
        t->opened = now;
        t->busy_before = t->report.busy;
        t->unseen_before = t->report.unseen_busy;
        t->unclaimed = 0;
        t->launched_before = t->report.n_launched;
        t->charged = t->arbiter_late = t->idle_since = t->idle_time = t->first_launch = t->n_idle = 0;
        t->usage = (WindowUsage){.idle_reported = t->report.idle_time, .n_idle_reported = t->report.n_idle};
        t->extended = false;
        t->expected_start =
                now + since(t->start_delay > 2 * NOTIFY_LATENCY_NS ? 0 : PREOPEN_NS, still_closing(e, now));
        t->exclusive_until = t->expected_start + NOTIFY_LATENCY_NS + length - early;
        t->window.closes = t->exclusive_until;
        if (!contested) /* who is late by a long time may come then, too */
                t->window.closes = t->policy.conserving
                                           ? now + SOLE_WINDOW_NS
                                           : t->exclusive_until + (t->n_missed > 0 ? SOLE_WINDOW_NS : 0);
        e->owner = (int32_t) i;
        advance_virtual_clock(e, t);
}

void window_extend(Engine *e, uint32_t i, uint64_t now, bool contested) {
        EngineTenant *t = &e->tenants[i];
        bool lone = !contested && (t->policy.conserving || t->policy.rate == POLICY_PPM);
        uint64_t length = lone ? SOLE_WINDOW_NS : length_of(t, (int64_t) since(now, t->window.closes));

        t->extended = true;
        advance_virtual_clock(e, t);
        set_depth(e, t, now, contested);
        t->window.closes = max_u64(t->window.closes, now) + length;
        t->exclusive_until = lone ? now : t->window.closes;
}

void window_renew(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
}

void window_close(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        t->state = ENGINE_CLOSING;
        t->window.open = false;
        t->window.closes = min_u64(t->window.closes, now);
        e->owner = -1;
}

void window_reset(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        if (e->owner == (int32_t) i)
                e->owner = -1;
        t->state = t->policy.gated ? ENGINE_CLOSING : ENGINE_CLOSED;
        t->window.open = t->window.ignore_backlog = false;
        t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
        t->window.closes = t->opened = t->expected_start = e->now;
        t->busy_before = t->report.busy;
        t->charged = t->arbiter_late = t->settle_difference = t->first_launch = t->idle_since = t->idle_time =
                t->n_idle = 0;
        t->usage = (WindowUsage){0};
        t->unseen_before = t->report.unseen_busy;
        t->settled_busy = t->report.busy;
        t->settled_at = e->now;
        t->window.gated = t->policy.gated;
}

/* ---- what it cost ---- */

/* Another one has more coming to him than a window, or takes whatever there is: time that is not
 * used is his loss. */
static bool is_loss(const Engine *e, const EngineTenant *t) {
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o == t || !o->policy.gated || !wants(o) ||
                    (o->state != ENGINE_CLOSED && o->state != ENGINE_OPEN))
                        continue;
                if (o->policy.conserving || account_tokens(&o->account) >= (int64_t) QUANTUM_NS * 3 / 2)
                        return true;
        }
        return false;
}

/* How late it came to a card on which nobody was; a hop is overhead of all windows. */
static uint64_t lateness(const EngineTenant *t) {
        return since(NOTIFY_LATENCY_NS, t->usage.unused);
}

/* Of that, what costs nothing whatever he did before: where nobody waits, nothing is lost but his
 * own next window. */
static uint64_t usual_lateness(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (!has_launched(t) || e->owner >= 0 || pick_next(e, PICK_CLOSED, now) >= 0)
                return 0;
        return min_u64(lateness(t), MAX_START_DELAY_NS);
}

/* And the rest, as far as he used the card before: who is short of a processor is let off, and who
 * only says so gains little. */
static uint64_t forgiven(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t usual = usual_lateness(e, t, now), late = lateness(t);

        return late <= MAX_START_DELAY_NS || is_loss(e, t) ? 0
                                                           : min_u64(since(usual, late), t->late_allowance);
}

/* Who has used nothing at all is not believed. Of a window with rests less is held, and the gate
 * sees a little late that each begins. */
static uint64_t slack_of(const EngineTenant *t, uint64_t held, uint64_t busy) {
        if (busy == 0 && held >= QUANTUM_NS / 2)
                return 0;
        if (t->n_idle == 0)
                return UNUSED_SLACK_NS;
        return min_u64(UNUSED_SLACK_NS, 2 * NOTIFY_LATENCY_NS + held / 20) +
               t->n_idle * (NOTIFY_LATENCY_NS / 4);
}

/* Of what it is charged at most. A window without rests has lost that much between its launch and
 * its first kernel, and at its end; one with rests loses it once for all that it has. */
static uint64_t overhead_of(const Engine *e, const EngineTenant *t, uint64_t had) {
        return min_u64(e->overhead, had / (t->n_idle > 0 ? 20 : 2));
}

/* At least what it had of the card, less what it takes to notice; at most that, with what its
 * processes did where nobody saw them at work, because a gate says of short work only later what it
 * was, and for what it was believed to have rested. Its own word has others' turns in it, and of
 * several processes each has seen all of it pass. Who says that he has used nothing has not rested,
 * either. */
static uint64_t cost_of(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t had = since(usual_lateness(e, t, now) + forgiven(e, t, now), t->usage.own);
        uint64_t reported = since(t->busy_before, t->report.busy), busy = since(t->usage.others, reported);
        uint64_t unseen = min_u64(t->idle_time, since(t->unseen_before, t->report.unseen_busy));
        uint64_t worked = had + (reported > 0 ? 0 : t->idle_time);
        uint64_t least = since(slack_of(t, worked, reported) + t->arbiter_late, worked),
                 most = had + max_u64(unseen, t->usage.returned) - overhead_of(e, t, had);

        return busy < least ? least : min_u64(busy, max_u64(most, least));
}

/* The shortest tails count: whoever comes too early sees how long it will be, and whoever comes too
 * late has lost it. The rest is learnt from windows that were full and had one process's word for
 * it. */
static void learn(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t reported = since(t->busy_before, t->report.busy), busy = since(t->usage.others, reported);
        uint64_t end = t->report.n_active > 1 ? now - 2 * NOTIFY_LATENCY_NS
                                              : min_u64(now, window_end_first_kernel(t) + reported);
        uint64_t drain = min_u64(since(t->window.closes, end), QUANTUM_NS);

        if (t->first_launch != 0)
                t->start_delay =
                        (7 * t->start_delay + min_u64(t->first_launch - t->opened, MAX_START_DELAY_NS)) / 8;
        if (t->arbiter_late > 0 || t->n_idle > 0)
                return;
        if (t->report.n_active > 1)
                t->drain_min = (7 * t->drain_min + drain) / 8;
        else
                t->drain_min = drain < t->drain_min ? drain : t->drain_min + (drain - t->drain_min) / 16;
        if (t->first_launch > t->expected_start + 3 * NOTIFY_LATENCY_NS)
                return;
        if (t->report.n_active == 1 && busy <= t->usage.own && t->usage.own - busy < UNUSED_SLACK_NS &&
            !t->extended)
                e->overhead = (15 * e->overhead + t->usage.own - busy) / 16;
}

static void charge(Engine *e, EngineTenant *t, uint64_t cost) {
        int64_t more = (int64_t) cost - (int64_t) t->charged;

        attribute_charge(e, t, more);
        if (more > 0 && t->n_idle > 0) /* it says itself that it worked in them */
                t->window.granted += (uint64_t) more;
}

/* A window may go on for as long as its owner comes back, so it is charged at each rest. */
void window_idle(Engine *e, EngineTenant *t, uint64_t now) {
        t->n_idle++;
        t->idle_time_before = t->idle_time;
        attribute_leave(t);
        if (has_launched(t) && !t->window.ignore_backlog)
                charge(e, t, cost_of(e, t, now));
}

/* The rests that it wrote down since the last look, where it might, are as those that were seen.
 * The one that lasts counts from when a ring would have been heard; of those that are over begin
 * and end are told alike. */
void window_apply_idle(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t reported = since(t->report.idle_since != 0 ? NOTIFY_LATENCY_NS * 3 / 4 : 0,
                                  t->report.idle_time),
                 more = min_u64(since(t->usage.idle_reported, reported),
                                since(t->usage.own_when_reported, t->usage.own));
        uint32_t n = t->report.n_idle - t->usage.n_idle_reported;

        if (more > 0 && t->window.sole) {
                attribute_return(e, t, more);
                t->usage.returned += more;
                t->usage.unused =
                        min_u64(t->usage.unused, since(since(t->busy_before, t->report.busy), t->usage.own));
                t->idle_time += more;
                t->n_idle = max_u32(1, t->n_idle + (uint32_t) min_u64(n, more / NOTIFY_LATENCY_NS));
                t->window.granted -= min_u64(more, t->window.granted);
                if (has_launched(t))
                        charge(e, t, cost_of(e, t, now));
        }
        t->usage.idle_reported = max_u64(t->usage.idle_reported, reported);
        t->usage.n_idle_reported = t->report.n_idle;
        t->usage.own_when_reported = t->usage.own;
}

/* ---- the end ---- */

/* Who does nothing with his windows waits for the next one, as long as others want the card:
 * shortly, where anything moves (a program that is late tells at least that a window went by), and
 * ever longer, where nothing does. */
static void note_use(EngineTenant *t, uint64_t now) {
        if (has_launched(t)) {
                t->n_empty = 0;
                t->n_missed -= t->n_missed > 0;
                return;
        }
        t->n_empty += t->n_empty < 10;
        t->n_missed += t->n_missed < 16 ? 4 : 0;
        if (t->n_empty > FORGIVEN) /* it may have been late */
                t->backoff_until =
                        now + min_u64(MAX_BACKOFF_NS, max_u64(EMPTY_BACKOFF_NS, since(t->alive_at, now) / 8));
}

/* What it said and what it was charged differ by so much, others' turns beside it included: more
 * that it says of the same work may be that. */
static void settle(EngineTenant *t, uint64_t now) {
        uint64_t busy = since(t->busy_before, t->report.busy), known = t->charged + t->usage.others;

        t->settle_difference = busy > known ? busy - known : known - busy;
        t->settled_busy = t->report.busy;
        t->settled_at = now;
}

/* Work of which nobody knew, or that took longer than anybody thought: its gate finds that out when
 * it looks again. The card can have done no more of it since than there was time. */
void window_late_report(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];
        uint64_t more = since(t->settled_busy, t->report.busy), known = min_u64(more, t->settle_difference),
                 cost = min_u64(more - known, since(t->settled_at, now) + t->unclaimed),
                 unclaimed = min_u64(cost, t->unclaimed);

        t->settled_busy = t->report.busy;
        t->settle_difference -= known;
        t->unclaimed -= unclaimed;
        t->settled_at += cost - unclaimed;
        account_charge(&t->account, &t->policy, (int64_t) cost, virtual_clock(e, &t->policy));
        t->window.used += cost;
}

static void finish(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t let_off, cost;

        attribute_credit(t);
        let_off = forgiven(e, t, now);
        cost = cost_of(e, t, now);
        charge(e, t, cost + min_u64(SWITCH_CHARGE_NS, cost / 256));
        t->late_allowance = min_u64(MAX_LATE_ALLOWANCE_NS,
                                    t->late_allowance - let_off + (has_launched(t) ? t->charged / 2 : 0));
        settle(t, now);
        t->drain_timeout = min_u64(2 * t->drain_timeout, MAX_DRAIN_TIMEOUT_NS);
        learn(e, t, now);
        note_use(t, now);
        t->state = ENGINE_CLOSED;
}

/* Others go on beside it. What it had until now is charged, and what comes is when it is over. */
static void overrun(Engine *e, EngineTenant *t, uint64_t now) {
        charge(e, t, cost_of(e, t, now));
        t->drain_timeout = max_u64(t->drain_timeout / 2, 2 * QUANTUM_NS);
        overrun_begin(t, now);
}

/* A window behind work that was late before it: all of its time is charged, and nobody waits for
 * what was launched in it. Who is tied and launches does not hang. */
static void resume_overrun(Engine *e, EngineTenant *t, uint64_t now) {
        attribute_charge(e, t, (int64_t) t->window.drain_ns); /* so long what was launched in it may go on */
        t->window.granted += since(t->opened, now);
        t->window.ignore_backlog = false;
        t->progress_at = now;
        overrun_resume(t, t->window.depth > ONE_KERNEL && t->report.n_launched != t->launched_before);
}

static void end_overrun(Engine *e, EngineTenant *t, uint64_t now) {
        overrun_end(e, t, now);
        settle(t, now);
        t->drain_timeout =
                min_u64(2 * t->drain_timeout, MAX_DRAIN_TIMEOUT_NS); /* it has ended, and is paid for */
        t->state = ENGINE_CLOSED;
        t->overrun_reported = false;
}

/* Whoever waits for nothing else; and a kernel that hangs is reported, whoever waits. */
static bool is_in_the_way(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (since(t->window.closes, now) >= e->overrun_limit)
                return true;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o != t && o->policy.gated && wants(o))
                        return true;
        }
        return false;
}

void window_step(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        if (t->state == ENGINE_OVERRUN)
                overrun_note_working(t);
        if (t->state == ENGINE_OVERRUN && is_drained(t))
                end_overrun(e, t, now);
        else if (t->state == ENGINE_CLOSING && t->window.ignore_backlog)
                resume_overrun(e, t, now);
        else if (t->state == ENGINE_CLOSING && is_drained(t))
                finish(e, t, window_end_noticed(t, now));
        else if (t->state == ENGINE_CLOSING && now >= window_end_deadline(t) &&
                 (is_in_the_way(e, t, now) || now >= pick_backlog_from(t)))
                overrun(e, t, now);
}
