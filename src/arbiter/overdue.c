/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/overdue.h"

#include "arbiter/split.h"

/* Times as long as a kernel that hangs: no more of what one paid beside others may come back, or
 * who was long beside one that never ends would have it of whoever ends first. */
enum { CONTESTED = 2 };

void overdue_begin(EngineTenant *t, uint64_t now) {
        t->state = ENGINE_OVERDUE;
        t->overdue = (Overdue){.since = now,
                               .hung_from = t->turn.closes,
                               .busy_before = t->says.busy,
                               .working = max_u32(t->says.n_working, 1)};
}

void overdue_works(EngineTenant *t) {
        t->overdue.working = max_u32(t->overdue.working, t->says.n_working);
}

void overdue_goes_on(EngineTenant *t, bool moves) {
        t->state = ENGINE_OVERDUE;
        t->overdue.behind += t->paid;
        t->overdue.n_behind++;
        t->late = 0; /* it is in what was paid */
        if (moves)
                t->overdue.hung_from = t->turn.closes;
}

/* ---- while it lasts ---- */

/* A kernel that hangs may have been stopped, or be none: nobody else's part gets less by it. */
static bool takes_turns(const Engine *e, const EngineTenant *t) {
        return t->state == ENGINE_OVERDUE && since(t->overdue.since, e->now) < e->hung;
}

/* Those who are overdue and whoever has a window take turns, by contexts; of the one with the
 * window one is counted. */
static uint64_t count_turns(const Engine *e, bool taken) {
        uint64_t n = taken;

        for (uint32_t i = 0; i < e->n; i++)
                n += takes_turns(e, &e->tenants[i]) ? split_contexts(e->tenants[i].overdue.working) : 0;
        return n;
}

/* What an overdue one does beside others is theirs, too: both sides count that time, also of a
 * window that goes on. What it will be charged for it counts as granted, as long as it says that it
 * has work there, and that is not told of as a kernel that hangs: who never says its end has
 * nothing of that. Of several at once each counts all of it, so that nobody is accused of what he
 * had. */
void overdue_pass(Engine *e, uint64_t passed, uint64_t now, bool taken) {
        uint64_t turns = count_turns(e, taken);

        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                uint64_t own = split_contexts(t->overdue.working),
                         all = turns + (takes_turns(e, t) ? 0 : own);

                t->contested = e->beside_overdue ? min_u64(t->contested, CONTESTED * e->hung) : 0;
                if (t->state != ENGINE_OVERDUE)
                        continue;
                t->overdue.shared += passed - passed * own / all;
                t->overdue.beside += taken ? passed * own / all : 0;
                if (t->says.in_flight > 0 && since(t->overdue.since, now) < e->hung)
                        t->turn.granted += taken ? passed / 2 : passed;
        }
}

/* ---- the end ---- */

static uint64_t said_of(const EngineTenant *t) {
        return since(t->overdue.busy_before + t->overdue.behind, t->says.busy);
}

/* Of the time for which its work may have been on the card: as much as it says to have used itself,
 * however much that is. Who says less may have been stopped: no longer than a kernel takes, for
 * each of its processes. What is not charged it may still find out to have used. */
static uint64_t believed(EngineTenant *t, uint64_t ns) {
        uint64_t paid = min_u64(ns, max_u64(said_of(t), t->overdue.working * (uint64_t) ACCOUNT_DEBT));

        t->spare = ns - paid;
        return paid;
}

static uint64_t part_of(uint64_t pool, uint64_t one, uint64_t all) {
        __extension__ unsigned __int128 product = (unsigned __int128) pool * one;

        return (uint64_t) (product / all);
}

/* Others have paid for the card in their windows beside it. What it pays of that time is what they
 * get, as far as it says itself that it used it: each in proportion to what he paid beside anybody
 * who is overdue, because nobody knows beside whom. */
static void pay_back(Engine *e, const EngineTenant *t) {
        uint64_t all = 0, pool;

        for (uint32_t i = 0; i < e->n; i++)
                all += &e->tenants[i] != t ? e->tenants[i].contested : 0;
        pool = min_u64(all, min_u64(t->overdue.beside, said_of(t)));
        for (uint32_t i = 0; i < e->n && pool > 0; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t back;

                if (o == t || o->contested == 0)
                        continue;
                back = part_of(pool, o->contested, all);
                account_refund(&o->account, &o->terms, (int64_t) back);
                o->turn.used -= min_u64(o->turn.used, back);
                o->contested -= back;
        }
}

/* Its own part of the time beside others is its own, and all in which nobody else was there. */
void overdue_end(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t held = since(t->overdue.since + t->overdue.late_before + t->late + t->overdue.behind, now);

        t->paid = believed(t, held - min_u64(t->overdue.shared, held));
        account_charge(&t->account, &t->terms, (int64_t) t->paid, clock_of(e, &t->terms));
        t->turn.used += t->paid;
        pay_back(e, t);
        t->paid += t->overdue.behind;
        t->busy = t->overdue.busy_before;
}
