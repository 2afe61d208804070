/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/split.h"

#include <stddef.h>

#include "arbiter/until.h"

#define TURN UINT64_C(1000000) /* ns: so long the card stays with one context while another one has work */
#define NEAR (3 * HOP)         /* ns: as exactly as it is known when somebody came and went */

enum { CONTEXTS = 16 }; /* of one tenant that count, at most */

/* Of one who has a window that is not over. */
typedef struct Stay {
        uint32_t tenant;
        uint64_t from, to; /* it counts as there */
        uint64_t begins;   /* its first work is there */
        uint64_t
                pays; /* to notice that it went takes until then: that it pays for, whoever is there by now */
} Stay;

typedef struct Stays {
        Stay of[ENGINE_TENANTS];
        uint32_t n;
} Stays;

static EngineTenant *tenant_of(Engine *e, const Stays *s, uint32_t i) {
        return &e->tenants[s->of[i].tenant];
}

static bool has_window(const EngineTenant *t) {
        return (t->state == ENGINE_OPEN || t->state == ENGINE_CLOSING) && !t->turn.behind && !rests(t);
}

static uint64_t begin_of(const EngineTenant *t) {
        if (!has_come(t))
                return UINT64_MAX;
        return t->began != 0 ? t->began : t->opened;
}

/* Who comes later than LAG only says so: others share with him all the same. */
static uint64_t from_when(const EngineTenant *t) {
        return t->part.came != 0 ? t->part.came : min_u64(begin_of(t), t->from + LAG);
}

static void collect(const Engine *e, uint64_t now, Stays *ret) {
        ret->n = 0;
        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (has_window(t))
                        ret->of[ret->n++] = (Stay){.tenant = i,
                                                   .from = max_u64(from_when(t), e->now),
                                                   .to = max_u64(until_stayed(t, now), e->now),
                                                   .begins = begin_of(t),
                                                   .pays = max_u64(until_over(t, now), e->now)};
        }
}

static bool is_there(const Stay *s, uint64_t at) {
        return s->from <= at && at < s->to;
}

static uint32_t count(const Stays *s, uint64_t at) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < s->n; i++)
                n += is_there(&s->of[i], at);
        return n;
}

bool split_is_contested(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (is_overdue(&e->tenants[i]))
                        return true;
        return false;
}

uint64_t split_contexts(uint32_t processes) {
        return max_u64(1, min_u64(processes, CONTEXTS));
}

static uint64_t contexts_of(const EngineTenant *t) {
        return split_contexts(t->says.n_working);
}

void split_charge(Engine *e, EngineTenant *t, int64_t ns) {
        account_charge(&t->account, &t->terms, ns, clock_of(e, &t->terms));
        if (ns < 0) {
                t->paid -= min_u64(t->paid, (uint64_t) -ns);
                t->turn.used -= min_u64(t->turn.used, (uint64_t) -ns);
        } else {
                t->paid += (uint64_t) ns;
                t->turn.used += (uint64_t) ns;
        }
}

static void have(Engine *e, EngineTenant *t, uint64_t ns) {
        split_charge(e, t, (int64_t) ns);
        t->part.had += ns;
        t->contested += e->beside_overdue ? ns : 0;
}

void split_return(Engine *e, EngineTenant *t, uint64_t ns) {
        split_charge(e, t, -(int64_t) ns);
        t->part.had -= ns;
        t->contested -= min_u64(t->contested, ns);
}

static void hand_over(Engine *e, EngineTenant *from, EngineTenant *to, uint64_t ns) {
        ns = min_u64(ns, from->part.had);
        split_return(e, from, ns);
        from->part.turns += ns;
        have(e, to, ns);
        to->part.turns -= min_u64(to->part.turns, ns);
}

/* It came for less than a turn, or just one. */
static bool is_new(const EngineTenant *t, uint64_t at) {
        return t->part.second && since(t->part.came, at) <= TURN + NEAR;
}

