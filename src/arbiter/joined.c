/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/joined.h"

#include <stddef.h>

#include "arbiter/pick.h"
#include "arbiter/window.h"

/* ---- the sets ---- */

/* Whether the tenant has work in OVERRUN that may wait for a launch on another card. */
static bool is_overdue(const EngineTenant *t, uint64_t now) {
        return t->state == ENGINE_OVERRUN && since(t->progress_at, now) < NO_PROGRESS_NS;
}

/* Whether the tenant takes part in the plan of its set. A card without work for the container does
 * not delay the other cards. Nor does one whose work makes no progress or whose windows are not
 * used. */
static bool takes_part(const EngineTenant *t, uint64_t now) {
        if (!t->policy.gated || t->state == ENGINE_FREE)
                return false;
        if (t->state == ENGINE_OVERRUN)
                return is_overdue(t, now);
        return t->state != ENGINE_CLOSED || (now >= t->backoff_until && (wants(t) || now < t->active_until));
}

/* At most one tenant per card. */
static void add_member(JoinedSet *s, Engine *e, EngineTenant *t) {
        if (s->n < JOINED_CARDS && (s->n == 0 || s->members[s->n - 1].engine != e))
                s->members[s->n++] = (JoinedMember){e, t};
}

static void collect_sets(Joined *j, Engine *const engines[], uint32_t n, uint64_t now) {
        for (uint32_t k = 0; k < j->n; k++) {
                j->sets[k].n = 0;
                j->sets[k].overdue = false;
        }
        for (uint32_t c = 0; c < n; c++) {
                Engine *e = engines[c];

                e->planned = e->reserved != 0;
                e->reserved = 0;
                for (uint32_t i = 0; i < e->n; i++) {
                        EngineTenant *t = &e->tenants[i];

                        t->planned_end = 0;
                        if (t->set == 0 || t->set > JOINED_SETS)
                                continue;
                        j->n = j->n > t->set ? j->n : t->set;
                        j->sets[t->set - 1].overdue |= is_overdue(t, now);
                        if (takes_part(t, now))
                                add_member(&j->sets[t->set - 1], e, t);
                }
        }
}

static unsigned count_members(const JoinedSet *s, EngineState state) {
        unsigned n = 0;

        for (uint32_t i = 0; i < s->n; i++)
                n += s->members[i].tenant->state == state;
        return n;
}

/* No card has an open window of the set, or one that has not drained. */
static bool is_drained(const JoinedSet *s) {
        return count_members(s, ENGINE_OPEN) + count_members(s, ENGINE_CLOSING) == 0;
}

static bool sets_overlap(const JoinedSet *a, const JoinedSet *b) {
        for (uint32_t i = 0; i < a->n; i++)
                for (uint32_t k = 0; k < b->n; k++)
                        if (a->members[i].engine == b->members[k].engine)
                                return true;
        return false;
}

/* ---- a window on all cards ---- */

/* The length of a window, ns: what the smallest balance allows, from a quarter of a quantum to
 * one. */
static uint64_t length_of(const JoinedSet *s) {
        int64_t ns = (int64_t) QUANTUM_NS;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant *t = s->members[i].tenant;

                if (!t->policy.conserving && !s->overdue && account_tokens(&t->account) < ns)
                        ns = account_tokens(&t->account);
        }
        return max_u64(QUANTUM_NS / 4, ns > 0 ? (uint64_t) ns : 0);
}

static bool may_extend_on(const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);

        return m->tenant->state != ENGINE_OPEN ||
               (!engine_is_stalled(m->engine, m->tenant, now) &&
                pick_keeps_owner(m->engine, m->tenant, pick_tenant(m->engine, waiting), 0));
}

/* A window without work on any card ends, since others may wait for these cards. */
static bool may_extend(const Joined *j, const JoinedSet *s, uint64_t now) {
        bool works = false;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant *t = s->members[i].tenant;

                works |= wants(t) || t->report.in_flight > 0;
                if (!may_extend_on(&s->members[i], now))
                        return false;
        }
        if (!works)
                return false;
        for (uint32_t k = 0; k < j->n; k++)
                if (j->sets[k].ready && sets_overlap(s, &j->sets[k]))
                        return false;
        return true;
}

