/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter of one card: which tenant may launch now, until when, and with how much in flight.
 * Pure: no clock, no I/O, no allocation. Times are ns of one clock that the caller has.
 *
 *     CLOSED --pick.c: best rank--> OPEN --its end, idle, or a higher rank--> CLOSING
 *     CLOSING --all its work has ended: charged--> CLOSED
 *     CLOSING --not drained after the timeout--> OVERRUN --drained: charged--> CLOSED
 *
 * One window is open at a time, and the next one opens just before the work of the one before it
 * has ended. A tenant in OVERRUN gets no window, and the others go on beside its work. What a
 * window cost is charged by what the tenant measured, within what the arbiter saw (window.h); a
 * debt delays the next windows (account.h), so the mean converges whatever the kernel length.
 *
 * The caller reports what it has read (engine_report()) of the tenants that engine_needs_report()
 * names and of those that rang, then calls engine_step() and publishes the windows. */

#include "arbiter/engine_state.h"

void engine_init(Engine *e, uint64_t now);

/* number, open: of the window that another arbiter granted, and whether it may still be open: then
 * none opens before it has drained. Returns the tenant's number, which is used again after
 * engine_remove(), or -1: there are ENGINE_TENANTS. */
int engine_add(Engine *e, uint64_t now, const TenantPolicy *policy, uint32_t number, bool open);
void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy); /* at once; debts stay */
void engine_remove(Engine *e, uint32_t i);

void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report);

/* Whether the next step depends on this tenant's report. */
bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now);

/* Returns when the next step is due, if no doorbell rings before. A step that comes more than
 * SCHED_STALE_NSEC after the last one charges no tenant for the time between. */
uint64_t engine_step(Engine *e, uint64_t now);

/* The two halves of a step: time passes, and windows open and close. joined_plan() comes between
 * them. */
void engine_pass(Engine *e, uint64_t now);
uint64_t engine_decide(Engine *e, uint64_t now);

/* Whether a window may open as far as the work of the ones before it goes. */
bool engine_may_open(const Engine *e, uint64_t now, bool high);
/* Work in flight that has not moved for so long will not: a window that went on for it would never
 * be late. */
bool engine_is_stalled(const Engine *e, const EngineTenant *t, uint64_t now);
