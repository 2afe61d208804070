/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/overrun_report.h"

#include "arbiter/window.h"

/* Since when work of it is late: all of it, or of a process that is left out. 0: none is. */
static uint64_t late_since(const EngineTenant *t) {
        if (window_is_overrun(t) && t->report.in_flight > 0)
                return t->overrun_since;
        return t->state != ENGINE_FREE ? t->report.stuck_since : 0;
}

static bool is_blamed(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (late_since(&e->tenants[i]) != 0 && e->tenants[i].told_at != 0)
                        return true;
        return false;
}

void overrun_report_update(Engine *e, uint64_t now) {
        if (is_blamed(e))
                e->blamed_at = now;
        for (uint32_t i = 0; i < e->n; i++)
                if (late_since(&e->tenants[i]) == 0)
                        e->tenants[i].told_at = 0;
}

static bool report(Engine *e, uint32_t i, uint64_t then, OverrunReport *ret) {
        EngineTenant *t = &e->tenants[i];

        *ret = (OverrunReport){
                .tenant = i, .since = then, .partial = !window_is_overrun(t), .repeated = t->told_at != 0};
        t->told_at = e->blamed_at = e->now;
        return true;
}

bool overrun_report_next(Engine *e, OverrunReport *ret) {
        bool blamed = is_blamed(e);
        uint32_t longest = ENGINE_TENANTS;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                uint64_t late = late_since(t);

                if (late == 0)
                        continue;
                if (t->told_at != 0 && since(t->told_at, e->now) >= e->overrun_limit)
                        return report(e, i, late, ret);
                if (!blamed && (longest == ENGINE_TENANTS || late < late_since(&e->tenants[longest])))
                        longest = i;
        }
        if (longest == ENGINE_TENANTS)
                return false;
        if (since(max_u64(late_since(&e->tenants[longest]), e->blamed_at), e->now) < e->overrun_limit)
                return false;
        return report(e, longest, max_u64(late_since(&e->tenants[longest]), e->blamed_at), ret);
}
