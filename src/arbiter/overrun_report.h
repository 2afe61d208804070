/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds work to report: kernels that are still on the card long after their window closed. The
 * caller updates at each step and then asks for reports until there are none. */

#include "arbiter/engine_state.h"

/* Updates the times of reports. While reported work lasts, other tenants' work may wait for it, and
 * that time does not count against them. now: ns. */
void overrun_report_update(Engine *e, uint64_t now);

typedef struct OverrunReport {
        uint32_t tenant;
        uint64_t since;         /* overdue since its window closed, or since other reported work ended */
        bool partial, repeated; /* only some of the tenant's processes are stuck; it was reported before */
} OverrunReport;

/* Returns the next report: of work that is overdue by more than e->overrun_limit, and again after
 * each further e->overrun_limit. Of several, the oldest is reported; the time of the others counts
 * from its end, because they may have waited for it. False: no report is due. */
bool overrun_report_next(Engine *e, OverrunReport *ret);
