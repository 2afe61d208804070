/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/advance.h"

#include "arbiter/attribute.h"
#include "arbiter/overrun.h"
#include "arbiter/window.h"
#include "arbiter/window_end.h"

/* Its work keeps the card from the others, for longer than a window. */
static bool stalls(const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_CLOSING && now > t->window.closes + QUANTUM_NS;
}

static unsigned count_stalling(const Engine *e, uint64_t now) {
        unsigned n = 0;

        for (uint32_t i = 0; i < e->n; i++)
                n += stalls(&e->tenants[i], now);
        return n;
}

/* A window is open in which something is done, or goes on behind its end. */
static bool is_running(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING) && !is_resting(t);
}

static bool is_taken(const Engine *e) {
        return (e->owner >= 0 && is_running(&e->tenants[e->owner])) || engine_is_closing(e);
}

/* What goes from one window to the next is lost for all, and by all alike. */
static bool is_overcommitted(const Engine *e) {
        bool any = false;

        if (!is_taken(e))
                return false;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_FREE || !t->policy.gated || t->policy.conserving || !t->active)
                        continue;
                if (account_lag(&t->account, &t->policy) < ACCOUNT_SATURATED_NS)
                        return false;
                any = true;
        }
        return any;
}

static void wake_or_sleep(Engine *e, EngineTenant *t, uint64_t now) {
        if (!wants(t) || is_resting(t))
                t->brief_idle_until = now + BRIEF_IDLE_NS;
        if (wants(t)) {
                if (!t->active)
                        account_wake(&t->account, &t->policy, virtual_clock(e, &t->policy));
                t->active = true;
                t->active_until = now + ACTIVE_GRACE_NS;
                if (t->policy.high)
                        e->high_until = now + HIGH_RECENT_NS;
        } else if (now >= t->active_until && t->state == ENGINE_CLOSED) {
                t->active = false;
                t->n_empty = 0;
                t->backoff_until = 0;
        }
}

/* Late: nobody looked at windows that were to be looked at. Their owners are not charged for it. */
void advance_time(Engine *e, uint64_t now) {
        uint64_t passed = now - e->now, late = since(e->next_step + STEP_TOLERANCE_NS, now);
        unsigned stalling = count_stalling(e, now);
        bool full = is_overcommitted(e);

        attribute_time(e, now);
        overrun_advance(e, passed, now, is_taken(e));
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                AccountTime how = stalling > stalls(t, now) ? ACCOUNT_STALLED : ACCOUNT_WANTS;

                if (t->state == ENGINE_FREE)
                        continue;
                if (!full || !t->active)
                        account_advance(&t->account, &t->policy, passed, t->active ? how : ACCOUNT_IDLE);
                if (is_resting(t))
                        t->idle_time += passed;
                else if (is_running(t)) /* by our clock alone, whatever he says */
                        t->window.granted += since(e->now, min_u64(now, window_end_noticed(t, now)));
                if (t->state != ENGINE_CLOSED && !is_resting(t))
                        t->arbiter_late += min_u64(late, since(t->opened, now));
                wake_or_sleep(e, t, now);
        }
        e->now = now;
}

/* What was used meanwhile is what one may use without an arbiter, so nobody pays for it, and nobody
 * earns. There may be work of all of them on the card, as for a new arbiter: who has none says so
 * at once. A kernel that does not end goes on not ending. */
void advance_absence(Engine *e, uint64_t now) {
        uint64_t away = now - e->now;

        e->now = now;
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_FREE)
                        continue;
                if (t->state == ENGINE_OVERRUN)
                        t->arbiter_late += away;
                else
                        window_reset(e, i);
                wake_or_sleep(e, t, now);
        }
}
