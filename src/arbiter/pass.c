/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/pass.h"

#include "arbiter/overdue.h"
#include "arbiter/split.h"
#include "arbiter/until.h"

#define ON_TIME UINT64_C(200000) /* ns: nobody is called to the microsecond */
/* ns: who had nothing to do within that time needs no more than half of a window's tokens. */
#define BRIEF  UINT64_C(50000000)
#define RECENT UINT64_C(1000000000) /* ns: who comes first comes again so soon */

/* Its work keeps the card from the others, for longer than a window. */
static bool stalls(const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_CLOSING && now > t->turn.closes + ENGINE_QUANTUM;
}

static unsigned count_stalling(const Engine *e, uint64_t now) {
        unsigned n = 0;

        for (uint32_t i = 0; i < e->n; i++)
                n += stalls(&e->tenants[i], now);
        return n;
}

/* A window is open in which something is done, or goes on behind its end. */
static bool is_running(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING) && !rests(t);
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

                if (t->state == ENGINE_FREE || !t->terms.gated || t->terms.conserving || !t->awake)
                        continue;
                if (account_lag(&t->account, &t->terms) < ACCOUNT_FULL)
                        return false;
                any = true;
        }
        return any;
}

static void wake_or_sleep(Engine *e, EngineTenant *t, uint64_t now) {
        if (!wants(t) || rests(t))
                t->brief_until = now + BRIEF;
        if (wants(t)) {
                if (!t->awake)
                        account_wake(&t->account, &t->terms, clock_of(e, &t->terms));
                t->awake = true;
                t->active_until = now + GRACE;
                if (t->terms.high)
                        e->high_until = now + RECENT;
        } else if (now >= t->active_until && t->state == ENGINE_CLOSED) {
                t->awake = false;
                t->empty = 0;
                t->paused_until = 0;
        }
}

/* Late: nobody looked at windows that were to be looked at. Their owners are not charged for it. */
void pass_time(Engine *e, uint64_t now) {
        uint64_t passed = now - e->now, late = since(e->asked + ON_TIME, now);
        unsigned stalling = count_stalling(e, now);
        bool full = is_overcommitted(e);

        split_time(e, now);
        overdue_pass(e, passed, now, is_taken(e));
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                AccountTime how = stalling > stalls(t, now) ? ACCOUNT_STALLED : ACCOUNT_WANTS;

                if (t->state == ENGINE_FREE)
                        continue;
                if (!full || !t->awake)
                        account_pass(&t->account, &t->terms, passed, t->awake ? how : ACCOUNT_IDLE);
                if (rests(t))
                        t->rested += passed;
                else if (is_running(t)) /* by our clock alone, whatever he says */
                        t->turn.granted += since(e->now, min_u64(now, until_over(t, now)));
                if (t->state != ENGINE_CLOSED && !rests(t))
                        t->late += min_u64(late, since(t->opened, now));
                wake_or_sleep(e, t, now);
        }
        e->now = now;
}

/* What was used meanwhile is what one may use without an arbiter, so nobody pays for it, and nobody
 * earns. There may be work of all of them on the card, as for a new arbiter: who has none says so
 * at once. A kernel that does not end goes on not ending. */
void pass_absence(Engine *e, uint64_t now) {
        uint64_t away = now - e->now;

        e->now = now;
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_FREE)
                        continue;
                if (t->state == ENGINE_OVERDUE)
                        t->late += away;
                else
                        engine_hold_or_let_go(e, i);
                wake_or_sleep(e, t, now);
        }
}