/* Whether a window may open on the card now. A high-priority tenant of that card comes first. */
static bool is_free(const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);
        bool high = waiting >= 0 && m->engine->tenants[waiting].policy.high;

        return m->engine->owner < 0 && (!high || m->tenant->policy.high) &&
               engine_may_open(m->engine, now, m->tenant->policy.high);
}

/* A card idles for joined sets at most JOINED_DRAIN_NS; then another tenant is next. */
static bool may_reserve(const Engine *e, uint64_t now) {
        return e->idle_for_set_since == 0 || now < e->idle_for_set_since + JOINED_DRAIN_NS;
}

/* Reserves the card from a time on. The set's tenant pays while it idles and another tenant
 * waits. */
static void reserve_card(const JoinedMember *m, uint64_t from) {
        m->engine->reserved = from;
        m->engine->set_tenant = (uint32_t) (m->tenant - m->engine->tenants);
}

static uint64_t owner_end(const JoinedMember *m) {
        const EngineTenant *o = &m->engine->tenants[m->engine->owner];

        if (m->tenant->policy.high && !o->policy.high)
                return 0;
        return o->planned_end != 0 ? o->window.closes : min_u64(o->window.closes, o->begins + QUANTUM_NS);
}

static uint64_t free_from(const JoinedMember *m, uint64_t now) {
        const Engine *e = m->engine;
        uint64_t when = now + 1;

        if (is_free(m, now))
                return now;
        if (e->owner >= 0)
                return max_u64(when, owner_end(m));
        for (uint32_t i = 0; i < e->n; i++)
                if (e->tenants[i].state == ENGINE_CLOSING)
                        when = max_u64(when, since(PREOPEN_NS, window_predicted_end(&e->tenants[i], now)));
        return when;
}

/* The container has new work on a card during its joined window: that card joins it when free. */
static void join_late(const JoinedSet *s, const JoinedMember *m, uint64_t now) {
        int waiting = pick_next(m->engine, NULL, false, now);

        if (m->tenant->state == ENGINE_CLOSING || !wants(m->tenant) || s->end < now + QUANTUM_NS / 4 ||
            !pick_is_first(m->tenant, pick_tenant(m->engine, waiting)))
                return;
        if (is_free(m, now))
                m->tenant->planned_end = s->end;
        else if (may_reserve(m->engine, now))
                reserve_card(m, free_from(m, now));
}

static void continue_window(Joined *j, JoinedSet *s, uint64_t now) {
        if (now + EXTEND_MARGIN_NS >= s->end && may_extend(j, s, now))
                s->end += length_of(s);
        for (uint32_t i = 0; i < s->n; i++)
                if (s->members[i].tenant->state == ENGINE_OPEN)
                        s->members[i].tenant->planned_end = s->end;
                else
                        join_late(s, &s->members[i], now);
}

/* ---- its end ---- */

/* When launched work should have ended, unless it waits for a launch on another card. */
static uint64_t late_since(const EngineTenant *t) {
        return max_u64(t->window.closes + t->window.drain_ns,
                       t->progress_at + min_u64(t->report.in_flight, JOINED_DRAIN_NS)) +
               NOTIFY_LATENCY_NS;
}

/* Work left on cards that should have drained, ns; 0: none is late. Sets j->next. */
static uint64_t late_work_left(Joined *j, const JoinedSet *s, uint64_t now) {
        uint64_t left = NOTIFY_LATENCY_NS;
        bool late = false;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant *t = s->members[i].tenant;

                if (t->state != ENGINE_CLOSING)
                        continue;
                left = max_u64(left, since(since(t->reported_at, now), t->report.in_flight));
                late |= now >= late_since(t);
                if (now < late_since(t))
                        j->next = min_u64(j->next, late_since(t));
        }
        return late ? left : 0;
}

/* After the end of a window. Late work may wait for a launch on a card that has drained, so that
 * card may launch as much as the late work has left. All cards stay reserved until all have
 * drained. */
