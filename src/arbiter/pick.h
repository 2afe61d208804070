/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which tenant gets the next window: by rank, and within a rank by how far it is behind. */

#include "arbiter/engine_helpers.h"

/* Whether those count as waiting whose windows are not over yet, too. */
typedef enum PickAmong { PICK_CLOSED, PICK_CLOSING } PickAmong;

/* Who of those that wait is next; -1: nobody may. */
int pick_next(const Engine *e, PickAmong among, uint64_t now);

/* Whether the owner keeps the card although this one waits, once it has been charged so much
 * more. */
bool pick_keeps_owner(const Engine *e, const EngineTenant *owner, int waiting, uint64_t more);

/* Whether this conserving one has the card only as long as another one, which is before it by more
 * than a window, is at a pause; and whether one that waits is such another. */
bool pick_lends(const Engine *e, const EngineTenant *t);
bool pick_reclaims(const EngineTenant *waiting, const EngineTenant *owner);

/* When the next of those that have no tokens yet has them; UINT64_MAX: nobody waits for any. */
uint64_t pick_earliest(const Engine *e, PickAmong among, uint64_t now);

/* The longest engine_preopen() of those that wait. */
uint64_t pick_longest_preopen(const Engine *e);

/* When it may be that its work waits for what it launches next; UINT64_MAX: nothing waits.
 *
 * Work that was launched may wait for a launch that is still to come. So an overdue tenant with a
 * waiting launch gets windows behind that work, as its account allows, when nothing has moved for
 * so long: soon where its report says that nothing has begun, seldom where a kernel may be long. */
uint64_t pick_backlog_from(const EngineTenant *t);
