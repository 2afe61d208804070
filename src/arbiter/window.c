/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/window.h"

#include <stddef.h>

#ifdef ENGINE_LOG
#include <stdio.h>
#endif

enum { ONE_KERNEL = 1 }; /* as a depth, ns */

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

static uint64_t in_flight(const EngineTenant *t) {
        return min_u64(t->report.in_flight, MAX_DRAIN_NS);
}

/* What was launched follows without a gap on what has ended. Over a long window gaps add up, and of
 * several processes each has seen all of the time pass: there the usual tail counts as well. */
uint64_t window_predicted_end(const EngineTenant *t, uint64_t now) {
        uint64_t latest = now + in_flight(t), end = t->window.closes + t->tail;

        if (window_is_drained(t))
                return now;
        if (t->until != 0) /* its kernels may wait for those of other cards */
                return latest;
        if (t->report.n_active <= 1 && since(t->opened, t->window.closes) <= SOLE_WINDOW_NS)
                end = 0;
        if (t->report.n_active <= 1)
                end = max_u64(end, t->begins + t->idle_time + since(t->busy_before, t->report.busy) +
                                           in_flight(t));
        return min_u64(latest, max_u64(now, end));
}

uint64_t window_drain_deadline(const EngineTenant *t) {
        return t->window.closes +
               max_u64(2 * QUANTUM_NS, min_u64(2 * in_flight(t) + QUANTUM_NS, MAX_DRAIN_NS));
}

/* ---- opening ---- */

/* A window has room for what will have ended when it closes. A conserving tenant that is alone has
 * no such end, and must be able to make room soon. Where a tenant of high priority may come, one
 * kernel is all that it waits for. */
static void set_depth(const Engine *e, EngineTenant *t, uint64_t now, bool contended) {
        bool bounded = contended || !t->policy.conserving;

        t->window.drain_ns = DRAIN_NS;
        t->window.sharers = t->report.n_active > 0 ? t->report.n_active : 1;
        t->window.depth = bounded ? (QUANTUM_NS + 2 * DRAIN_NS) / t->window.sharers : QUANTUM_NS / 2;
        if (t->until > now && e->reserved != 0) /* only as much as other cards still have */
                t->window.drain_ns = 0;
        if ((t->window.ignore_backlog && !t->report.blocked) || (!t->policy.high && now < e->high_until))
                t->window.depth = ONE_KERNEL;
}

/* As long as the tokens last, to twice a quantum where another tenant's kernel kept it waiting. */
static uint64_t length_of(const EngineTenant *t) {
        int64_t tokens = account_tokens(&t->account),
                most = (int64_t) QUANTUM_NS * (t->account.arrears > 0 ? 2 : 1);

        if (t->policy.conserving || tokens > most)
                return (uint64_t) (t->policy.conserving ? (int64_t) QUANTUM_NS : most);
        return (uint64_t) (tokens > (int64_t) QUANTUM_NS / 4 ? tokens : (int64_t) QUANTUM_NS / 4);
}

/* The windows before it have ended by then. */
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

static void begin(EngineTenant *t, uint64_t now, uint64_t begins) {
        t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
        t->opened = now;
        t->begins = begins;
        t->busy_before = t->report.busy;
        t->launched_before = t->report.n_launched;
        t->idle_since = t->idle_time = t->contended = t->late = t->shared = t->charged = 0;
}

void window_open(Engine *e, uint32_t i, uint64_t now, bool contended) {
        EngineTenant *t = &e->tenants[i];
        uint64_t begins = free_from(e, now);

        t->window.ignore_backlog = t->state == ENGINE_OVERRUN && t->until <= now;
        if (!t->window.ignore_backlog)
                begin(t, now, begins);
        else
                t->window.number = (t->window.number + 1) & (UINT32_MAX >> 1);
        window_set_state(t, ENGINE_OPEN);
        if (t->until > now) { /* the time that another card made it wait for is lost */
                account_wake(&t->account, &t->policy, e->virtual_clocks[t->policy.high]);
                t->idle_since = wants(t) ? 0 : now;
        }
        set_depth(e, t, now, contended);
        t->window.closes = t->until > now ? t->until
                                          : begins + (contended || !t->policy.conserving ? length_of(t)
                                                                                         : SOLE_WINDOW_NS);
        e->owner = (int32_t) i;
        advance_virtual_clock(e, t);
}