static void wait_for_drain(Joined *j, JoinedSet *s, uint64_t now) {
        uint64_t last = s->end + JOINED_DRAIN_NS, left = late_work_left(j, s, now);

        if (now >= last)
                return;
        j->next = min_u64(j->next, count_members(s, ENGINE_CLOSING) > 0 ? last : now);
        for (uint32_t i = 0; i < s->n; i++) {
                const JoinedMember *m = &s->members[i];
                EngineTenant *t = m->tenant;

                if (t->state == ENGINE_OPEN && t->opened >= s->end && left > 0)
                        t->planned_end = t->window.closes;
                else if (t->state != ENGINE_CLOSING && left > 0 && wants(t) && is_free(m, now))
                        t->planned_end = min_u64(now + left, last);
                if (may_reserve(m->engine, now))
                        reserve_card(m, now);
        }
}

/* ---- the next set ---- */

/* The member as its set counts it. Work in OVERRUN may wait for a launch on another card, so a set
 * with caps may be in debt. */
static EngineTenant count_member(const JoinedSet *s, const JoinedMember *m) {
        EngineTenant t = *m->tenant;

        if (s->overdue && !t.policy.conserving)
                account_charge(&t.account, &t.policy, -(int64_t) JOINED_DEBT_NS,
                               m->engine->virtual_clocks[t.policy.high]);
        return t;
}

/* Whether the card's owner, which is not joined and shares by weight, still comes before t. */
static bool owner_continues(const Engine *e, const EngineTenant *t) {
        const EngineTenant *o = pick_tenant(e, e->owner);

        return o && o->planned_end == 0 && o->policy.conserving && wants(o) && o->idle_since == 0 &&
               pick_keeps_owner(e, o, t, 0);
}

/* Whether the member's account allows a window, and it comes before the other tenants of the
 * card. */
static bool is_first(const JoinedMember *m, const EngineTenant *counted, uint64_t now) {
        int other = pick_next(m->engine, m->tenant, false, now);

        return pick_is_first(counted, pick_tenant(m->engine, other)) && !owner_continues(m->engine, counted);
}

/* Work in OVERRUN is on its card already, so its set does not wait until it is first there. */
static void drop_overdue(JoinedSet *s, uint64_t now) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant t = count_member(s, &s->members[i]);

                if (t.state != ENGINE_OVERRUN || is_first(&s->members[i], &t, now))
                        s->members[n++] = s->members[i];
        }
        s->n = n;
}

/* Whether the set may have a window now: every account allows it, and it is first on every card. */
static bool is_ready(Joined *j, const JoinedSet *s, uint64_t now) {
        uint64_t ready = now, leaves = UINT64_MAX;
        bool wanted = false, first = true;

        for (uint32_t i = 0; i < s->n; i++) {
                const EngineTenant t = count_member(s, &s->members[i]);

                wanted |= wants(&t);
                first &= is_first(&s->members[i], &t, now);
                if (t.state == ENGINE_CLOSED)
                        ready = max_u64(ready, pick_ready_at(&t, now));
                if (t.state == ENGINE_CLOSED && !wants(&t))
                        leaves = min_u64(leaves, t.active_until);
        }
        if (wanted)
                j->next = min_u64(j->next, ready > now ? min_u64(ready, leaves) : leaves);
        return wanted && first && ready <= now;
}

static const JoinedMember *lowest_member(const JoinedSet *s) {
        const JoinedMember *low = &s->members[0];

        for (uint32_t i = 1; i < s->n; i++)
                if (pick_is_before(low->engine, low->tenant, s->members[i].engine, s->members[i].tenant))
                        low = &s->members[i];
        return low;
}

/* The set with the smallest balance comes first; of equals, the one that waited longest. */
static bool is_before(const JoinedSet *a, const JoinedSet *b) {
        const JoinedMember *x = lowest_member(a), *y = lowest_member(b);

        if (pick_is_before(x->engine, x->tenant, y->engine, y->tenant))
                return true;
        return !pick_is_before(y->engine, y->tenant, x->engine, x->tenant) && a->end < b->end;
}

/* Opens the set's windows if all cards are free. Otherwise reserves them from when the last one is
 * free; until then they serve other tenants, whose windows end by that time. */
