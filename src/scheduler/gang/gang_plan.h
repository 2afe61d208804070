/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The plan of a gang: one grant in the ledger for each member that asks for cards. All grants are
 * made at once, so that no other pod takes the room of the later ones. They have no UID. A member's
 * planned grant (place) ends when the pod's own grant is made, or with the attempt.
 *
 * The plan is greedy. Members with the fewest feasible nodes go first, then the largest, each to
 * the node that placement_rank() likes best. Members that kube-scheduler called unschedulable go
 * last, so that they take no place from others. A gang may therefore be refused although another
 * order would find room. Members of one kind that ask for whole cards are placed together
 * (share/job_placement.h), on the fewest nodes. */

#include "scheduler/gang/gang_table.h"

/* Makes a place for every ready member that asks for cards and has none. Returns how many ready
 * members could be bound now, those that need no cards included, or -ENOMEM.
 *
 * When these are too few, all places are made once more. Before that it forgets which nodes a kind
 * was offered in an earlier attempt: another node may have cpu for it now. */
int gang_plan_make(Gang *g, Ledger *l);

/* Makes a place for one member on the best of these nodes (NULLs are passed over), and ends its
 * earlier place. Returns 0; 1 when no node has room, or -ENOMEM: the earlier place stays. */
int gang_plan_place(GangMember *m, Ledger *l, const LedgerNode *const *nodes, size_t n);

/* Returns 0 when the node has no room for the member, 2 when it has and kube-scheduler offered it
 * to the member's kind or no offer is known, else 1. */
unsigned gang_plan_fit(const GangMember *m, const LedgerNode *node);

/* Exchanges the place of the member with that of another one of its kind on one of these nodes
 * (NULLs are passed over). A member that is held, or for which filter has answered, keeps its
 * place. False when no exchange is possible. */
bool gang_plan_swap(GangMember *m, const LedgerNode *const *nodes, size_t n);

/* A place on the node that the member has, or may get by such an exchange; NULL: none. */
const Grant *gang_plan_place_on(const GangMember *m, const LedgerNode *node);

/* Whether each card of the member's place still exists and is healthy. The member must have a
 * place. */
bool gang_plan_is_sound(const GangMember *m);

/* For how many ready members the cluster would have room if no pod held a card. All nodes count,
 * because an earlier offer says nothing about nodes on which other pods use the cpu. -ENOMEM, or
 * -E2BIG when there are too many kinds and nodes to find out. */
int gang_plan_room_when_empty(const Gang *g, const Ledger *l);

/* Remembers which nodes kube-scheduler offered to the member; the next plan places its kind on
 * these alone. Out of memory: remembers nothing. */
void gang_plan_note_offered(GangMember *m, const LedgerNode *const *nodes, size_t n);

/* Forgets the nodes that were offered before this attempt of the gang. Returns whether any were
 * known. */
bool gang_plan_forget_offered(Gang *g, uint64_t attempt);
