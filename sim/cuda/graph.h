/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graphs: nodes with dependencies. Instantiation makes a list of work in an order that respects the
 * dependencies, and a launch submits the list to a stream. */

#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

typedef struct CUgraphNode_st {
        CUgraphNode next;
        CUgraph graph;
        CUgraphNodeType type;
        Work work;
        CUgraphNode *deps;
        size_t n_deps;
        GraphMemory *memory; /* of a node that allocates or frees */
        int mark;            /* of a walk under way */
        size_t cursor;
} CUgraphNode_st;

typedef struct CUgraph_st {
        CUgraph next;
        CUgraphNode first, *last;
        size_t n;
} CUgraph_st;

typedef struct Step {
        CUgraphNodeType type;
        Work work;
        GraphMemory *memory;
        bool freed; /* a later step frees what it allocates */
} Step;

typedef struct CUgraphExec_st {
        CUgraphExec next;
        unsigned long long flags;
        size_t n;
        Step *steps;
} CUgraphExec_st;

CUgraph graph_new(void);
CUresult graph_check(CUgraph g);
CUresult node_check(CUgraphNode n);
void graph_drop(CUgraph g);

/* Sets params->alloc.dptr for a node that allocates. The dependencies must be of the same graph. */
CUresult node_add(CUgraph g, const CUgraphNode *deps, size_t n_deps, CUgraphNodeParams *params,
                  CUgraphNode *ret);
CUresult node_depend(CUgraphNode node, CUgraphNode on);

/* All nodes in an order that respects their dependencies, in an array that the caller frees.
 * INVALID_VALUE: a circle. */
CUresult graph_order(CUgraph g, CUgraphNode **ret);
/* Marks the nodes that `tips` depend on, and the tips themselves, with 1, the others with 0. */
void graph_mark(CUgraph g, const CUgraphNode *tips, size_t n);
