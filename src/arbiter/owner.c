/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/owner.h"

#include "arbiter/until.h"
#include "arbiter/window.h"

#define MARGIN UINT64_C(400000)  /* ns before a window closes it is said whether it goes on */
#define ABSENT UINT64_C(3000000) /* ns: who has done nothing with his window by then does nothing with it */
#define STILL  UINT64_C(2000000000) /* ns without a word from who has work in flight */

/* It goes on, or its window is over all the same. Where another one is kept from the card meanwhile
 * it is charged for a short rest. */
static void end_rest(EngineTenant *t, int waiting) {
        uint64_t held;

        if (t->idle_since == 0)
                return;
        held = waiting >= 0 ? min_u64(t->rested - t->rested_before, GAP) : 0;
        t->part.had += held;
        t->rested -= held;
        t->idle_since = 0;
}

/* For longer than it takes to launch the next kernel when one has ended. Of who comes first a pause
 * that was seen and another one after the next kernel are two, and he keeps the card; of others
 * they may be taken for one, so that tiny kernels with pauses do not keep it for long. */
static bool is_idle(Engine *e, EngineTenant *t, int waiting, uint64_t now) {
        uint64_t from = t->says.idle != 0 ? min_u64(max_u64(t->says.idle, t->opened), now) : now;

        if (wants(t) || t->says.in_flight > 0 || t->said < t->opened) {
                end_rest(t, waiting);
                return false;
        }
        if (t->terms.high && t->pauses_from > t->idle_since)
                end_rest(t, waiting);
        if (t->idle_since == 0 && t->says.idle != 0 && t->turn.alone && waiting < 0)
                return now - from >= gap_of(t); /* it writes that down: window_hears() */
        if (t->idle_since == 0) {
                t->idle_since = from;
                window_rests(e, t, now);
        }
        return now - t->idle_since >= gap_of(t);
}

/* It was let in, and does nothing. */
static bool is_absent(const EngineTenant *t, uint64_t now) {
        return since(t->opened, now) >= ABSENT && t->said > t->opened && !has_come(t);
}

/* A launch waits for room in it, and may be what those wait for that are in flight. */
static bool is_stuck_in(const EngineTenant *t, uint64_t now) {
        return !t->turn.behind && t->terms.gated && t->says.in_flight > 0 && now >= engine_behind_from(t) &&
               since(t->opened, now) >= TIED_FIRST;
}

bool owner_stands_still(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->says.in_flight > 0 && since(max_u64(t->alive, t->opened), now) >= min_u64(STILL, e->hung);
}

static bool may_go_on(const EngineTenant *t, uint64_t now) {
        return now + HOP / 2 < t->turn.closes; /* later it has closed by itself, or might have */
}

uint64_t owner_lead(const Engine *e, int next) {
        return next >= 0 ? engine_lead(&e->tenants[next]) : engine_longest_lead(e);
}

uint64_t owner_margin(const Engine *e, int next) {
        return MARGIN + owner_lead(e, next) - LEAD;
}

void owner_tend(Engine *e, uint64_t now) {
        uint32_t i = (uint32_t) e->owner;
        EngineTenant *t = &e->tenants[i];
        int waiting = engine_choose(e, AMONG_CLOSED, now);
        bool idle, keeps;

        window_hears(e, t, now);
        idle = is_idle(e, t, waiting, now) || (waiting >= 0 && is_absent(t, now));
        if (t->says.ended && may_go_on(t, now))
                window_renew(e, i);
        t->idles = idle || (t->idles && now < t->turn.closes);
        keeps = t->terms.gated && !idle && !t->turn.behind && !is_absent(t, now) &&
                !owner_stands_still(e, t, now) && engine_keeps(e, t, waiting, 0);
        if (is_stuck_in(t, now)) {
                window_close(e, i, now);
                return;
        }
        if (idle && waiting >= 0) {
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps &&
            (now >= t->firm || (e->tenants[waiting].terms.high && !t->terms.high) ||
             (t->lent && engine_reclaims(&e->tenants[waiting], t)))) {
                end_rest(t, waiting);
                window_close(e, i, now);
                return;
        }
        if (waiting >= 0 && !keeps)
                t->turn.closes = min_u64(t->turn.closes, t->firm);
        if (keeps && may_go_on(t, now) && now + owner_margin(e, waiting) >= t->turn.closes)
                window_extend(e, i, now, waiting >= 0);
        if (now < t->turn.closes)
                return;
        end_rest(t, waiting);
        window_close(e, i, now);
}

/* ---- the next one ---- */

/* Beside a window that is about to end: what is left of it keeps the card busy while the next one's
 * owner gets the word. */
static bool may_open(const Engine *e, uint64_t now, const EngineTenant *next) {
        uint64_t lead = engine_lead(next);
        bool high = next->terms.high;
        unsigned closing = 0;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state != ENGINE_CLOSING)
                        continue;
                if (!high &&
                    (now + lead + HOP / 5 < until_end(t, now) || t->said < t->turn.closes || ++closing > 1))
                        return false;
        }
        return true;
}

void owner_next(Engine *e, uint64_t now) {
        int i = engine_choose(e, AMONG_CLOSED, now), second;

        if (i < 0 || !may_open(e, now, &e->tenants[i]))
                return;
        e->tenants[i].turn.behind = e->tenants[i].state == ENGINE_OVERDUE;
        e->tenants[i].state = ENGINE_OPEN; /* to see who else waits */
        second = engine_choose(e, AMONG_CLOSING, now);
        window_open(e, (uint32_t) i, now,
                    second >= 0 || engine_ripens(e, AMONG_CLOSING, now) < now + ENGINE_QUANTUM);
}
