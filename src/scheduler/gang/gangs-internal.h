/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of gangs.c share: gangs_watch.c takes in pods, gangs_turn.c decides whose turn it
 * is and what time has ended, gangs_answer.c answers filter and bind. gangs.c has the attempt and
 * the states. */

#include "scheduler/gang/gangs.h"

#define REASON_GANGS_WAITING    "GangWaiting"
#define REASON_GANGS_ASSEMBLING "GangAssembling"

/* An Event on the oldest members, which are those that people look at. */
void gangs_tell(Gangs *gs, const Gang *g, const char *reason, const char *note);

/* ---- what a member holds ---- */

void gangs_end_hold(Gangs *gs, GangMember *m, usec_t now);
void gangs_tell_room(Gangs *gs, const GangMember *m); /* its place ends now */
void gangs_end_place(Gangs *gs, GangMember *m);
void gangs_end_places(Gangs *gs, Gang *g);

/* ---- the attempt ---- */

void gangs_begin(Gangs *gs, Gang *g, usec_t now);

/* Answers all held Binds, and ends the plan. */
void gangs_give_back(Gangs *gs, Gang *g, const char *why, usec_t now);

/* The attempt has ended, and no member had a place in it. So no place ends, and no member gets a
 * grant, which would tell that other pods need not wait any more. */
void gangs_tell_settled(const Gangs *gs);

/* The attempt has failed; why: in g->why. */
void gangs_give_up(Gangs *gs, Gang *g, usec_t now);
usec_t gangs_backoff(unsigned failures);

/* No node can take the member in this attempt; why: in words for people. Its place is free for
 * another member. The attempt is given up when the others are too few. */
void gangs_fail_member(Gangs *gs, GangMember *m, const char *why, usec_t now);
void gangs_clear_failure(GangMember *m); /* a node can take it */

/* A sign of life that concerns the gang that is being placed. */
void gangs_note_asked(Gangs *gs, usec_t now);
void gangs_wake(Gangs *gs, GangMember *m, usec_t now);
bool gangs_may_wake_again(const GangMember *m, usec_t now);

/* The state by what is known now. */
void gangs_settle(Gangs *gs, Gang *g, usec_t now);