void window_extend(Engine *e, uint32_t i, uint64_t now, bool contended) {
        EngineTenant *t = &e->tenants[i];
        bool sole = !contended && (t->policy.conserving || t->policy.rate == POLICY_PPM);

        advance_virtual_clock(e, t);
        set_depth(e, t, now, contended);
        t->window.closes = t->until > now
                                   ? t->until
                                   : max_u64(t->window.closes, now) + (sole ? SOLE_WINDOW_NS : length_of(t));
}

void window_reset(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        if (e->owner == (int32_t) i)
                e->owner = -1;
        window_set_state(t, t->policy.gated ? ENGINE_CLOSING : ENGINE_CLOSED);
        t->window.ignore_backlog = false;
        t->window.gated = t->policy.gated;
        t->window.closes = e->now;
        t->overrun_since = 0;
        begin(t, e->now, e->now);
}

/* ---- the cost ---- */

void window_charge(Engine *e, EngineTenant *t, int64_t ns) {
        account_charge(&t->account, &t->policy, ns, e->virtual_clocks[t->policy.high]);
        t->window.used = ns < 0 ? since((uint64_t) -ns, t->window.used) : t->window.used + (uint64_t) ns;
}

/* A switch from another tenant, and a start that is late by no more than that, is not held time. */
static uint64_t start_of(const EngineTenant *t) {
        uint64_t begins = max_u64(t->begins, min_u64(t->report.first_launch, t->begins + SWITCH_NS));

        return t->begins > t->opened ? max_u64(begins, t->begins + SWITCH_NS) : begins;
}

/* A report of hardly any work is not credible, nor is that the tenant was idle. Reports of several
 * processes count the same time more than once, so there the time held is the most. */
static uint64_t cost_of(const EngineTenant *t, uint64_t end) {
        uint64_t busy = since(t->busy_before, t->report.busy), unheld = t->idle_time + t->shared,
                 held = since(start_of(t) + unheld, end),
                 most = t->report.n_rows > 1 ? held : since(t->begins + unheld, end),
                 slack = max_u64(SWITCH_NS, min_u64(UNUSED_SLACK_NS, held / CREDIBLE_PART)) + t->late;

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

/* The card is free for the next window, if that has not begun beside this one already. */
static void free_card(Engine *e, uint64_t end) {
        EngineTenant *o = e->owner >= 0 ? &e->tenants[e->owner] : NULL;

        if (o)
                o->begins = max_u64(
                        o->begins,
                        window_is_used(o) ? min_u64(end, max_u64(o->opened, o->report.first_launch)) : end);
}

static void note_use(EngineTenant *t, uint64_t now) {
        if (window_is_used(t) || (t->until != 0 && !wants(t))) {
                t->n_empty = 0;
                return;
        }
        t->n_empty += t->n_empty < 10;
        if (t->n_empty > EMPTY_FORGIVEN)
                t->backoff_until =
                        now + min_u64(MAX_BACKOFF_NS, EMPTY_BACKOFF_NS << (t->n_empty - EMPTY_FORGIVEN));
}

static void finish(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t end = t->report.drained_at != 0 ? max_u64(t->report.drained_at, t->window.closes) : now;

        if (t->report.n_rows <= 1) /* what it used says when it was over, too */
                end = max_u64(end, t->begins + t->idle_time + since(t->busy_before, t->report.busy));
        end = min_u64(end, now);
        if (t->idle_since != 0)
                end = min_u64(end, t->window.closes);
        t->tail = (7 * t->tail + min_u64(since(t->window.closes, end), MAX_DRAIN_NS)) / 8;
        free_card(e, end);
        window_settle(e, t, end);
        window_charge(e, t,
                      (int64_t) min_u64(SWITCH_CHARGE_NS, t->charged / 256)); /* so that equals take turns */
        note_use(t, now);
        t->charged = since(since(t->busy_before, t->report.busy), t->charged);
        t->begins = end;
        t->overrun_since = 0;
        window_set_state(t, ENGINE_CLOSED);
}

/* Events that are read after the end: charged as far as the window has not covered them, and no
 * more than the time since. */
void window_late_report(Engine *e, EngineTenant *t, uint64_t more, uint64_t now) {
        uint64_t covered = min_u64(more, t->charged), late = min_u64(more - covered, since(t->begins, now));

        t->charged -= covered;
        t->begins += late;
        window_charge(e, t, (int64_t) late);
}

/* ---- overruns ---- */

/* Others go on beside it. What it had is charged; what it still has, when it has ended. */
static void overrun(Engine *e, EngineTenant *t, uint64_t now) {
        window_settle(e, t, now);
        t->charged = t->held = 0;
        if (t->overrun_since == 0)
                t->overrun_since = t->window.closes;
        t->busy_before = t->report.busy;
        window_set_state(t, ENGINE_OVERRUN);
}

/* A process that was stopped cannot be told from one whose kernel goes on, so without a report each
 * context is charged for the longest kernel that is legitimate. */
void window_charge_overrun(Engine *e, EngineTenant *t, uint64_t ns, uint64_t contexts) {
        uint64_t most = max_u64(since(t->busy_before, t->report.busy), contexts * ACCOUNT_DEBT_NS);

        t->held += ns;
        ns = min_u64(ns, since(t->charged, most));
        t->charged += ns;
        window_charge(e, t, (int64_t) ns);
}

/* Tenants that had a window beside it have paid for what it had. */
static void pay_back(Engine *e, uint64_t had) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < e->n; i++)
                sum += e->tenants[i].beside;
        for (uint32_t i = 0; i < e->n && sum > 0; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t part =
                        min_u64(o->beside, (uint64_t) ((double) had * (double) o->beside / (double) sum));

                o->beside -= part;
                o->window.used -= min_u64(part, o->window.used);
                account_refund(&o->account, &o->policy, (int64_t) part);
        }
}

