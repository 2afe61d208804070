/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/joined.h"

#include <stddef.h>

#include "arbiter/pick.h"
#include "arbiter/window.h"

/* ---- the sets ---- */

/* A card on which the container wants nothing does not hold up the others. Nor does one whose work
 * does not move, or on which windows are not used. Work of which nothing has begun may need a
 * window behind it, and such a window ends by itself. */
static bool takes_part(const EngineTenant *t, uint64_t now) {
        if (!t->policy.gated || t->state == ENGINE_FREE || t->window.ignore_backlog)
                return false;
        if (t->state == ENGINE_OVERRUN)
                return !t->report.blocked && since(t->progress_at, now) < NO_PROGRESS_NS;
        return t->state != ENGINE_CLOSED || (now >= t->backoff_until && (wants(t) || now < t->active_until));
}

/* One tenant of each card. */
static void add_member(JoinedSet *s, Engine *e, EngineTenant *t) {
        if (s->n < JOINED_CARDS && (s->n == 0 || s->members[s->n - 1].engine != e))
                s->members[s->n++] = (JoinedMember){e, t};
}

static void collect(Joined *j, Engine *const engines[], uint32_t n, uint64_t now) {
        for (uint32_t k = 0; k < j->n; k++)
                j->sets[k].n = 0;
        for (uint32_t c = 0; c < n; c++) {
                Engine *e = engines[c];

                e->planned = e->reserved != 0;
                e->reserved = 0;
                for (uint32_t i = 0; i < e->n; i++) {
                        EngineTenant *t = &e->tenants[i];

                        t->until = 0;
                        if (t->set == 0 || t->set > JOINED_SETS)
                                continue;
                        j->n = j->n > t->set ? j->n : t->set;
                        if (takes_part(t, now))
                                add_member(&j->sets[t->set - 1], e, t);
                }
        }
}

static unsigned count(const JoinedSet *s, EngineState state) {
        unsigned n = 0;

        for (uint32_t i = 0; i < s->n; i++)
                n += s->members[i].tenant->state == state;
        return n;
}

/* It has no window, and none of its work is waited for. */
static bool is_over(const JoinedSet *s) {
        return count(s, ENGINE_OPEN) + count(s, ENGINE_CLOSING) == 0;
}

static bool overlaps(const JoinedSet *a, const JoinedSet *b) {
        for (uint32_t i = 0; i < a->n; i++)
                for (uint32_t k = 0; k < b->n; k++)
                        if (a->members[i].engine == b->members[k].engine)
                                return true;
        return false;
}

/* ---- a window on all cards ---- */

/* As long as the tokens of the lowest balance last. */
static uint64_t length_of(const JoinedSet *s) {
        int64_t ns = (int64_t) QUANTUM_NS;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant *t = s->members[i].tenant;

                if (!t->policy.conserving && account_tokens(&t->account) < ns)
                        ns = account_tokens(&t->account);
        }
        return max_u64(QUANTUM_NS / 4, ns > 0 ? (uint64_t) ns : 0);
}

static bool keeps_card(const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);

        return m->tenant->state != ENGINE_OPEN || (!engine_is_stalled(m->engine, m->tenant, now) &&
                                                   pick_keeps_owner(m->engine, m->tenant, waiting, 0));
}

static bool keeps(const Joined *j, const JoinedSet *s, uint64_t now) {
        for (uint32_t i = 0; i < s->n; i++)
                if (!keeps_card(&s->members[i], now))
                        return false;
        for (uint32_t k = 0; k < j->n; k++)
                if (j->sets[k].waits && overlaps(s, &j->sets[k]))
                        return false;
        return true;
}

/* High priority on one of the cards comes first. */
static bool is_free(const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);
        bool high = waiting >= 0 && m->engine->tenants[waiting].policy.high;

        return m->engine->owner < 0 && (!high || m->tenant->policy.high) &&
               engine_may_open(m->engine, now, m->tenant->policy.high);
}

/* A card is kept idle for sets no longer than that; then a tenant of one card is next. */
static bool may_keep(const Engine *e, uint64_t now) {
        return e->kept_since == 0 || now < e->kept_since + JOINED_DRAIN_NS;
}

/* It pays for the card while it is idle and another tenant waits. */
static void keep(const JoinedMember *m, uint64_t from) {
        m->engine->reserved = from;
        m->engine->keeper = (uint32_t) (m->tenant - m->engine->tenants);
}

static uint64_t end_of_owner(const JoinedMember *m) {
        const EngineTenant *o = &m->engine->tenants[m->engine->owner];

        if (m->tenant->policy.high && !o->policy.high)
                return 0;
        return o->until != 0 ? o->window.closes : min_u64(o->window.closes, o->begins + QUANTUM_NS);
}

