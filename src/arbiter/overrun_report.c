/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/overrun_report.h"

#include "arbiter/window.h"

/* Since when the tenant has overdue work: all of its work (OVERRUN), or that of a process that is
 * left out of the report. 0: none. */
static uint64_t overdue_since(const EngineTenant *t) {
        if (t->state == ENGINE_OVERRUN && t->report.in_flight > 0)
                return t->overrun_since;
        return t->state != ENGINE_FREE ? t->report.stuck_since : 0;
}

static bool has_reported(const Engine *e) {
        for (uint32_t i = 0; i < e->n; i++)
                if (overdue_since(&e->tenants[i]) != 0 && e->tenants[i].overrun_reported_at != 0)
                        return true;
        return false;
}

void overrun_report_update(Engine *e, uint64_t now) {
        if (has_reported(e))
                e->reported_overrun_at = now;
        for (uint32_t i = 0; i < e->n; i++)
                if (overdue_since(&e->tenants[i]) == 0)
                        e->tenants[i].overrun_reported_at = 0;
}

static bool report(Engine *e, uint32_t i, uint64_t then, OverrunReport *ret) {
        EngineTenant *t = &e->tenants[i];

        *ret = (OverrunReport){.tenant = i,
                               .since = then,
                               .partial = t->state != ENGINE_OVERRUN,
                               .repeated = t->overrun_reported_at != 0};
        t->overrun_reported_at = e->reported_overrun_at = e->now;
        return true;
}

bool overrun_report_next(Engine *e, OverrunReport *ret) {
        bool reported = has_reported(e);
        uint32_t longest = ENGINE_TENANTS;

        for (uint32_t i = 0; i < e->n; i++) {
                const EngineTenant *t = &e->tenants[i];
                uint64_t late = overdue_since(t);

                if (late == 0)
                        continue;
                if (t->overrun_reported_at != 0 && since(t->overrun_reported_at, e->now) >= e->overrun_limit)
                        return report(e, i, late, ret);
                if (!reported && (longest == ENGINE_TENANTS || late < overdue_since(&e->tenants[longest])))
                        longest = i;
        }
        if (longest == ENGINE_TENANTS)
                return false;
        if (since(max_u64(overdue_since(&e->tenants[longest]), e->reported_overrun_at), e->now) <
            e->overrun_limit)
                return false;
        return report(e, longest, max_u64(overdue_since(&e->tenants[longest]), e->reported_overrun_at), ret);
}
