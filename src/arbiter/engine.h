/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arbiter of one card: who may launch now, until when, and with how much in flight. Pure: no
 * clock, no I/O, no allocation. Times are ns of one clock that the caller has.
 *
 * One window is open at a time. It is opened when the one before is over: all that was launched in
 * it has ended, or will have ended by the time that the next one's first kernel can be there; or
 * its owner has not let us know for too long, and is overdue: it gets no other window before it
 * has, but for what may be what its work waits for, and what it still does is charged to it.
 * Windows are a quantum long and are charged by what was used, so what one is too long the next
 * ones are later (account.h).
 *
 * What a tenant says is believed as far as it cannot be more than the truth: it used at least the
 * time that its window was not over, less what noticing takes, and at most that time.
 *
 * The caller tells what it has read (engine_report) of those that engine_needs_report() names, and of
 * whoever rang; then asks for a step, and does what the turns say. Numbers of tenants are the
 * caller's to keep; a number is used again after engine_remove(). */

#include "arbiter/engine_tenant.h"

enum { ENGINE_TENANTS = 128 };

typedef struct EngineOverrun {
        uint32_t tenant;
        uint64_t since;         /* its window closed then, and its work has not ended */
        bool partial, repeated; /* others of its processes go on; told before, and lasts */
} EngineOverrun;

typedef struct Engine {
        EngineTenant tenants[ENGINE_TENANTS];
        uint32_t n;                /* those beyond are free */
        int32_t owner;             /* of the open window; -1: none is open */
        uint64_t now, next_step;   /* of the last step, and when it asked to be called again */
        int64_t virtual_clocks[2]; /* of the conserving: of the others, and of those with high priority */
        uint64_t overhead;         /* ns of a window that are not its owner's fault, a moving mean */
        uint64_t overrun_limit;    /* ns */
        uint64_t
                overrun_blamed_at; /* when a kernel that hangs was last on the card: others may wait for it */
        bool beside_overrun;       /* overdue work is on the card */
        uint64_t high_until;       /* somebody who comes first had work until then, and may come again */
} Engine;

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

/* Kernels that have run for longer than e->hung, and each e->hung that they last. Of several the
 * one that has run longest; another's time counts from when that one is gone, because until then it
 * may have waited for it. False: there is none. */
bool engine_next_overrun(Engine *e, EngineOverrun *ret);
