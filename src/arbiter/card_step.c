/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/card_step.h"

#include "arbiter/tunables.h"

/* ---- tenants ---- */

bool card_step_add(ArbiterCard *c, ArbiterTenant *t, uint64_t now) {
        TenantPolicy policy = tenant_policy(&t->channel.compute, &t->channel.request);
        const SliceSchedule *schedule = &t->channel.limits->schedule;
        TenantReport report;
        EngineWindow *window;
        int tenant;

        t->channel.window.number = atomic_load_explicit(&schedule->window, memory_order_relaxed) >> 1;
        tenant = engine_add(&c->engine, now, &policy, t->channel.window.number,
                            atomic_load_explicit(&schedule->seen, memory_order_relaxed) != 0);
        if (tenant < 0)
                return false;
        t->tenant = (uint32_t) tenant;
        window = &c->engine.tenants[tenant].window; /* continues the sums of the previous arbiter */
        window->granted = atomic_load_explicit(&schedule->granted, memory_order_relaxed);
        window->used = atomic_load_explicit(&schedule->used, memory_order_relaxed);
        c->tenants[c->n++] = t;
        c->next = 0;
        slice_channel_read(&t->channel, now, true, true, &report);
        engine_report(&c->engine, now, t->tenant, &report);
        return true;
}

void card_step_remove(ArbiterCard *c, const ArbiterTenant *t) {
        engine_remove(&c->engine, t->tenant);
        for (uint32_t i = 0; i < c->n; i++)
                if (c->tenants[i] == t) {
                        c->tenants[i] = c->tenants[--c->n];
                        return;
                }
}

/* ---- a step ---- */

/* A tenant with late work, or one that does not use its windows, may have ended. */
static bool needs_liveness_check(const EngineTenant *t, const SliceChannel *s, uint64_t now) {
        bool silent = (t->state == ENGINE_CLOSING && now > t->window.closes + LIVENESS_SILENT_NS) ||
                      t->state == ENGINE_OVERRUN || t->n_empty > 0;

        return now - s->liveness_at >= (silent ? LIVENESS_SILENT_NS : LIVENESS_ALL_NS);
}

/* How long after the last sweep all rows are read again, ns. */
static uint64_t sweep_after(const ArbiterTenant *p, const EngineTenant *t) {
        if (p->rung || p->needs_sweep)
                return SWEEP_RUNG_NS;
        return t->report.want_since != 0 ? SWEEP_BUSY_NS : SWEEP_IDLE_NS;
}

static void read_report(Engine *e, ArbiterTenant *p, uint64_t now) {
        const EngineTenant *t = &e->tenants[p->tenant];
        bool all = now - p->channel.swept_at >= sweep_after(p, t);
        TenantReport report;

        if (!p->rung && !all && !engine_needs_report(e, p->tenant, now))
                return;
        slice_channel_read(&p->channel, now, all, needs_liveness_check(t, &p->channel, now), &report);
        p->needs_sweep = !all && (p->rung || p->needs_sweep) && report.want_since == 0;
        p->rung = false;
        engine_report(e, now, p->tenant, &report);
}

static bool has_changed(const EngineWindow *a, const EngineWindow *b) {
        return a->gated != b->gated || a->open != b->open || a->number != b->number ||
               (a->open && (a->closes != b->closes || a->depth != b->depth));
}

/* Writes the pages whose window is open, or those whose window is not. Closed windows are written
 * first, so no two pages show an open window at the same time. A page's heartbeat is refreshed when
 * it is older than the limit. */
static void write_windows_of(ArbiterCard *c, uint64_t now, bool heartbeat, bool open) {
        uint64_t old = heartbeat ? HEARTBEAT_NS / 2 : HEARTBEAT_NS * 3 / 2;

        for (uint32_t i = 0; i < c->n; i++) {
                ArbiterTenant *p = c->tenants[i];
                const EngineWindow *window = &c->engine.tenants[p->tenant].window;

                if (window->open != open ||
                    (!has_changed(window, &p->channel.window) && now - p->channel.written_at < old))
                        continue;
                slice_channel_write(&p->channel, window, now);
        }
}

static void advance(ArbiterCard *c, uint64_t now) {
        for (uint32_t i = 0; i < c->n; i++)
                read_report(&c->engine, c->tenants[i], now);
        engine_advance(&c->engine, now);
}

static void decide(ArbiterCard *c, uint64_t now, bool heartbeat) {
        c->next = engine_decide(&c->engine, now);
        write_windows_of(c, now, heartbeat, false);
        write_windows_of(c, now, heartbeat, true);
        for (uint32_t i = 0; i < c->n; i++) {
                const ArbiterTenant *p = c->tenants[i];

                if (p->rung)
                        c->next = now;
                else if (p->needs_sweep && p->channel.swept_at + SWEEP_RUNG_NS < c->next)
                        c->next = p->channel.swept_at + SWEEP_RUNG_NS;
        }
}

void card_step(ArbiterCard *c, uint64_t now, bool heartbeat) {
        advance(c, now);
        decide(c, now, heartbeat);
}

void card_step_all(ArbiterCard *const cards[], uint32_t n, Joined *j, uint64_t now, bool heartbeat,
                   bool stepped[]) {
        Engine *engines[JOINED_CARDS] = {NULL};

        for (uint32_t i = 0; i < n; i++) {
                engines[i] = &cards[i]->engine;
                stepped[i] = heartbeat || now >= cards[i]->next || joined_is_due(j, engines[i], now);
                if (stepped[i])
                        advance(cards[i], now);
        }
        joined_plan(j, engines, n, now);
        for (uint32_t i = 0; i < n; i++) {
                if (!stepped[i] && engines[i]->planned)
                        advance(cards[i], now);
                stepped[i] |= engines[i]->planned;
                if (stepped[i])
                        decide(cards[i], now, heartbeat);
        }
}