/* A kernel of it has ended, so its report can be believed. Of more than MAX_ROW_BUSY_NS no more is
 * read. */
static void settle_overrun(Engine *e, EngineTenant *t) {
        uint64_t busy = since(t->busy_before, t->report.busy),
                 had = busy < MAX_ROW_BUSY_NS ? min_u64(busy, t->held) : t->held;

        window_charge(e, t, (int64_t) since(t->charged, had));
        pay_back(e, had);
        t->charged = since(had, t->charged);
        t->held -= had;
        t->busy_before = t->report.busy;
}

/* What it reports later may have been within the time that it was not charged for. */
static void end_overrun(EngineTenant *t, uint64_t now) {
        t->begins = now - since(t->charged, t->held);
        t->told_at = t->overrun_since = 0;
        window_set_state(t, ENGINE_CLOSED);
}

/* Another tenant waits for it, or another card of its set; or it has to be reported, whoever waits. */
static bool is_in_the_way(const Engine *e, const EngineTenant *t, uint64_t now) {
        if (since(t->window.closes, now) >= e->overrun_limit || t->report.waiter || t->until != 0)
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
                finish(e, t, now);
        else if (t->state == ENGINE_CLOSING && now >= window_drain_deadline(t) && is_in_the_way(e, t, now))
                overrun(e, t, now);
        if (window_is_overrun(t) && t->report.busy > t->busy_before)
                settle_overrun(e, t);
        if (t->state == ENGINE_OVERRUN && window_is_drained(t))
                end_overrun(t, now);
}

/* ---- closing ---- */

void window_close(Engine *e, uint32_t i, uint64_t now) {
        EngineTenant *t = &e->tenants[i];

        window_set_state(t, t->window.ignore_backlog ? ENGINE_OVERRUN : ENGINE_CLOSING);
        t->window.ignore_backlog = false;
        t->window.closes = min_u64(t->window.closes, now);
        if (t->until == 0)
                t->progress_at = now;
        e->owner = -1;
        if (t->until != 0 && t->overrun_since != 0) /* it was late before, and is not waited for again */
                overrun(e, t, now);
}
