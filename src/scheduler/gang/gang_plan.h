/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The plan of a gang: a grant in the ledger for each member that asks for cards. All are made at
 * once, so that no other pod takes the room of the later ones. These grants have no UID. A
 * member's place ends when its own grant is made, and with the attempt.
 *
 * It is greedy: members with the fewest nodes go first, then the largest, each to the node that
 * placement_rank() likes best. Members that kube-scheduler called unschedulable go last, so that
 * they take no place from others. A gang may therefore be refused where a cleverer order would find
 * room. Members of one kind that ask for whole cards are placed together (share/job_placement.h),
 * on the fewest nodes. */

#include "scheduler/gang/gang_table.h"

/* Gives a place to every ready member that asks for cards and has none. Returns how many ready
 * members could be bound now, with those that need no cards; or -ENOMEM.
 *
 * When these are too few, the places are made once more. The nodes that a kind was offered in an
 * earlier attempt are forgotten first: another node may have cpu for it now. */
int gang_plan_make(Gang *g, Ledger *l);

/* A place for one member among these nodes (NULLs are passed over): 0, 1 when none has room, or
 * -ENOMEM. An earlier place ends in the case of 0. */
int gang_plan_place(GangMember *m, Ledger *l, const LedgerNode *const *nodes, size_t n);

/* 0: the node has no room for the member; 1: it has; 2: it may also have been offered to it. */
unsigned gang_plan_fit(const GangMember *m, const LedgerNode *node);

/* Exchanges the places of the member and of another one of its kind that has one on one of these
 * nodes (NULLs are passed over). Not with a member that is held, or that filter has sent there.
 * False when there is none. */
bool gang_plan_swap(GangMember *m, const LedgerNode *const *nodes, size_t n);

/* A place on the node that the member has, or may get by such an exchange; NULL: none. */
const Grant *gang_plan_place_on(const GangMember *m, const LedgerNode *node);

/* Whether the node and the cards of the place are still in service. */
bool gang_plan_is_sound(const GangMember *m);

/* How many ready members there would be room for if no pod held a card, on any node. What a kind is
 * offered says nothing about a node whose cpu other pods have. Or -ENOMEM, or -E2BIG when there are
 * too many kinds and nodes to find out. */
int gang_plan_room_when_empty(const Gang *g, const Ledger *l);

/* Remembers which nodes were offered to the member: the next plan looks at these for its kind. */
void gang_plan_note_offered(GangMember *m, const LedgerNode *const *nodes, size_t n);

/* Forgets what was offered before this attempt of the gang. Whether there was something. */
bool gang_plan_forget_offered(Gang *g, uint64_t attempt);