static void divide(Engine *e, const Stays *s, uint64_t at, uint64_t ns) {
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
                t->part.turns += ns - its;
                t->part.undecided += is_new(t, at) ? its : 0;
                t->part.unused += its == ns && at < s->of[i].begins ? ns : 0;
        }
}

/* Nobody is there; or they are, and do not pay for what noticing takes. */
static void hold(Engine *e, const Stays *s, uint64_t at, uint64_t ns, bool alone) {
        for (uint32_t i = 0; i < s->n; i++) {
                const Stay *o = &s->of[i];

                if (is_there(o, at) || at >= o->pays || (!alone && at < o->to))
                        continue;
                have(e, tenant_of(e, s, i), ns);
                tenant_of(e, s, i)->part.unused += at < o->from ? ns : 0;
        }
}

/* What o had of the time since it came beside t, who is over now: no turn of o's began before that
 * of t was over. */
static uint64_t had_beside(EngineTenant *t, const EngineTenant *o, uint64_t at) {
        uint64_t together = since(o->part.came, at), expected = t->part.expected;

        if (at <= expected + HOP || together + NEAR < TURN)
                return 0;
        if (t->trust < TURN || expected + 2 * HOP < o->part.came || expected > o->part.came + NEAR)
                return o->part.undecided;
        t->trust -= TURN;
        return since(max_u64(expected, o->part.came), at);
}

static void decide(Engine *e, const Stays *s, EngineTenant *t, uint64_t at) {
        for (uint32_t i = 0; i < s->n; i++) {
                EngineTenant *o = tenant_of(e, s, i);
                uint64_t its;

                if (o == t || !is_there(&s->of[i], at) || o->part.undecided == 0 || !is_new(o, at) ||
                    o->part.came < t->part.came)
                        continue;
                its = had_beside(t, o, at);
                if (its > o->part.undecided)
                        hand_over(e, t, o, its - o->part.undecided);
                else
                        hand_over(e, o, t, o->part.undecided - its);
                o->part.undecided = 0;
        }
}

/* Who goes at that time, and who comes. */
static void move(Engine *e, const Stays *s, uint64_t at) {
        for (uint32_t i = 0; i < s->n; i++) {
                EngineTenant *t = tenant_of(e, s, i);

                if (t->part.came != 0 && s->of[i].to == at)
                        decide(e, s, t, at);
                if (t->part.came == 0 && is_there(&s->of[i], at)) {
                        t->part.second = count(s, at) > 1;
                        t->part.came = at;
                }
        }
        for (uint32_t i = 0; i < s->n && count(s, at) == 1; i++)
                if (is_there(&s->of[i], at)) {
                        tenant_of(e, s, i)->part.second = false;
                        tenant_of(e, s, i)->part.undecided = 0;
                }
}

static uint64_t next_change(Engine *e, const Stays *s, uint64_t at, uint64_t now) {
        uint64_t next = now;

        for (uint32_t i = 0; i < s->n; i++) {
                const Stay *o = &s->of[i];
                const Part *p = &tenant_of(e, s, i)->part;
                const uint64_t when[] = {o->from, o->to, o->pays, o->begins,
                                         p->second ? p->came + TURN + NEAR : 0};

                for (unsigned k = 0; k < sizeof when / sizeof when[0]; k++)
                        if (when[k] > at)
                                next = min_u64(next, when[k]);
        }
        return next;
}

void split_time(Engine *e, uint64_t now) {
        uint64_t next;
        Stays s;

        e->beside_overdue = split_is_contested(e);
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

                t->part.expected = until_expected(t);
                if (t->turn.behind) /* all of it, whoever is there */
                        split_charge(e, t, (int64_t) (now - e->now));
        }
}

void split_leave(EngineTenant *t) {
        t->part.came = t->part.undecided = 0;
        t->part.second = false;
}

void split_trust(EngineTenant *t) {
        t->trust = min_u64(2 * TURN, t->trust + TURN / 2);
}
