/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The first half of a step of the engine. The time since the last step is earned by the accounts.
 * It is charged to windows, to work in OVERRUN and to cards that idle for a joined set. */

#include "arbiter/engine_state.h"

/* Accounts for the time since the last step. now: ns, not before e->now. */
void engine_time_charge(Engine *e, uint64_t now);

/* The same after a gap of more than SCHED_STALE_NSEC, in which the launch hooks limited themselves
 * (duty.h). No tenant is charged and none earns. Any tenant may have work on the card, so all have
 * to drain. */
void engine_time_skip(Engine *e, uint64_t now);
