/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/hung.h"

/* Since when work of it is late: all of it, or of a process that is left out. 0: none is. */
static uint64_t stuck_since(const EngineTenant *t) {
        if (is_overdue(t) && t->says.in_flight > 0)
                return t->overdue.hung_from;
        return t->state != ENGINE_FREE ? t->says.stuck : 0;
}

static bool is_stuck(const EngineTenant *t) {
        return is_overdue(t) || stuck_since(t) != 0;
}

/* Somebody's kernel was told of, and is not over. */
static bool is_blamed(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (is_stuck(&e->tenants[i]) && e->tenants[i].told)
                        return true;
        return false;
}

void hung_look(Engine *e, uint64_t now) {
        if (is_blamed(e))
                e->blamed = now;
}

/* -1: nobody is overdue. */
static int longest_overdue(const Engine *e) {
        int longest = -1;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (stuck_since(t) != 0 &&
                    (longest < 0 || stuck_since(t) < stuck_since(&e->tenants[longest])))
                        longest = (int) i;
        }
        return longest;
}

static bool tell(Engine *e, uint32_t i, uint64_t since_, EngineEvent *ret) {
        EngineTenant *t = &e->tenants[i];

        *ret = (EngineEvent){.tenant = i, .since = since_, .part = !is_overdue(t), .again = t->told};
        t->told = true;
        t->told_at = e->now;
        e->blamed = e->now;
        return true;
}

bool engine_event(Engine *e, EngineEvent *ret) {
        int i = is_blamed(e) ? -1 : longest_overdue(e);
        uint64_t begun = i < 0 ? 0 : max_u64(stuck_since(&e->tenants[i]), e->blamed);

        for (uint32_t k = 0; i < 0 && k < e->n; k++)
                if (e->tenants[k].told && stuck_since(&e->tenants[k]) != 0 &&
                    since(e->tenants[k].told_at, e->now) >= e->hung)
                        return tell(e, k, stuck_since(&e->tenants[k]), ret);
        if (i < 0 || since(begun, e->now) < e->hung)
                return false;
        return tell(e, (uint32_t) i, begun, ret);
}
