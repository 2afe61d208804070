/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards that a gang's plan holds are not settled: within GANGS_ATTEMPT the members are bound there,
 * or the gang gives the cards back. A pod that is evicted because of such cards may go in vain.
 *
 * Nor are the cards of a member settled while its Binding is under way, and until the watch shows
 * it bound. It is no victim until then (victims.c), so that a dearer pod may be evicted.
 *
 * The rule, for preempt and for the evictor: a decision waits if cheaper victims, or none, would do
 * when all is settled. Then planned cards are given back, and those members may be victims. It
 * waits GANGS_ATTEMPT for one pod at the most, for both together, also where one gang after the
 * other is being placed. */

#include "scheduler/question/pending.h"
#include "scheduler/question/victims.h"
#include "scheduler/view/view.h"

/* Whether the decision about the pod may wait now: until GANGS_ATTEMPT after the first call for
 * this pod. NULL, a pod that is not in the table: true. */
bool unsettled_may_wait(PendingPod *pod, usec_t now);

/* Puts the grants of plans on the node into *into, which has room for them; NULL: counts them.
 * Returns their number. */
size_t unsettled_plans(const View *v, const LedgerNode *node, const Grant **into);

/* The members on the node whose Binding is under way; into: as above. Only their priority is known:
 * none of them is cheaper than another pod by its start alone. */
size_t unsettled_members(const View *v, const LedgerNode *node, VictimSoon *into);

/* The cost of the victims on q->node when all is settled. Returns 0 and *ret; VICTIMS_E_NONE when
 * all is settled there, or no victims would do; or -ENOMEM. q->gone and q->soon are not read. */
int unsettled_cost(const View *v, const VictimQuestion *q, Arena *arena, VictimCost *ret);
