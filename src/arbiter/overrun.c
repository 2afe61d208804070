/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/overrun.h"

#include "arbiter/attribute.h"

/* Times as long as a kernel that hangs: no more of what one paid beside others may come back, or
 * who was long beside one that never ends would have it of whoever ends first. */
enum { CONTESTED = 2 };

void overrun_begin(EngineTenant *t, uint64_t now) {
        t->state = ENGINE_OVERRUN;
        t->overrun = (Overrun){.since = now,
                               .hung_since = t->window.closes,
                               .busy_before = t->report.busy,
                               .n_working = max_u32(t->report.n_working, 1)};
}

void overrun_note_working(EngineTenant *t) {
        t->overrun.n_working = max_u32(t->overrun.n_working, t->report.n_working);
}

void overrun_resume(EngineTenant *t, bool moves) {
        t->state = ENGINE_OVERRUN;
        t->overrun.backlog_charged += t->charged;
        t->overrun.n_backlog_windows++;
        t->arbiter_late = 0; /* it is in what was paid */
        if (moves)
                t->overrun.hung_since = t->window.closes;
}

/* ---- while it lasts ---- */

/* A kernel that hangs may have been stopped, or be none: nobody else's part gets less by it. */
static bool takes_timeslices(const Engine *e, const EngineTenant *t) {
        return t->state == ENGINE_OVERRUN && since(t->overrun.since, e->now) < e->overrun_limit;
}

/* Those who are overdue and whoever has a window take turns, by contexts; of the one with the
 * window one is counted. */
static uint64_t count_timeslices(const Engine *e, bool taken) {
        uint64_t n = taken;

        for (uint32_t i = 0; i < e->n; i++)
                n += takes_timeslices(e, &e->tenants[i]) ? attribute_contexts(e->tenants[i].overrun.n_working)
                                                         : 0;
        return n;
}

/* What an overdue one does beside others is theirs, too: both sides count that time, also of a
 * window that goes on. What it will be charged for it counts as granted, as long as it says that it
 * has work there, and that is not told of as a kernel that hangs: who never says its end has
 * nothing of that. Of several at once each counts all of it, so that nobody is accused of what he
 * had. */
void overrun_advance(Engine *e, uint64_t passed, uint64_t now, bool taken) {
        uint64_t turns = count_timeslices(e, taken);

        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                uint64_t own = attribute_contexts(t->overrun.n_working),
                         all = turns + (takes_timeslices(e, t) ? 0 : own);

                t->contested = e->beside_overrun ? min_u64(t->contested, CONTESTED * e->overrun_limit) : 0;
                if (t->state != ENGINE_OVERRUN)
                        continue;
                t->overrun.others += passed - passed * own / all;
                t->overrun.beside += taken ? passed * own / all : 0;
                if (t->report.in_flight > 0 && since(t->overrun.since, now) < e->overrun_limit)
                        t->window.granted += taken ? passed / 2 : passed;
        }
}

/* ---- the end ---- */

static uint64_t reported_busy(const EngineTenant *t) {
        return since(t->overrun.busy_before + t->overrun.backlog_charged, t->report.busy);
}

/* Of the time for which its work may have been on the card: as much as it says to have used itself,
 * however much that is. Who says less may have been stopped: no longer than a kernel takes, for
 * each of its processes. What is not charged it may still find out to have used. */
static uint64_t believed(EngineTenant *t, uint64_t ns) {
        uint64_t paid =
                min_u64(ns, max_u64(reported_busy(t), t->overrun.n_working * (uint64_t) ACCOUNT_DEBT_NS));

        t->unclaimed = ns - paid;
        return paid;
}

static uint64_t proportion(uint64_t pool, uint64_t one, uint64_t all) {
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
        pool = min_u64(all, min_u64(t->overrun.beside, reported_busy(t)));
        for (uint32_t i = 0; i < e->n && pool > 0; i++) {
                EngineTenant *o = &e->tenants[i];
                uint64_t back;

                if (o == t || o->contested == 0)
                        continue;
                back = proportion(pool, o->contested, all);
                account_refund(&o->account, &o->policy, (int64_t) back);
                o->window.used -= min_u64(o->window.used, back);
                o->contested -= back;
        }
}

/* Its own part of the time beside others is its own, and all in which nobody else was there. */
void overrun_end(Engine *e, EngineTenant *t, uint64_t now) {
        uint64_t held = since(t->overrun.since + t->overrun.late_before + t->arbiter_late +
                                      t->overrun.backlog_charged,
                              now);

        t->charged = believed(t, held - min_u64(t->overrun.others, held));
        account_charge(&t->account, &t->policy, (int64_t) t->charged, virtual_clock(e, &t->policy));
        t->window.used += t->charged;
        pay_back(e, t);
        t->charged += t->overrun.backlog_charged;
        t->busy_before = t->overrun.busy_before;
}
