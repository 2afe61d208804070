/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes on which the gang that is being placed has planned cards. */

#include "scheduler/gang/gangs.h"

typedef struct PlanNode {
        const LedgerNode *node;
        bool assumed; /* kube-scheduler may count a member as placed there */
        bool asked;   /* free for use by the caller */
} PlanNode;

typedef struct PlanNodes {
        PlanNode *nodes; /* each once, sorted by address; in the arena */
        size_t n;
} PlanNodes;

/* Collects the nodes of the gang that is being placed; none if gs is NULL or no gang is. Returns 0
 * or -ENOMEM. */
int plan_nodes_of(const Gangs *gs, Arena *arena, PlanNodes *ret);
PlanNode *plan_nodes_find(const PlanNodes *p, const LedgerNode *node); /* NULL: no cards are planned on it */
