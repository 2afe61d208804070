/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of gangs.c share: gangs_watch.c takes in pods, gangs_turn.c decides whose turn it
 * is and what time has ended, gangs_answer.c answers filter and bind. gangs.c has the attempt and
 * the states. */

#include "scheduler/gang/gangs.h"

#define REASON_GANGS_WAITING    "GangWaiting"
#define REASON_GANGS_ASSEMBLING "GangAssembling"

/* Writes an Event on each of the oldest members that are not bound: people look at those. */
void gangs_tell(Gangs *gs, const Gang *g, const char *reason, const char *note);

/* ---- what a member holds ---- */

void gangs_end_hold(Gangs *gs, GangMember *m, usec_t now);
/* Tells that the node of the member's place gets room, because the place is about to end. */
void gangs_tell_room(Gangs *gs, const GangMember *m);
void gangs_end_place(Gangs *gs, GangMember *m);
void gangs_end_places(Gangs *gs, Gang *g);

/* ---- the attempt ---- */

void gangs_begin(Gangs *gs, Gang *g, usec_t now);

/* Answers all held Binds of the gang with `why`, and ends its places and its attempt. */
void gangs_give_back(Gangs *gs, Gang *g, const char *why, usec_t now);

/* Tells pods that wait for the gang (on_settled) that an attempt ended in which no member had a
 * place. Otherwise the end of a place or the grant of a member tells them. */
void gangs_tell_settled(const Gangs *gs);

/* Ends a failed attempt; the gang waits for its next one. The caller has set g->why. */
void gangs_give_up(Gangs *gs, Gang *g, usec_t now);
usec_t gangs_backoff(unsigned failures);

/* No node can take the member in this attempt; `why` says so in words for people. Its place ends,
 * and another member may get the room. When too few members are left, the attempt is given up. */
void gangs_fail_member(Gangs *gs, GangMember *m, const char *why, usec_t now);
void gangs_clear_failure(GangMember *m); /* a node can take it after all */

/* kube-scheduler or the API server has just handled a member of the gang that is being placed: the
 * attempt is not idle. */
void gangs_note_asked(Gangs *gs, usec_t now);
/* Sends the patch that wakes the member, unless one is under way. */
void gangs_wake(Gangs *gs, GangMember *m, usec_t now);
bool gangs_may_wake_again(const GangMember *m, usec_t now);

/* Sets the gang's state by its members and the time; begins no attempt. Does nothing while a hook
 * is called. */
void gangs_settle(Gangs *gs, Gang *g, usec_t now);
