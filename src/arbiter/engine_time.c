/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/engine_time.h"

#include "arbiter/pick.h"
#include "arbiter/window.h"

static bool is_active(const EngineTenant *t, uint64_t now) {
        return wants(t) || now < t->active_until;
}

/* Whether work of a closed window keeps the card for longer than a quantum. */
static bool delays_others(const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_CLOSING && now > t->window.closes + QUANTUM_NS;
}

/* A joined window stays open while its tenant idles, because those on the other cards do. Counts
 * only while another tenant waits. */
static bool is_idle_joined(const Engine *e, const EngineTenant *t) {
        return t->state == ENGINE_OPEN && t->idle_since != 0 && t->planned_end != 0 &&
               pick_next(e, t, false, e->now) >= 0;
}

static bool is_using(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN && t->idle_since == 0) || t->state == ENGINE_CLOSING;
}

/* Contexts of the tenant's work in OVERRUN. Reported work (a kernel that hangs, or a stopped
 * process) may not run at all, so it takes no time from other tenants: 0, unless `itself` is
 * set. */
static uint64_t overrun_contexts(const Engine *e, const EngineTenant *t, uint64_t now, bool itself) {
        if (t->state != ENGINE_OVERRUN)
                return 0;
        return itself || since(max_u64(t->overrun_since, t->progress_at), now) < e->overrun_limit
                       ? window_contexts(t)
                       : 0;
}

/* Divides the time that passed. Two windows that overlap get half each. Work in OVERRUN shares the
 * card with a window by number of contexts. The window is charged in full, and refunded once the
 * work in OVERRUN has ended and reported its time: its process may have been stopped. Time beside
 * work in OVERRUN also counts as granted to that work's tenant. */
static void divide_time(Engine *e, uint64_t passed, uint64_t now) {
        uint64_t windows = 0, running = 0, beside = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                bool runs = is_using(t) && window_is_used(t);

                windows += runs;
                running += runs ? window_contexts(t) : 0;
                beside += overrun_contexts(e, t, now, false);
        }
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                uint64_t own = overrun_contexts(e, t, now, true), known = overrun_contexts(e, t, now, false),
                         all = max_u64(1, beside + running + own - known);

                if (own > 0)
                        window_charge_overrun(e, t, passed * own / all, own);
                t->window.granted += known > 0 && t->report.in_flight > 0 ? passed : 0;
                if (is_using(t) && window_is_used(t)) {
                        t->shared += windows > 1 ? passed - passed / windows : 0;
                        t->charged_beside += passed * beside / max_u64(1, beside + running);
                }
                if (beside == 0)
                        t->charged_beside = 0;
        }
}

/* Notes that the tenant has work, and that it was idle before. */
static void note_active(Engine *e, EngineTenant *t, uint64_t now) {
        if (!wants(t))
                return;
        if (e->now >= t->active_until) /* it was idle at the last step */
                account_wake(&t->account, &t->policy, e->virtual_clocks[t->policy.high]);
        t->active_until = now + ACTIVE_GRACE_NS;
        if (t->policy.high)
                e->high_until = now + HIGH_RECENT_NS;
}

/* Whether another tenant had a window, or waited for one. */
static bool is_contended(const Engine *e, const EngineTenant *t) {
        if (t->state == ENGINE_CLOSING && e->owner >= 0)
                return true;
        return pick_next(e, t, true, e->now) >= 0;
}

/* A card that idles for a joined set while another tenant waits is charged to the set's tenant. */
static void charge_set_tenant(Engine *e, uint64_t passed) {
        EngineTenant *t = &e->tenants[e->set_tenant];

        if (e->idle_for_set_since == 0 || e->owner >= 0 || window_any_closing(e) || t->state == ENGINE_FREE ||
            pick_next(e, t, false, e->now) < 0)
                return;
        account_charge(&t->account, &t->policy, (int64_t) passed, e->virtual_clocks[t->policy.high]);
}

void engine_time_charge(Engine *e, uint64_t now) {
        uint64_t passed = now - e->now;
        unsigned stalling = 0;

        for (uint32_t i = 0; i < e->n; i++)
                stalling += delays_others(&e->tenants[i], now);
        divide_time(e, passed, now);
        charge_set_tenant(e, passed);
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                AccountTime how = !is_active(t, now)                 ? ACCOUNT_IDLE
                                  : stalling > delays_others(t, now) ? ACCOUNT_STALLED
                                                                     : ACCOUNT_WANTS;

                if (t->state == ENGINE_FREE)
                        continue;
                account_advance(&t->account, &t->policy, passed, how);
                if (t->state == ENGINE_OPEN && t->idle_since != 0 && !is_idle_joined(e, t))
                        t->idle_time += since(t->newly_used, passed);
                else if (is_using(t) || is_idle_joined(e, t)) {
                        t->window.granted += passed;
                        t->contended += is_contended(e, t) ? passed : 0;
                        window_settle(e, t, now);
                }
                t->newly_used = 0;
                note_active(e, t, now);
        }
        e->now = now;
}

void engine_time_skip(Engine *e, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state != ENGINE_FREE)
                        note_active(e, &e->tenants[i], now);
        e->now = now;
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state != ENGINE_FREE && e->tenants[i].state != ENGINE_OVERRUN)
                        window_reset(e, i);
}
