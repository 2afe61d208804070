/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/attribute.h"

#include <stddef.h>

#include "arbiter/window_end.h"

enum { CONTEXTS = 16 }; /* of one tenant that count, at most */

/* Of one who has a window that is not over. */
typedef struct Residency {
        uint32_t tenant;
        uint64_t from, to;   /* it counts as there */
        uint64_t first_work; /* its first work is there */
        uint64_t
                charged_until; /* to notice that it went takes until then: that it pays for, whoever is there by now */
} Residency;

typedef struct Residencies {
        Residency of[ENGINE_TENANTS];
        uint32_t n;
} Residencies;

static EngineTenant *tenant_of(Engine *e, const Residencies *s, uint32_t i) {
        return &e->tenants[s->of[i].tenant];
}

static bool has_window(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING) && !t->window.ignore_backlog &&
               !is_resting(t);
}

static uint64_t begin_of(const EngineTenant *t) {
        if (!has_launched(t))
                return UINT64_MAX;
        return t->first_launch != 0 ? t->first_launch : t->opened;
}

/* Who comes later than MAX_START_DELAY_NS only says so: others share with him all the same. */
static uint64_t from_when(const EngineTenant *t) {
        return t->usage.arrived != 0 ? t->usage.arrived
                                     : min_u64(begin_of(t), t->expected_start + MAX_START_DELAY_NS);
}

static void collect(const Engine *e, uint64_t now, Residencies *ret) {
        ret->n = 0;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (has_window(t))
                        ret->of[ret->n++] =
                                (Residency){.tenant = i,
                                            .from = max_u64(from_when(t), e->now),
                                            .to = max_u64(window_end_drained(t, now), e->now),
                                            .first_work = begin_of(t),
                                            .charged_until = max_u64(window_end_noticed(t, now), e->now)};
        }
}

static bool is_there(const Residency *s, uint64_t at) {
        return s->from <= at && at < s->to;
}

static uint32_t count(const Residencies *s, uint64_t at) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n; i++)
                n += is_there(&s->of[i], at);
        return n;
}

bool attribute_is_contested(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (is_overrun(&e->tenants[i]))
                        return true;
        return false;
}

uint64_t attribute_contexts(uint32_t processes) {
        return max_u64(1, min_u64(processes, CONTEXTS));
}

static uint64_t contexts_of(const EngineTenant *t) {
        return attribute_contexts(t->report.n_working);
}

void attribute_charge(Engine *e, EngineTenant *t, int64_t ns) {
        account_charge(&t->account, &t->policy, ns, virtual_clock(e, &t->policy));
        if (ns < 0) {
                t->charged -= min_u64(t->charged, (uint64_t) -ns);
                t->window.used -= min_u64(t->window.used, (uint64_t) -ns);
        } else {
                t->charged += (uint64_t) ns;
                t->window.used += (uint64_t) ns;
        }
}

static void have(Engine *e, EngineTenant *t, uint64_t ns) {
        attribute_charge(e, t, (int64_t) ns);
        t->usage.own += ns;
        t->contested += e->beside_overrun ? ns : 0;
}

void attribute_return(Engine *e, EngineTenant *t, uint64_t ns) {
        attribute_charge(e, t, -(int64_t) ns);
        t->usage.own -= ns;
        t->contested -= min_u64(t->contested, ns);
}

static void hand_over(Engine *e, EngineTenant *from, EngineTenant *to, uint64_t ns) {
        ns = min_u64(ns, from->usage.own);
        attribute_return(e, from, ns);
        from->usage.others += ns;
        have(e, to, ns);
        to->usage.others -= min_u64(to->usage.others, ns);
}

/* It came for less than a turn, or just one. */
static bool is_new(const EngineTenant *t, uint64_t at) {
        return t->usage.joined && since(t->usage.arrived, at) <= TIMESLICE_NS + ARRIVAL_TOLERANCE_NS;
}

static void divide(Engine *e, const Residencies *s, uint64_t at, uint64_t ns) {
        uint64_t contexts = 0;

        for (uint32_t i = 0; i < s->n; i++)
                if (is_there(&s->of[i], at))
                        contexts += contexts_of(tenant_of(e, s, i));
        for (uint32_t i = 0; i < s->n; i++) {
                EngineTenant *t = tenant_of(e, s, i);
                uint64_t its;

                if (!is_there(&s->of[i], at))
                        continue;
                its = ns * contexts_of(t) / contexts;
                have(e, t, its);
                t->usage.others += ns - its;
                t->usage.undecided += is_new(t, at) ? its : 0;
                t->usage.unused += its == ns && at < s->of[i].first_work ? ns : 0;
        }
}

