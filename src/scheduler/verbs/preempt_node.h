/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answer of preempt for one node (preempt.c): which victims kube-scheduler is told to evict
 * there. Reads the view and changes nothing. */

#include "scheduler/question/unsettled.h"
#include "scheduler/question/victim_list.h"
#include "scheduler/view/view.h"

/* The pod that needs cards. */
typedef struct Preemptor {
        const View *view;
        Arena scratch; /* of the node that is being answered */
        Str uid;
        Request request;
        PodProfile profile;
        uint64_t steps; /* left of the search for victims */
} Preemptor;

typedef struct PreemptNode {
        const LedgerNode *node;
        const VictimList *proposed;
        UnsettledGrants open;  /* behind the plans: the grants of the proposed victims, each once */
        size_t n_grants;       /* of those */
        bool settled;          /* plans count as gone, and members whose Binding is under way may go */
        const Request **first; /* of pods that are nominated here and come before this one */
        size_t n_first;
} PreemptNode;

typedef struct PreemptAnswer {
        VictimList victims; /* most important first */
        VictimCost cost;    /* of the victims that are known */
} PreemptAnswer;

/* Collects what is known of the node. proposed: the victims of kube-scheduler, which outlive *ret.
 * 0 or -ENOMEM. *ret lives as long as p->scratch. */
int preempt_node_init(Preemptor *p, const LedgerNode *node, const VictimList *proposed, PreemptNode *ret);

/* As many steps are used as the search takes. Returns 0; VICTIMS_E_NONE, when no eviction makes
 * room; or -ENOMEM. */
int preempt_node_answer(Preemptor *p, const PreemptNode *f, PreemptAnswer *ret);

/* The same when the cards of the gangs are settled (unsettled.h). assumed: kube-scheduler counts a
 * member as placed here. The proposed victims may then be no longer needed once its gang gives its
 * cards back, because its cpu and memory come free, too.
 *
 * Returns 0 and *ret; VICTIMS_E_NONE, also where nothing is unsettled; or -ENOMEM. */
int preempt_node_answer_settled(Preemptor *p, const PreemptNode *f, bool assumed, PreemptAnswer *ret);
