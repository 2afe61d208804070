/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter of one card: who may launch now, until when, and with how much in flight. Pure: no
 * clock, no I/O, no allocation. Times are ns of one clock that the caller has.
 *
 * One window is open at a time. It is opened when the one before is over: all that was launched in
 * it has ended, or will have ended by the time that the next one's first kernel can be there; or
 * its owner has not let us know for too long, and is overdue: it gets no other window before it
 * has, but for what may be what its work waits for, and what it still does is charged to it.
 * Windows last about 1 to 9 ms, 20 ms alone (window.c), and are charged by what was used, so what
 * one is too long the next ones are later (account.h).
 *
 * What a tenant says is believed as far as it cannot be more than the truth: it used at least the
 * time that its window was not over, less what noticing takes, and at most that time.
 *
 * The caller tells what it has read (engine_report) of those that engine_needs_report() names, and of
 * whoever rang; then asks for a step, and does what the windows say. Numbers of tenants are the
 * caller's to keep; a number is used again after engine_remove(). */

#include "arbiter/engine_state.h"

void engine_init(Engine *e, uint64_t now);

/* number, open: of a window from an arbiter before us, and whether it may still be; then nothing is
 * opened before that is over. The tenant's number, or -1: ENGINE_TENANTS are there already. */
int engine_add(Engine *e, uint64_t now, const TenantPolicy *policy, uint32_t number, bool open);
void engine_set_policy(Engine *e, uint32_t i, const TenantPolicy *policy); /* at once; what it owes stays */
void engine_remove(Engine *e, uint32_t i);

void engine_report(Engine *e, uint64_t now, uint32_t i, const TenantReport *report);

/* Whether the next step depends on what this one says now. */
bool engine_needs_report(const Engine *e, uint32_t i, uint64_t now);

/* Returns when it wants to be called again, should nobody ring before. One more than SCHED_STALE_NSEC
 * after the last charges nobody for it. */
uint64_t engine_step(Engine *e, uint64_t now);
