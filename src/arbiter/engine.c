/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/engine.h"

#include <string.h>

#include "arbiter/again.h"
#include "arbiter/hung.h"
#include "arbiter/owner.h"
#include "arbiter/pass.h"
#include "arbiter/split.h"
#include "arbiter/window.h"

/* ---- tenants ---- */

void engine_init(Engine *e, uint64_t now) {
        memset(e, 0, sizeof *e);
        e->owner = -1;
        e->now = e->asked = now;
        e->overhead = 2 * HOP;
        e->hung = ENGINE_HUNG;
}

int engine_add(Engine *e, uint64_t now, const Terms *terms, uint32_t number, bool open) {
        uint32_t i = 0;
        EngineTenant *t;

        while (i < e->n && e->tenants[i].state != ENGINE_FREE)
                i++;
        if (i == ENGINE_TENANTS)
                return -1;
        e->n += i == e->n;
        t = &e->tenants[i];
        *t = (EngineTenant){
                .state = open ? ENGINE_CLOSING : ENGINE_CLOSED,
                .terms = *terms,
                .says = {.drained = !open},
                .turn = {.gated = terms->gated, .number = number & (UINT32_MAX >> 1), .closes = now},
                .opened = now,
                .from = now,
                .over = now,
                .apart_over = now,
                .alive = now,
                .mercy = MERCY,
                .patience = PATIENCE};
        account_init(&t->account, terms, clock_of(e, terms));
        return (int) i;
}

void engine_hold_or_let_go(Engine *e, uint32_t i) {
        EngineTenant *t = &e->tenants[i];

        if (e->owner == (int32_t) i)
                e->owner = -1;
        t->state = t->terms.gated ? ENGINE_CLOSING : ENGINE_CLOSED;
        t->turn.open = t->turn.behind = false;
        t->turn.number = (t->turn.number + 1) & (UINT32_MAX >> 1);
        t->turn.closes = t->opened = t->from = e->now;
        t->busy = t->says.busy;
        t->paid = t->late = t->doubt = t->began = t->idle_since = t->rested = t->n_rests = 0;
        t->part = (Part){0};
        t->unseen = t->says.unseen;
        t->settled = t->says.busy;
        t->over = e->now;
        t->turn.gated = t->terms.gated;
}

void engine_set(Engine *e, uint32_t i, const Terms *terms) {
        EngineTenant *t = &e->tenants[i];
        Terms before = t->terms;

        t->terms = *terms;
        if (terms->gated != t->turn.gated)
                engine_hold_or_let_go(e, i);
        if (terms->conserving != before.conserving || terms->high != before.high)
                account_convert(&t->account, terms, clock_of(e, terms));
        else if (terms->weight != before.weight)
                account_weigh_anew(&t->account, &before, terms, clock_of(e, terms));
}

void engine_remove(Engine *e, uint32_t i) {
        if (e->owner == (int32_t) i)
                e->owner = -1;
        e->tenants[i] = (EngineTenant){.state = ENGINE_FREE};
        while (e->n > 0 && e->tenants[e->n - 1].state == ENGINE_FREE)
                e->n--;
}

/* Who has work in flight and has not begun, or will, began when he could. */
static void note_begin(EngineTenant *t, const EngineSays *says) {
        uint64_t began = says->began;

        if (began == 0 && says->in_flight > 0)
                began = t->opened;
        if (began != 0 && (t->began == 0 || began < t->began))
                t->began = max_u64(t->opened, began);
}

/* Of processes that were silent beside its windows, all of them no more than there was time for;
 * and of one that is no more, nothing is to be told. */
static void note_apart(const Engine *e, EngineTenant *t, const EngineSays *says, uint64_t now) {
        uint64_t from = max_u64(t->apart_over, t->says.stuck),
                 more = min_u64(since(t->says.apart, says->apart), since(from, now));

        t->apart_over = from + more;
        account_charge(&t->account, &t->terms, (int64_t) more, clock_of(e, &t->terms));
        t->turn.used += more;
        if (says->stuck == 0 && !is_overdue(t))
                t->told = false;
}

