/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The nodes on which the gang that is being placed has planned cards. */

#include "scheduler/gang/gangs.h"

typedef struct PlanNode {
        const LedgerNode *node;
        bool assumed; /* kube-scheduler may count a member as placed there */
        bool asked;   /* for the caller */
} PlanNode;

typedef struct PlanNodes {
        PlanNode *nodes; /* each once, by address; in the arena */
        size_t n;
} PlanNodes;

/* gs NULL, or no gang is being placed: none. 0 or -ENOMEM. */
int plan_nodes_of(const Gangs *gs, Arena *arena, PlanNodes *ret);
PlanNode *plan_nodes_find(const PlanNodes *p, const LedgerNode *node); /* NULL: it has none */
