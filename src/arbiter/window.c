/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/window.h"

#include <stddef.h>

#ifdef ENGINE_LOG
#include <stdio.h>
#endif

enum { ONE_KERNEL = 1 }; /* a depth, ns: allows one launch */

void window_set_state(EngineTenant *t, EngineState state) {
#ifdef ENGINE_LOG
        static const char *const names[] = {"FREE", "CLOSED", "OPEN", "CLOSING", "OVERRUN"};

        (void) fprintf(stderr, "window %u: %s -> %s\n", t->window.number, names[t->state], names[state]);
#endif
        t->state = state;
        t->window.open = state == ENGINE_OPEN;
}

bool window_is_used(const EngineTenant *t) {
        return t->report.n_launched != t->launched_before || t->report.busy != t->busy_before ||
               t->report.in_flight > 0;
}

bool window_is_drained(const EngineTenant *t) {
        return t->report.drained && t->reported_at >= t->window.closes;
}

bool window_any_closing(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        return true;
        return false;
}

static uint64_t in_flight(const EngineTenant *t) {
        return min_u64(t->report.in_flight, MAX_DRAIN_NS);
}

/* Launched work follows without gaps on the work before it. With several processes each one's busy
 * time covers the same time: there the mean drain time counts instead. */
uint64_t window_predicted_end(const EngineTenant *t, uint64_t now) {
        uint64_t latest = now + in_flight(t), end = t->window.closes + t->mean_drain;

        if (window_is_drained(t))
                return now;
        if (t->planned_end != 0) /* its kernels may wait for other cards */
                return latest;
        if (t->report.n_active <= 1)
                end = t->begins + t->idle_time + since(t->busy_before, t->report.busy) + in_flight(t);
        return min_u64(latest, max_u64(now, end));
}

uint64_t window_drain_deadline(const EngineTenant *t) {
        return t->window.closes +
               max_u64(2 * QUANTUM_NS, min_u64(2 * in_flight(t) + QUANTUM_NS, MAX_DRAIN_NS));
}

/* ---- opening ---- */

/* The work that may be in flight: what ends by the close. A conserving tenant without competitors
 * has no fixed close and must be able to drain soon. If a high-priority tenant may come, one
 * kernel. */
static void set_depth(const Engine *e, EngineTenant *t, uint64_t now, bool contended) {
        bool bounded = contended || !t->policy.conserving;

        t->window.drain_ns = DRAIN_NS;
        t->window.sharers = t->report.n_active > 0 ? t->report.n_active : 1;
        t->window.depth = bounded ? (QUANTUM_NS + 2 * DRAIN_NS) / t->window.sharers : QUANTUM_NS / 2;
        if (t->planned_end > now && e->reserved != 0) /* joined: only as much as the other cards have left */
                t->window.drain_ns = 0;
        if (!t->policy.high && now < e->high_until)
                t->window.depth = ONE_KERNEL;
}

/* The length of a window, ns: as long as the tokens last, at most a quantum, or two if another
 * tenant's kernel kept this one waiting. */
static uint64_t length_of(const EngineTenant *t) {
        int64_t tokens = account_tokens(&t->account),
                most = (int64_t) QUANTUM_NS * (t->account.arrears > 0 ? 2 : 1);

        if (t->policy.conserving || tokens > most)
                return (uint64_t) (t->policy.conserving ? (int64_t) QUANTUM_NS : most);
        return (uint64_t) (tokens > (int64_t) QUANTUM_NS / 4 ? tokens : (int64_t) QUANTUM_NS / 4);
}

/* When the closed windows will have drained, at most PREOPEN_NS from now. */
static uint64_t free_from(const Engine *e, uint64_t now) {
        uint64_t from = now;

        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        from = max_u64(from, window_predicted_end(&e->tenants[i], now));
        return min_u64(from, now + PREOPEN_NS);
}

static void advance_virtual_clock(Engine *e, const EngineTenant *t) {
        if (t->policy.conserving && t->account.clock > e->virtual_clocks[t->policy.high])
                e->virtual_clocks[t->policy.high] = t->account.clock;
}

static void start_window(EngineTenant *t, uint64_t now, uint64_t begins) {
        t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
        t->opened = now;
        t->begins = begins;
        t->busy_before = t->report.busy;
        t->launched_before = t->report.n_launched;
        t->idle_since = t->idle_time = t->contended = t->shared = t->charged = 0;
}

