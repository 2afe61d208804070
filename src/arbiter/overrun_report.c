/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/overrun_report.h"

#include "arbiter/engine_helpers.h"

/* Since when work of it is late: all of it, or of a process that is left out. 0: none is. */
static uint64_t stuck_since(const EngineTenant *t) {
        if (is_overrun(t) && t->report.in_flight > 0)
                return t->overrun.hung_since;
        return t->state != ENGINE_FREE ? t->report.stuck_since : 0;
}

static bool is_stuck(const EngineTenant *t) {
        return is_overrun(t) || stuck_since(t) != 0;
}

/* Somebody's kernel was told of, and is not over. */
static bool is_blamed(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (is_stuck(&e->tenants[i]) && e->tenants[i].overrun_reported)
                        return true;
        return false;
}

void overrun_report_update(Engine *e, uint64_t now) {
        if (is_blamed(e))
                e->overrun_blamed_at = now;
}

/* -1: nobody is overdue. */
static int longest_overrun(const Engine *e) {
        int longest = -1;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];

                if (stuck_since(t) != 0 &&
                    (longest < 0 || stuck_since(t) < stuck_since(&e->tenants[longest])))
                        longest = (int) i;
        }
        return longest;
}

static bool report(Engine *e, uint32_t i, uint64_t since_, OverrunReport *ret) {
        EngineTenant *t = &e->tenants[i];

        *ret = (OverrunReport){
                .tenant = i, .since = since_, .partial = !is_overrun(t), .repeated = t->overrun_reported};
        t->overrun_reported = true;
        t->overrun_reported_at = e->now;
        e->overrun_blamed_at = e->now;
        return true;
}

bool overrun_report_next(Engine *e, OverrunReport *ret) {
        int i = is_blamed(e) ? -1 : longest_overrun(e);
        uint64_t begun = i < 0 ? 0 : max_u64(stuck_since(&e->tenants[i]), e->overrun_blamed_at);

        for (uint32_t k = 0; i < 0 && k < e->n; k++)
                if (e->tenants[k].overrun_reported && stuck_since(&e->tenants[k]) != 0 &&
                    since(e->tenants[k].overrun_reported_at, e->now) >= e->overrun_limit)
                        return report(e, k, stuck_since(&e->tenants[k]), ret);
        if (i < 0 || since(begun, e->now) < e->overrun_limit)
                return false;
        return report(e, (uint32_t) i, begun, ret);
}
