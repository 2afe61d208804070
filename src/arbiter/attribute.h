/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whose the card's time is. As it passes it is divided between those who are on the card, each pays
 * for his part at once, and the parts are all of it:
 *
 *   nobody is there            the one who has the window
 *   one is there               that one, though another one has the window by now and is not there yet
 *   several are there          the card takes turns between their contexts
 *   one comes, another goes    together for less than a time slice: the one that was there had all of it, as its slice was not
 *                              over. For just a slice: the one that came had it, if the other had hardly anything left then */

#include "arbiter/engine_helpers.h"

/* All that has passed since e->now. Others' time beside work that is overdue is all theirs until
 * that is over. */
void attribute_time(Engine *e, uint64_t now);

/* What else it costs a tenant, ns; below zero: what it had too much of. */
void attribute_charge(Engine *e, EngineTenant *t, int64_t ns);

/* So much of what it had it had not: nobody was there. */
void attribute_return(Engine *e, EngineTenant *t, uint64_t ns);

/* It rests, or its window is over: when it comes again it comes anew. */
void attribute_leave(EngineTenant *t);

/* A window of it is over. In every other window a time slice beside its last work counts as another
 * tenant's. So a tenant that says that it is done and runs on for a slice gains half of that. */
void attribute_credit(EngineTenant *t);

/* Overdue work is on the card. */
bool attribute_is_contested(const Engine *e);

/* So many of a tenant's processes take turns with others'. */
uint64_t attribute_contexts(uint32_t processes);