static uint64_t free_from(const JoinedMember *m, uint64_t now) {
        const Engine *e = m->engine;
        uint64_t when = now + 1;

        if (is_free(m, now))
                return now;
        if (e->owner >= 0)
                return max_u64(when, end_of_owner(m));
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        when = max_u64(when, since(PREOPEN_NS, window_predicted_end(&e->tenants[i], now)));
        return when;
}

/* A card on which the container begins to want something joins the window when it is free. */
static void join_late(const JoinedSet *s, const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);

        if (m->tenant->state == ENGINE_CLOSING || !wants(m->tenant) || s->until < now + QUANTUM_NS / 4 ||
            !pick_is_first(m->engine, m->tenant, waiting))
                return;
        if (is_free(m, now))
                m->tenant->until = s->until;
        else if (may_keep(m->engine, now))
                keep(m, free_from(m, now));
}

static void go_on(Joined *j, JoinedSet *s, uint64_t now) {
        if (now + EXTEND_MARGIN_NS >= s->until && keeps(j, s, now))
                s->until += length_of(s);
        for (uint32_t i = 0; i < s->n; i++)
                if (s->members[i].tenant->state == ENGINE_OPEN)
                        s->members[i].tenant->until = s->until;
                else
                        join_late(s, &s->members[i], now);
}

/* ---- its end ---- */

/* Launched work has ended by then, unless it waits for a launch on another card. */
static uint64_t late_from(const EngineTenant *t) {
        return max_u64(t->window.closes + t->window.drain_ns,
                       t->progress_at + min_u64(t->report.in_flight, JOINED_DRAIN_NS)) +
               NOTIFY_LATENCY_NS;
}

/* What is left on the cards that have not drained; 0: none is late. */
static uint64_t late_work(Joined *j, const JoinedSet *s, uint64_t now) {
        uint64_t left = NOTIFY_LATENCY_NS;
        bool late = false;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant *t = s->members[i].tenant;

                if (t->state != ENGINE_CLOSING)
                        continue;
                left = max_u64(left, since(since(t->reported_at, now), t->report.in_flight));
                late |= now >= late_from(t);
                if (now < late_from(t))
                        j->next = min_u64(j->next, late_from(t));
        }
        return late ? left : 0;
}

/* Late work may wait for a launch on a card that has drained, so there as much as is left of that
 * work is launched. No card is given away before all have drained. */
static void end(Joined *j, JoinedSet *s, uint64_t now) {
        uint64_t last = s->until + JOINED_DRAIN_NS, left = late_work(j, s, now);

        if (now >= last)
                return;
        j->next = min_u64(j->next, count(s, ENGINE_CLOSING) > 0 ? last : now);
        for (uint32_t i = 0; i < s->n; i++) {
                const JoinedMember *m = &s->members[i];
                EngineTenant *t = m->tenant;

                if (t->state == ENGINE_OPEN && t->opened >= s->until && left > 0)
                        t->until = t->window.closes;
                else if (t->state != ENGINE_CLOSING && left > 0 && wants(t) && is_free(m, now))
                        t->until = min_u64(now + left, last);
                if (may_keep(m->engine, now))
                        keep(m, now);
        }
}

/* ---- the next set ---- */

/* A tenant of one card that shares by weight keeps its window while its clock is behind. */
static bool owner_goes_on(const JoinedMember *m) {
        const EngineTenant *o = m->engine->owner >= 0 ? &m->engine->tenants[m->engine->owner] : NULL;

        return o && o->until == 0 && o->policy.conserving && wants(o) && o->idle_since == 0 &&
               pick_keeps_owner(m->engine, o, (int) (m->tenant - m->engine->tenants), 0);
}

static bool may_wait(Joined *j, const JoinedSet *s, uint64_t now) {
        uint64_t ready = now, leaves = UINT64_MAX;
        bool wanted = false, first = true;

        for (uint32_t i = 0; i < s->n; i++) {
                const JoinedMember *m = &s->members[i];

                wanted |= wants(m->tenant);
                first &= pick_is_first(m->engine, m->tenant, pick_next(m->engine, m->tenant, false, now)) &&
                         !owner_goes_on(m);
                if (m->tenant->state == ENGINE_CLOSED)
                        ready = max_u64(ready, pick_ready_at(m->tenant, now));
                if (m->tenant->state == ENGINE_CLOSED && !wants(m->tenant))
                        leaves = min_u64(leaves, m->tenant->active_until);
        }
        if (wanted)
                j->next = min_u64(j->next, ready > now ? min_u64(ready, leaves) : leaves);
        return wanted && first && ready <= now;
}

