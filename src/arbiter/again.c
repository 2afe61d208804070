/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/again.h"

#include "arbiter/owner.h"
#include "arbiter/until.h"

#define LOOK UINT64_C(500000)  /* ns between looks at one who idles */
#define LOST UINT64_C(1000000) /* ns: the bell of a window's end has not come by then: it does not */

/* The bell tells, and this is for bells that do not come. */
static uint64_t without_bell(const EngineTenant *t, uint64_t now, bool haste) {
        uint64_t first = t->turn.closes + t->tail + (haste ? 3 * HOP : LOST);
        uint64_t again = now + HOP + since(t->turn.closes, now) / (haste ? 4 : 2);

        return until_waited(t) > now ? min_u64(until_waited(t), max_u64(first, again)) : again;
}

/* Whoever has work again rings, and so does anybody else who wants the card. */
static uint64_t after_rest(const Engine *e, const EngineTenant *t, int waiting, uint64_t now) {
        uint64_t gone = t->idle_since + gap_of(t), ripe = engine_ripens(e, AMONG_CLOSING, now);

        if (waiting >= 0) /* later there is still one before that one to wait for */
                return min_u64(t->turn.closes, gone > now ? gone : now + LOOK);
        return min_u64(t->turn.closes, max_u64(max_u64(ripe, gone), now + LEAD / 4));
}

static uint64_t after_owner(const Engine *e, uint64_t now) {
        const EngineTenant *t = &e->tenants[e->owner];
        int waiting = engine_choose(e, AMONG_CLOSING, now);
        uint64_t closes = t->turn.closes, ripe = engine_ripens(e, AMONG_CLOSING, now),
                 end = closes + since(owner_lead(e, waiting), min_u64(t->tail, t->turn.rest));
        uint64_t next = max_u64(max_u64(end, waiting < 0 ? ripe : 0), now + LEAD / 4);

        if (waiting < 0) /* who has drained by then has rung */
                next = min_u64(next, without_bell(t, now, true));

        if (rests(t) || (t->turn.alone && t->says.idle != 0))
                return after_rest(e, t, waiting, now);
        if (!owner_stands_still(e, t, now) && engine_keeps(e, t, waiting, since(now, closes)))
                next = since(owner_margin(e, waiting), closes);
        if (ripe > now && t->firm < closes) /* it goes on only as long as nobody waits */
                next = min_u64(next, max_u64(ripe, t->firm));
        if (t->began == 0 && t->lag > 2 * HOP && now < t->opened + t->lag / 2)
                next = min_u64(next,
                               t->opened + t->lag / 2); /* who says that he is late has nothing in flight */
        if ((t->idles && !t->turn.alone) || (t->empty > 0 && t->says.busy == t->busy))
                next = min_u64(next, now + LOOK);
        return next;
}

static uint64_t after_closing(const Engine *e, const EngineTenant *t, uint64_t now) {
        uint64_t deadline = until_waited(t), end = since(engine_longest_lead(e), until_end(t, now)),
                 ripe = engine_ripens(e, AMONG_CLOSED, now);
        int next = engine_choose(e, AMONG_CLOSED, now);

        if (deadline <= now)
                deadline = UINT64_MAX; /* nobody waits for its end, so it may take as long as it does */
        if (e->owner >= 0)             /* seen with the end of the other one's */
                return deadline;
        if (ripe > now) /* nobody may have one yet */
                return min_u64(without_bell(t, now, false), max_u64(ripe, end));
        if (end <= now && next >= 0 && t->says.n_active == 1) /* one process's word is good enough */
                end = since(engine_lead(&e->tenants[next]), until_end(t, now));
        if (end > now)
                return min_u64(deadline, end);
        return min_u64(deadline, now + LEAD / 2 + since(t->turn.closes, now) / 8);
}

uint64_t again_at(const Engine *e, uint64_t now) {
        uint64_t next = now + min_u64(e->hung, ENGINE_HUNG);

        if (e->owner >= 0)
                next = after_owner(e, now);
        else if (!engine_is_closing(e))
                next = min_u64(next, max_u64(engine_ripens(e, AMONG_CLOSED, now), now + LEAD / 4));
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (t->state == ENGINE_CLOSING)
                        next = min_u64(next, after_closing(e, t, now));
                else if (t->state == ENGINE_OVERDUE)
                        next = min_u64(next, now + min_u64(LOOK + since(t->overdue.since, now) / 8,
                                                           t->says.waits ? TIED_NEXT : UINT64_MAX));
        }
        return max_u64(next, now + 1);
}