void window_open(Engine *e, uint32_t i, uint64_t now, bool contended) {
        EngineTenant *t = &e->tenants[i];
        uint64_t begins = free_from(e, now);

        start_window(t, now, begins);
        window_set_state(t, ENGINE_OPEN);
        if (t->planned_end > now) { /* time spent waiting for another card is not kept as credit */
                account_wake(&t->account, &t->policy, e->virtual_clocks[t->policy.high]);
                t->idle_since = wants(t) ? 0 : now;
        }
        set_depth(e, t, now, contended);
        t->window.closes =
                t->planned_end > now
                        ? t->planned_end
                        : begins + (contended || !t->policy.conserving ? length_of(t) : SOLE_WINDOW_NS);
        e->owner = (int32_t) i;
        advance_virtual_clock(e, t);
}

void window_extend(Engine *e, uint32_t i, uint64_t now, bool contended) {
        EngineTenant *t = &e->tenants[i];
        bool sole = !contended && t->policy.conserving;

        advance_virtual_clock(e, t);
        set_depth(e, t, now, contended);
        t->window.closes = t->planned_end > now
                                   ? t->planned_end
                                   : max_u64(t->window.closes, now) + (sole ? SOLE_WINDOW_NS : length_of(t));
}

void window_reset(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        if (e->owner == (int32_t) i)
                e->owner = -1;
        window_set_state(t, t->policy.gated ? ENGINE_CLOSING : ENGINE_CLOSED);
        t->window.gated = t->policy.gated;
        t->window.closes = e->now;
        t->overrun_since = 0;
        start_window(t, e->now, e->now);
}

/* ---- the cost ---- */

void window_charge(Engine *e, EngineTenant *t, int64_t ns) {
        account_charge(&t->account, &t->policy, ns, e->virtual_clocks[t->policy.high]);
        t->window.used = ns < 0 ? since((uint64_t) -ns, t->window.used) : t->window.used + (uint64_t) ns;
}

/* When the window began to hold the card. The time of a switch from another tenant is not charged,
 * nor a start that is late by at most SWITCH_NS. */
static uint64_t start_of(const EngineTenant *t) {
        uint64_t begins = max_u64(t->begins, min_u64(t->report.first_launch, t->begins + SWITCH_NS));

        return t->begins > t->opened ? max_u64(begins, t->begins + SWITCH_NS) : begins;
}

/* The cost of the window until `end`, ns. A report of hardly any work is not credible, nor then its
 * idle time. Reports of several processes count the same time more than once, so they are limited
 * to the time held. */
static uint64_t cost_of(const EngineTenant *t, uint64_t end) {
        uint64_t busy = since(t->busy_before, t->report.busy), unheld = t->idle_time + t->shared,
                 held = since(start_of(t) + unheld, end),
                 most = t->report.n_rows > 1 ? held : since(t->begins + unheld, end),
                 slack = max_u64(SWITCH_NS, min_u64(UNUSED_SLACK_NS, held / CREDIBLE_PART));

        if (!window_is_used(t))
                return t->contended > SWITCH_NS ? since(UNUSED_SLACK_NS, held) : 0;
        if (busy * CREDIBLE_PART < held)
                return since(start_of(t) + t->shared, end);
        busy = min_u64(most, busy + t->report.in_flight);
        return t->contended <= SWITCH_NS ? busy : max_u64(busy, since(slack, held));
}

void window_settle(Engine *e, EngineTenant *t, uint64_t end) {
        uint64_t cost = cost_of(t, end);

        window_charge(e, t, (int64_t) cost - (int64_t) t->charged);
        t->charged = cost;
}

/* Sets the begin of the open window to `end`, from which the card is free for it, unless it began
 * to use the card before. */
static void set_next_begin(Engine *e, uint64_t end) {
        EngineTenant *o = e->owner >= 0 ? &e->tenants[e->owner] : NULL;

        if (o)
                o->begins = max_u64(
                        o->begins,
                        window_is_used(o) ? min_u64(end, max_u64(o->opened, o->report.first_launch)) : end);
}

/* Counts unused windows in a row, and backs off after EMPTY_FORGIVEN of them. */
static void note_use(EngineTenant *t, uint64_t now) {
        if (window_is_used(t) || (t->planned_end != 0 && !wants(t))) {
                t->n_empty = 0;
                return;
        }
        t->n_empty += t->n_empty < 10;
        if (t->n_empty > EMPTY_FORGIVEN)
                t->backoff_until =
                        now + min_u64(MAX_BACKOFF_NS, EMPTY_BACKOFF_NS << (t->n_empty - EMPTY_FORGIVEN));
}