/* Nobody is there; or they are, and do not pay for what noticing takes. */
static void hold(Engine *e, const Residencies *s, uint64_t at, uint64_t ns, bool alone) {
        for (uint32_t i = 0; i < s->n; i++) {
                const Residency *o = &s->of[i];

                if (is_there(o, at) || at >= o->charged_until || (!alone && at < o->to))
                        continue;
                have(e, tenant_of(e, s, i), ns);
                tenant_of(e, s, i)->usage.unused += at < o->from ? ns : 0;
        }
}

/* What o had of the time since it came beside t, who is over now: no turn of o's began before that
 * of t was over. */
static uint64_t had_beside(EngineTenant *t, const EngineTenant *o, uint64_t at) {
        uint64_t together = since(o->usage.arrived, at), expected = t->usage.expected_end;

        if (at <= expected + NOTIFY_LATENCY_NS || together + ARRIVAL_TOLERANCE_NS < TIMESLICE_NS)
                return 0;
        if (t->slice_credit < TIMESLICE_NS || expected + 2 * NOTIFY_LATENCY_NS < o->usage.arrived ||
            expected > o->usage.arrived + ARRIVAL_TOLERANCE_NS)
                return o->usage.undecided;
        t->slice_credit -= TIMESLICE_NS;
        return since(max_u64(expected, o->usage.arrived), at);
}

static void decide(Engine *e, const Residencies *s, EngineTenant *t, uint64_t at) {
        for (uint32_t i = 0; i < s->n; i++) {
                EngineTenant *o = tenant_of(e, s, i);
                uint64_t its;

                if (o == t || !is_there(&s->of[i], at) || o->usage.undecided == 0 || !is_new(o, at) ||
                    o->usage.arrived < t->usage.arrived)
                        continue;
                its = had_beside(t, o, at);
                if (its > o->usage.undecided)
                        hand_over(e, t, o, its - o->usage.undecided);
                else
                        hand_over(e, o, t, o->usage.undecided - its);
                o->usage.undecided = 0;
        }
}

/* Who goes at that time, and who comes. */
static void move(Engine *e, const Residencies *s, uint64_t at) {
        for (uint32_t i = 0; i < s->n; i++) {
                EngineTenant *t = tenant_of(e, s, i);

                if (t->usage.arrived != 0 && s->of[i].to == at)
                        decide(e, s, t, at);
                if (t->usage.arrived == 0 && is_there(&s->of[i], at)) {
                        t->usage.joined = count(s, at) > 1;
                        t->usage.arrived = at;
                }
        }
        for (uint32_t i = 0; i < s->n && count(s, at) == 1; i++)
                if (is_there(&s->of[i], at)) {
                        tenant_of(e, s, i)->usage.joined = false;
                        tenant_of(e, s, i)->usage.undecided = 0;
                }
}

static uint64_t next_change(Engine *e, const Residencies *s, uint64_t at, uint64_t now) {
        uint64_t next = now;

        for (uint32_t i = 0; i < s->n; i++) {
                const Residency *o = &s->of[i];
                const WindowUsage *p = &tenant_of(e, s, i)->usage;
                const uint64_t when[] = {o->from, o->to, o->charged_until, o->first_work,
                                         p->joined ? p->arrived + TIMESLICE_NS + ARRIVAL_TOLERANCE_NS : 0};

                for (unsigned k = 0; k < sizeof when / sizeof when[0]; k++)
                        if (when[k] > at)
                                next = min_u64(next, when[k]);
        }
        return next;
}

void attribute_time(Engine *e, uint64_t now) {
        uint64_t next;
        Residencies s;

        e->beside_overrun = attribute_is_contested(e);
        collect(e, now, &s);
        for (uint64_t at = e->now; at < now; at = next) {
                move(e, &s, at);
                next = next_change(e, &s, at, now);
                divide(e, &s, at, next - at);
                hold(e, &s, at, next - at, count(&s, at) == 0);
        }
        move(e, &s, now);
        for (uint32_t i = 0; i < e->n; i++) {
                EngineTenant *t = &e->tenants[i];

                t->usage.expected_end = window_end_expected(t);
                if (t->window.ignore_backlog) /* all of it, whoever is there */
                        attribute_charge(e, t, (int64_t) (now - e->now));
        }
}

void attribute_leave(EngineTenant *t) {
        t->usage.arrived = t->usage.undecided = 0;
        t->usage.joined = false;
}

void attribute_credit(EngineTenant *t) {
        t->slice_credit = min_u64(2 * TIMESLICE_NS, t->slice_credit + TIMESLICE_NS / 2);
}
