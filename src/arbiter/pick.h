/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses the tenant of the next window: by rank, and within a rank by how far it is behind. Ranks,
 * highest first: high priority with tokens; a cap with tokens for a window; the smallest virtual
 * clock; high priority without tokens. */

#include <stddef.h>

#include "arbiter/engine_state.h"

/* The best tenant that waits for a window and may have one now; -1: none. but: a tenant that is not
 * considered; NULL: all are. closing: also consider tenants whose last window has not drained. */
int pick_next(const Engine *e, const EngineTenant *but, bool closing, uint64_t now);

static inline const EngineTenant *pick_tenant(const Engine *e, int i) {
        return i >= 0 ? &e->tenants[i] : NULL;
}

/* Whether the owner of the window ranks before a tenant that waits (NULL: none) after it is charged
 * `more` ns and a quantum. */
bool pick_keeps_owner(const Engine *e, const EngineTenant *owner, const EngineTenant *other, uint64_t more);

/* Whether the account of t allows a window, and t comes before another one of its card (NULL:
 * none). */
bool pick_is_first(const EngineTenant *t, const EngineTenant *other);

/* Whether tenant t of e comes before tenant u of f by rank and account. The cards may differ. */
bool pick_is_before(const Engine *e, const EngineTenant *t, const Engine *f, const EngineTenant *u);

/* The earliest time at which the account and the back-off of a tenant allow its next window. */
uint64_t pick_ready_at(const EngineTenant *t, uint64_t now);

/* The earliest time at which a waiting tenant other than `but` may have a window; UINT64_MAX: no
 * tenant waits. */
uint64_t pick_earliest(const Engine *e, const EngineTenant *but, bool closing, uint64_t now);