static void charge_drained(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t end = t->report.drained_at != 0 ? max_u64(t->report.drained_at, t->window.closes) : now;

        if (t->report.n_rows <= 1) /* its busy time gives another bound of the end */
                end = max_u64(end, t->begins + t->idle_time + since(t->busy_before, t->report.busy));
        end = min_u64(end, now);
        t->mean_drain = (7 * t->mean_drain + min_u64(since(t->window.closes, end), MAX_DRAIN_NS)) / 8;
        set_next_begin(e, end);
        window_settle(e, t, end);
        window_charge(
                e, t,
                (int64_t) min_u64(SWITCH_CHARGE_NS, t->charged / 256)); /* so that equal tenants take turns */
        note_use(t, now);
        t->charged = since(since(t->busy_before, t->report.busy), t->charged);
        t->begins = end;
        t->overrun_since = 0;
        window_set_state(t, ENGINE_CLOSED);
}

/* Charges use that was reported after the end, as far as the window's charge does not cover it, up
 * to the time since. */
void window_late_report(Engine *e, EngineTenant *t, uint64_t more, uint64_t now) {
        uint64_t covered = min_u64(more, t->charged), late = min_u64(more - covered, since(t->begins, now));

        t->charged -= covered;
        t->begins += late;
        window_charge(e, t, (int64_t) late);
}

/* ---- overruns ---- */

/* The work does not drain in time: other tenants get windows beside it. It is charged up to now,
 * and the rest while it lasts. */
static void begin_overrun(Engine *e, EngineTenant *t, uint64_t now) {
        window_settle(e, t, now);
        t->charged = t->held = 0;
        if (t->overrun_since == 0)
                t->overrun_since = t->window.closes;
        t->busy_before = t->report.busy;
        window_set_state(t, ENGINE_OVERRUN);
}

/* A stopped process looks like a kernel that goes on. So without a report each context is charged
 * at most ACCOUNT_DEBT_NS. */
void window_charge_overrun(Engine *e, EngineTenant *t, uint64_t ns, uint64_t contexts) {
        uint64_t most = max_u64(since(t->busy_before, t->report.busy), contexts * ACCOUNT_DEBT_NS);

        t->held += ns;
        ns = min_u64(ns, since(t->charged, most));
        t->charged += ns;
        window_charge(e, t, (int64_t) ns);
}

/* Refunds tenants whose windows ran beside the work in OVERRUN, which had used `had` ns of them. */
static void refund_others(Engine *e, uint64_t had) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < e->n; i++)
                sum += e->tenants[i].charged_beside;
        for (uint32_t i = 0; i < e->n && sum > 0; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t part =
                        min_u64(o->charged_beside,
                                (uint64_t) ((double) had * (double) o->charged_beside / (double) sum));

                o->charged_beside -= part;
                o->window.used -= min_u64(part, o->window.used);
                account_refund(&o->account, &o->policy, (int64_t) part);
        }
}

/* A kernel in OVERRUN has ended, so its reported time is known. Above MAX_ROW_BUSY_NS reports are
 * cut, and the time held counts. */
static void settle_overrun(Engine *e, EngineTenant *t) {
        uint64_t busy = since(t->busy_before, t->report.busy),
                 had = busy < MAX_ROW_BUSY_NS ? min_u64(busy, t->held) : t->held;

        window_charge(e, t, (int64_t) since(t->charged, had));
        refund_others(e, had);
        t->charged = since(had, t->charged);
        t->held -= had;
        t->busy_before = t->report.busy;
}

/* A later report may contain time that was not charged: window_late_report() charges it from here
 * on. */
static void end_overrun(EngineTenant *t, uint64_t now) {
        t->begins = now - since(t->charged, t->held);
        t->overrun_reported_at = t->overrun_since = 0;
        window_set_state(t, ENGINE_CLOSED);
}

/* Whether overdue work must become OVERRUN: another tenant or another card of its set waits for it,
 * or it has to be reported. */
static bool is_waited_for(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (since(t->window.closes, now) >= e->overrun_limit || t->planned_end != 0)
                return true;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *o = &e->tenants[i];

                if (o != t && o->state != ENGINE_FREE && o->policy.gated && wants(o))
                        return true;
        }
        return false;
}

void window_step(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        if (t->state == ENGINE_CLOSING && window_is_drained(t))
                charge_drained(e, t, now);
        else if (t->state == ENGINE_CLOSING && now >= window_drain_deadline(t) && is_waited_for(e, t, now))
                begin_overrun(e, t, now);
        if (t->state == ENGINE_OVERRUN && t->report.busy > t->busy_before)
                settle_overrun(e, t);
        if (t->state == ENGINE_OVERRUN && window_is_drained(t))
                end_overrun(t, now);
}

/* ---- closing ---- */

void window_close(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        window_set_state(t, ENGINE_CLOSING);
        t->window.closes = min_u64(t->window.closes, now);
        e->owner = -1;
        if (t->planned_end != 0 && t->overrun_since != 0) /* it was overdue before: no second timeout */
                begin_overrun(e, t, now);
}
