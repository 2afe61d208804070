/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which tenant gets the next window: by rank, and within a rank by how far it is behind. Ranks,
 * highest first: high priority with tokens; a cap with tokens for a window; the smallest virtual
 * clock; high priority without tokens. */

#include "arbiter/engine_state.h"

/* The best of the tenants that want a window and may have one now; -1: none. but: this one does not
 * count (NULL: all do). closing: those whose last window has not drained yet count as well. */
int pick_next(const Engine *e, const EngineTenant *but, bool closing, uint64_t now);

/* Whether the owner goes on although `waiting` (-1: none) waits, after `more` ns were charged. */
bool pick_keeps_owner(const Engine *e, const EngineTenant *owner, int waiting, uint64_t more);

/* Whether it may have a window by its account, and comes before `other` of the same card (-1: none). */
bool pick_is_first(const Engine *e, const EngineTenant *t, int other);

/* Which of two tenants, maybe of two cards, is next by rank and account. */
bool pick_is_before(const Engine *e, const EngineTenant *t, const Engine *f, const EngineTenant *u);

/* When its account and its pauses let a tenant have a window. */
uint64_t pick_ready_at(const EngineTenant *t, uint64_t now);

/* When the next tenant that wants a window may have one; UINT64_MAX: none wants any. */
uint64_t pick_earliest(const Engine *e, bool closing, uint64_t now);
