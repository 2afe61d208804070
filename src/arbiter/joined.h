/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Containers with slices on several cards: their windows open and close together, because each rank
 * of such a program waits on its card for the other ranks. Pure, above the engines of the cards: it
 * reads them, and writes what they do next (EngineTenant.until, Engine.reserved, Engine.planned).
 *
 *     HELD --each card's account allows it, and no tenant of one card comes first--> WAITS
 *     WAITS --all cards are free: a window on each--> OPEN --its end: closed on each--> ENDS
 *     WAITS --a card idles for JOINED_DRAIN_NS, and another is not free--> HELD
 *     ENDS --all cards have drained, or JOINED_DRAIN_NS have passed--> HELD
 *
 * Times are ns of the engines' clock. */

#include "arbiter/engine.h"

enum { JOINED_SETS = 128, JOINED_CARDS = 32 };

typedef struct JoinedMember {
        Engine *engine;
        EngineTenant *tenant;
} JoinedMember;

typedef struct JoinedSet { /* a container's tenants that have work */
        JoinedMember members[JOINED_CARDS];
        uint32_t n;
        uint64_t until; /* the end of its newest window; 0: it had none */
        bool waits;     /* it may have a window now */
} JoinedSet;

typedef struct Joined {
        JoinedSet sets[JOINED_SETS]; /* at EngineTenant.set - 1 */
        uint32_t n;                  /* those beyond were never used */
        uint64_t next;               /* plan again then, even if no card's step is due; UINT64_MAX: never */
} Joined;

/* The plan reads the accounts of the cards, as of their last pass. So when its time has come, the
 * cards of sets are passed before it, and decided. */
static inline bool joined_is_due(const Joined *j, const Engine *e, uint64_t now) {
        return e->held && now >= j->next;
}

/* Plans the windows of all sets. Between engine_pass() of the cards that are due, and
 * engine_decide() of these and of those that it marks as planned. All zero: a new Joined. */
void joined_plan(Joined *j, Engine *const engines[], uint32_t n, uint64_t now);