static const JoinedMember *lowest(const JoinedSet *s) {
        const JoinedMember *low = &s->members[0];

        for (uint32_t i = 1; i < s->n; i++)
                if (pick_is_before(low->engine, low->tenant, s->members[i].engine, s->members[i].tenant))
                        low = &s->members[i];
        return low;
}

/* By their lowest balances; of equals the one that waits longest. */
static bool is_before(const JoinedSet *a, const JoinedSet *b) {
        const JoinedMember *x = lowest(a), *y = lowest(b);

        if (pick_is_before(x->engine, x->tenant, y->engine, y->tenant))
                return true;
        return !pick_is_before(y->engine, y->tenant, x->engine, x->tenant) && a->until < b->until;
}

/* Until its last card is free, the others serve tenants of one card, in windows that end by then. */
static void admit(JoinedSet *s, uint64_t now) {
        uint64_t from = now;
        bool kept = true;

        for (uint32_t i = 0; i < s->n; i++) {
                if (s->members[i].engine->reserved != 0)
                        return;
                from = max_u64(from, free_from(&s->members[i], now));
                kept &= may_keep(s->members[i].engine, now);
        }
        if (from > now && !kept)
                return;
        if (from <= now)
                s->until = now + length_of(s);
        for (uint32_t i = 0; i < s->n; i++)
                if (from <= now)
                        s->members[i].tenant->until = s->until;
                else
                        keep(&s->members[i], from);
}

static void admit_all(Joined *j, uint64_t now) {
        JoinedSet *best;

        do {
                best = NULL;
                for (uint32_t k = 0; k < j->n; k++)
                        if (j->sets[k].waits && (!best || is_before(&j->sets[k], best)))
                                best = &j->sets[k];
                if (best) {
                        best->waits = false;
                        admit(best, now);
                }
        } while (best);
}

/* ---- the plan ---- */

/* One card alone is its engine's to decide. */
static void hold(JoinedSet *s) {
        if (s->n < 2)
                s->n = 0;
        if (s->n == 0)
                s->until = 0;
        for (uint32_t i = 0; i < s->n; i++)
                s->members[i].tenant->until = PLAN_HELD;
}

/* The first window of a set may be one that a card opened before the other one had work. */
static void plan_window(Joined *j, JoinedSet *s, uint64_t now) {
        for (uint32_t i = 0; i < s->n && s->until == 0; i++)
                if (s->members[i].tenant->state == ENGINE_OPEN)
                        s->until = s->members[i].tenant->window.closes;
        if (count(s, ENGINE_OPEN) == 0)
                s->until = min_u64(s->until, now);
        if (now < s->until)
                go_on(j, s, now);
        else
                end(j, s, now);
}

static void note_planned(Joined *j, Engine *e, uint64_t now) {
        const EngineTenant *o = e->owner >= 0 ? &e->tenants[e->owner] : NULL;

        if (e->reserved != 0) /* else it was until now, and its tenants of one card go on */
                e->planned = o && o->window.closes > e->reserved;
        if (e->reserved == 0 || (e->owner >= 0 && e->reserved > now))
                e->kept_since = 0;
        else if (e->kept_since == 0)
                e->kept_since = now;
        if (e->kept_since != 0)
                j->next = min_u64(j->next, e->kept_since + JOINED_DRAIN_NS);
        e->held = false;
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];
                bool open = t->state == ENGINE_OPEN, was_planned = t->planned;

                t->planned = t->until != 0;
                e->held |= t->planned;
                if (t->planned)
                        e->planned |= open ? t->until != t->window.closes : t->until > now;
                else
                        e->planned |= was_planned; /* its engine decides for it now */
        }
}

/* What each set does now, beginning with those that have windows: others wait for these. */
void joined_plan(Joined *j, Engine *const engines[], uint32_t n, uint64_t now) {
        j->next = UINT64_MAX;
        collect(j, engines, n, now);
        for (uint32_t k = 0; k < j->n; k++)
                hold(&j->sets[k]);
        for (uint32_t k = 0; k < j->n; k++)
                j->sets[k].waits = is_over(&j->sets[k]) && may_wait(j, &j->sets[k], now);
        for (uint32_t k = 0; k < j->n; k++)
                if (!is_over(&j->sets[k]))
                        plan_window(j, &j->sets[k], now);
        admit_all(j, now);
        for (uint32_t c = 0; c < n; c++)
                note_planned(j, engines[c], now);
        j->next = max_u64(j->next, now + NOTIFY_LATENCY_NS / 2);
}
