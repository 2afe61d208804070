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
 * has ended. A tenant in OVERRUN gets no window, and the others go on beside its work. A window is
 * charged as the tenant measured it, within what the arbiter saw (window.h). A debt delays the next
 * windows (account.h), so the mean converges whatever the kernel length.
 *
 * The caller passes in the reports (engine_report()) of the tenants that engine_needs_report()
 * names and of those that rang, calls engine_step() and publishes the windows. */

#include "arbiter/engine_state.h"

void engine_init(Engine *e, uint64_t now);

/* Adds a tenant. number, open: the window that a previous arbiter granted, and whether it may still
 * be open; if so, no window opens until it has drained. Returns the tenant's index, which is reused
 * after engine_remove(), or -1 if there are ENGINE_TENANTS. */
int engine_add(Engine *e, uint64_t now, const TenantPolicy *policy, uint32_t number, bool open);
void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy); /* applies at once; debts stay */
void engine_remove(Engine *e, uint32_t i);

/* Stores what the tenant's processes report; charges work that ran outside its windows. */
void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report);

/* Whether the next step needs a new report of this tenant. */
bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now);

/* One step. Returns when the next step is due if no doorbell rings before. After a gap of more than
 * SCHED_STALE_NSEC between two steps, no tenant is charged for the gap. */
uint64_t engine_step(Engine *e, uint64_t now);

/* The two halves of a step: charge the time that passed; then open and close windows. joined_plan()
 * runs between them. */
void engine_advance(Engine *e, uint64_t now);
uint64_t engine_decide(Engine *e, uint64_t now);

/* The tenant with a planned window that has to open now; -1: none. */
int engine_opens_planned(const Engine *e, uint64_t now);
/* Whether the work of earlier windows allows a new window. high: for a high-priority tenant, which
 * waits for at most a quantum of that work. */
bool engine_may_open(const Engine *e, uint64_t now, bool high);
/* Whether work in flight has made no progress for NO_PROGRESS_NS. Its window is not extended:
 * extended windows would never become overdue. */
bool engine_is_stalled(const Engine *e, const EngineTenant *t, uint64_t now);
