/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graphs: nodes with dependencies. Instantiation makes a list of work in an order that respects the
 * dependencies, and a launch submits the list to a stream. */

#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

typedef struct CUgraphNode_st {
        CUgraphNode next;
        CUgraph graph;
        CUgraphNodeParams params; /* as they were given */
        Work work;
        CUgraphNode *deps;
        size_t n_deps;
        CUgraph child;        /* our own copy */
        GraphMemory *memory;  /* of a node that allocates or frees */
        CUgraphNode original; /* its original in the graph that was cloned */
        int mark;             /* of a walk under way */
        size_t cursor;
} CUgraphNode_st;

typedef struct CUgraph_st {
        CUgraph next;
        CUgraph original;
        bool is_child; /* of a node: goes with it */
        CUgraphNode first, *last;
        size_t n;
} CUgraph_st;

typedef struct Step {
        CUgraphNode node; /* never dereferenced: it may be freed */
        CUgraphNodeType type;
        Work work;
        CUgraphExec child;
        GraphMemory *memory;
        bool enabled, freed; /* a later step frees what it allocates */
} Step;

typedef struct CUgraphExec_st {
        CUgraphExec next;
        bool is_child;
        unsigned long long flags;
        size_t n;
        Step *steps;
} CUgraphExec_st;

CUgraph graph_new(void);
CUresult graph_check(CUgraph g);
CUresult node_check(CUgraphNode n);
void graph_drop(CUgraph g);
CUresult graph_clone(CUgraph g, CUgraph *ret);

/* Sets params->alloc.dptr for a node that allocates. The dependencies must be of the same graph. */
CUresult node_add(CUgraph g, const CUgraphNode *deps, size_t n_deps, CUgraphNodeParams *params,
                  CUgraphNode *ret);
/* Turns parameters into work. Only kernel, copy, fill, host and event nodes can be changed
 * later. */
CUresult work_from(const CUgraphNodeParams *params, Work *ret);
CUresult node_set(CUgraphNode node, const CUgraphNodeParams *params);
CUresult node_depend(CUgraphNode node, CUgraphNode on);
void node_forget(CUgraphNode node, CUgraphNode on);
CUresult node_remove(CUgraphNode node);

/* All nodes in an order that respects their dependencies, in an array that the caller frees.
 * INVALID_VALUE: a circle. */
CUresult graph_order(CUgraph g, CUgraphNode **ret);
/* Marks the nodes that `tips` depend on, and the tips themselves, with 1, the others with 0. */
void graph_mark(CUgraph g, const CUgraphNode *tips, size_t n);

CUresult exec_new(CUgraph g, unsigned long long flags, CUgraphExec *ret);
void exec_drop(CUgraphExec e);
