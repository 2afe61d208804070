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
        Arena scratch; /* reset for each node */
        Str uid;
        Request request;
        PodProfile profile;
        uint64_t steps; /* what is left of the search for victims */
} Preemptor;

typedef struct PreemptNode {
        const LedgerNode *node;
        const VictimList *proposed;
        /* `plans` holds the planned grants, behind them the grants of the proposed victims, each
         * once */
        UnsettledGrants open;
        size_t n_grants;       /* number of these grants of victims */
        bool settled;          /* planned grants count as gone, and members being bound are candidates */
        const Request **first; /* requests of pods nominated here that come before this one */
        size_t n_first;
} PreemptNode;

typedef struct PreemptAnswer {
        VictimList victims; /* most important first */
        VictimCost cost;    /* of those victims that have a profile */
} PreemptAnswer;

/* Collects what is known of the node. proposed: kube-scheduler's victims, which outlive *ret.
 * Returns 0 or -ENOMEM. *ret lives as long as p->scratch. */
int preempt_node_init(Preemptor *p, const LedgerNode *node, const VictimList *proposed, PreemptNode *ret);

/* Chooses the victims on the node; uses up steps of p->steps. Returns 0 with *ret, VICTIMS_E_NONE
 * when no eviction makes room, or -ENOMEM. */
int preempt_node_answer(Preemptor *p, const PreemptNode *f, PreemptAnswer *ret);

/* The same as if gangs had given their planned cards back (unsettled.h). assumed: kube-scheduler
 * may count a member as placed here. Then the proposed victims count as not proposed: the gang also
 * frees cpu and memory when it gives its cards back.
 *
 * Returns 0 with *ret; VICTIMS_E_NONE, also if nothing is unsettled; or -ENOMEM. */
int preempt_node_answer_settled(Preemptor *p, const PreemptNode *f, bool assumed, PreemptAnswer *ret);
