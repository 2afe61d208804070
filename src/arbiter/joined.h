/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Joined windows: a container with slices on several cards gets its windows on all of them at the
 * same time. Each rank of such a program waits for the ranks on the other cards. Pure. The
 * plan reads the engines and writes what they do next (EngineTenant.planned_end, Engine.reserved,
 * Engine.planned). Times are ns of the engines' clock.
 *
 *     HELD --every account allows it, and it is first on every card--> WAITS
 *     WAITS --all cards are free: opens a window on each--> OPEN --its end: closes them--> ENDS
 *     WAITS --one card has idled for JOINED_DRAIN_NS, another is not free--> HELD
 *     ENDS --all cards have drained, or JOINED_DRAIN_NS have passed--> HELD */

#include "arbiter/engine.h"

enum { JOINED_SETS = 128, JOINED_CARDS = 32 };

typedef struct JoinedMember {
        Engine *engine;
        EngineTenant *tenant;
} JoinedMember;

typedef struct JoinedSet { /* the tenants of one container that have work */
        JoinedMember members[JOINED_CARDS];
        uint32_t n;
        uint64_t end; /* end of its newest window; 0: it had none */
        bool ready;   /* it is ready for a window now */
        bool overdue; /* a member's work is in OVERRUN */
} JoinedSet;

typedef struct Joined {
        JoinedSet sets[JOINED_SETS]; /* index: EngineTenant.set - 1 */
        uint32_t n;                  /* entries in use */
        uint64_t next;               /* plan again by then, even if no card is due; UINT64_MAX: never */
} Joined;

/* Whether a card with planned tenants is stepped because the plan is due: the plan needs accounts
 * that are up to date. */
static inline bool joined_is_due(const Joined *j, const Engine *e, uint64_t now) {
        return e->n_planned > 0 && now >= j->next;
}

/* Plans the windows of all sets. Call it after engine_advance() of the cards that are due and
 * before engine_decide() of these and of the cards that it marks as planned. A new Joined is all
 * zero. n: at most JOINED_CARDS engines. */
void joined_plan(Joined *j, Engine *const engines[], uint32_t n, uint64_t now);