static void admit_set(JoinedSet *s, uint64_t now) {
        uint64_t from = now;
        bool kept = true;

        for (uint32_t i = 0; i < s->n; i++) {
                if (s->members[i].engine->reserved != 0 ||
                    engine_opens_planned(s->members[i].engine, now) >= 0)
                        return;
                from = max_u64(from, free_from(&s->members[i], now));
                kept &= may_reserve(s->members[i].engine, now);
        }
        if (from > now && !kept)
                return;
        if (from <= now)
                s->end = now + length_of(s);
        for (uint32_t i = 0; i < s->n; i++)
                if (from <= now)
                        s->members[i].tenant->planned_end = s->end;
                else
                        reserve_card(&s->members[i], from);
}

static void admit_all(Joined *j, uint64_t now) {
        JoinedSet *best;

        do {
                best = NULL;
                for (uint32_t k = 0; k < j->n; k++)
                        if (j->sets[k].ready && (!best || is_before(&j->sets[k], best)))
                                best = &j->sets[k];
                if (best) {
                        best->ready = false;
                        admit_set(best, now);
                }
        } while (best);
}

/* ---- the plan ---- */

/* A set with work on one card only is not planned, unless another card has overdue work. That
 * card's engine decides. */
static void exclude_single(JoinedSet *s) {
        if (s->n < 2 && !s->overdue)
                s->n = 0;
        if (s->n == 0)
                s->end = 0;
        for (uint32_t i = 0; i < s->n; i++)
                s->members[i].tenant->planned_end = PLAN_NO_WINDOW;
}

/* Continues or ends the set's window. Its first window may be one that a card opened before the
 * other cards had work. */
static void plan_window(Joined *j, JoinedSet *s, uint64_t now) {
        for (uint32_t i = 0; i < s->n && s->end == 0; i++)
                if (s->members[i].tenant->state == ENGINE_OPEN)
                        s->end = min_u64(s->members[i].tenant->window.closes, now + QUANTUM_NS);
        if (count_members(s, ENGINE_OPEN) == 0)
                s->end = min_u64(s->end, now);
        if (now < s->end)
                continue_window(j, s, now);
        else
                wait_for_drain(j, s, now);
}

static void note_changes(Joined *j, Engine *e, uint64_t now) {
        const EngineTenant *o = e->owner >= 0 ? &e->tenants[e->owner] : NULL;
        uint32_t n = 0;

        if (e->reserved != 0) /* otherwise the reservation was just dropped */
                e->planned = o && o->window.closes > e->reserved;
        if (e->reserved == 0 || (e->owner >= 0 && e->reserved > now))
                e->idle_for_set_since = 0;
        else if (e->idle_for_set_since == 0)
                e->idle_for_set_since = now;
        if (e->idle_for_set_since != 0)
                j->next = min_u64(j->next, e->idle_for_set_since + JOINED_DRAIN_NS);
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                n += t->planned_end != 0;
                if (t->planned_end != 0)
                        e->planned |= t->state == ENGINE_OPEN ? t->planned_end != t->window.closes
                                                              : t->planned_end > now;
        }
        e->planned |= n < e->n_planned; /* a tenant has left the plan */
        e->n_planned = n;
}

/* Sets with open windows come first, because other sets wait for their cards. */
void joined_plan(Joined *j, Engine *const engines[], uint32_t n, uint64_t now) {
        j->next = UINT64_MAX;
        collect_sets(j, engines, n, now);
        for (uint32_t k = 0; k < j->n; k++)
                if (j->sets[k].overdue)
                        drop_overdue(&j->sets[k], now);
        for (uint32_t k = 0; k < j->n; k++)
                exclude_single(&j->sets[k]);
        for (uint32_t k = 0; k < j->n; k++)
                j->sets[k].ready = is_drained(&j->sets[k]) && is_ready(j, &j->sets[k], now);
        for (uint32_t k = 0; k < j->n; k++)
                if (!is_drained(&j->sets[k]))
                        plan_window(j, &j->sets[k], now);
        admit_all(j, now);
        for (uint32_t c = 0; c < n; c++)
                note_changes(j, engines[c], now);
        j->next = max_u64(j->next, now + NOTIFY_LATENCY_NS / 2);
}