static void learn_pause(EngineTenant *t, uint64_t ns) {
        t->pause = (7 * t->pause + min_u64(ns, GAP)) / 8;
}

/* How long it has nothing to do between its kernels or requests; of a long pause it counts that it
 * was one. Who has launched something and pauses again does so anew: nobody has looked when the
 * pause before was over. */
static void note_pause(EngineTenant *t, const EngineSays *says, uint64_t now) {
        bool anew = t->pauses_from == 0 || says->launched != t->says.launched;

        if (says->wants != 0) {
                if (t->pauses_from != 0)
                        learn_pause(t, since(t->pauses_from, min_u64(says->wants, now)));
                t->pauses_from = 0;
        } else if (says->in_flight == 0 && anew) {
                if (t->pauses_from != 0)
                        learn_pause(t, since(t->pauses_from, now) / 2);
                t->pauses_from = says->idle != 0 ? says->idle : now;
        }
}

/* Nobody has looked for so long that the gates kept to their percentages by themselves. */
static bool was_away(const Engine *e, uint64_t now) {
        return since(e->now, now) > SCHED_STALE_NSEC;
}

void engine_says(Engine *e, uint64_t now, uint32_t i, const EngineSays *says) {
        EngineTenant *t = &e->tenants[i];
        uint64_t busy = max_u64(says->busy, t->says.busy), over = says->over,
                 rested = max_u64(says->rested, t->says.rested);

        if (says->life != t->says.life) {
                t->alive = now;
                t->paused_until = min_u64(t->paused_until, now + PAUSE);
        }
        if (was_away(e, now))
                t->apart_over = now;
        note_apart(e, t, says, now);
        note_pause(t, says, now);
        if (says->launched != t->says.launched || busy != t->says.busy || !says->waits)
                t->moved = now;
        if (!t->says.drained) /* as we have seen */
                over = over != 0 ? max_u64(over, t->said) : 0;
        t->says = *says;
        t->says.busy = busy;
        t->says.rested = rested;
        t->says.over = over;
        t->said = now;
        if (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING)
                note_begin(t, says);
        if (t->state == ENGINE_CLOSED && t->terms.gated && !was_away(e, now))
                window_late(e, i, now);
}

bool engine_looks(const Engine *e, uint32_t i, uint64_t now) {
        const EngineTenant *t = &e->tenants[i];

        switch (t->state) {
        case ENGINE_OPEN:
        case ENGINE_CLOSING:
        case ENGINE_OVERDUE:
                return true;
        case ENGINE_CLOSED:
                return wants(t) && since(t->said, now) > 10 * GRACE;
        default:
                return false;
        }
}

/* ---- a step ---- */

bool engine_is_closing(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        return true;
        return false;
}

/* Nobody else has work on the card, or could have before its window closes, whether it rests or
 * not. */
static bool is_alone(const Engine *e, const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_OPEN && t->says.n_rows <= 1 && !engine_is_closing(e) &&
               !split_is_contested(e) && engine_choose(e, AMONG_CLOSING, now) < 0 &&
               engine_ripens(e, AMONG_CLOSING, now) >= t->turn.closes;
}

static void hush(Engine *e, uint64_t now) {
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                t->turn.quiet = e->owner >= 0 && t->state == ENGINE_CLOSING;
                t->turn.alone = is_alone(e, t, now);
        }
}

uint64_t engine_step(Engine *e, uint64_t now) {
        int32_t owner;

        now = max_u64(now, e->now);
        if (was_away(e, now))
                pass_absence(e, now);
        else
                pass_time(e, now);
        owner = e->owner;
        hung_look(e, now);
        for (uint32_t i = 0; i < e->n; i++)
                window_tend(e, i, now);
        if (owner >= 0) {
                owner_tend(e, now);
                window_tend(e, (uint32_t) owner, now);
        }
        if (e->owner < 0)
                owner_next(e, now);
        hush(e, now);
        e->asked = again_at(e, now);
        return e->asked;
}
