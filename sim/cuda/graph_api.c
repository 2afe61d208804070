/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/graph.h"

/* ---- graphs ---- */

static CUresult enter(CUgraph g) {
        CUresult r = state_check();

        return r == CUDA_SUCCESS ? graph_check(g) : r;
}

CUDA_API CUresult cuGraphCreate(CUgraph *ret, unsigned flags) {
        LOCKED;
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags != 0)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = graph_new();
        return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API CUresult cuGraphDestroy(CUgraph g) {
        LOCKED;
        CUresult r = enter(g);

        if (r == CUDA_SUCCESS)
                graph_drop(g);
        return r;
}

/* ---- adding nodes ---- */

CUDA_API CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                       const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c) {
        LOCKED;
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
        CUresult r = enter(g);

        if (r != CUDA_SUCCESS || !p)
                return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
        params.memset = *p;
        return node_add(g, deps, n, &params, ret);
}

CUDA_API CUresult cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                         CUDA_MEM_ALLOC_NODE_PARAMS *p) {
        LOCKED;
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
        CUresult r = enter(g);

        if (r != CUDA_SUCCESS || !p)
                return r != CUDA_SUCCESS ? r : CUDA_ERROR_INVALID_VALUE;
        params.alloc = *p;
        r = node_add(g, deps, n, &params, ret);
        if (r == CUDA_SUCCESS)
                p->dptr = params.alloc.dptr;
        return r;
}

/* ---- what is there ---- */

/* The API's convention for lists: without room it returns the number; spare room is filled with
 * NULL. */
CUDA_API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
        LOCKED;
        CUresult r = enter(g);
        CUgraphNode node;

        if (r != CUDA_SUCCESS || !n)
                return CUDA_ERROR_INVALID_VALUE;
        if (!nodes) {
                *n = g->n;
                return CUDA_SUCCESS;
        }
        node = g->first;
        for (size_t i = 0; i < *n; i++) {
                nodes[i] = node;
                node = node ? node->next : NULL;
        }
        *n = *n < g->n ? *n : g->n;
        return CUDA_SUCCESS;
}

/* ---- edges ---- */

static CUresult connect(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n) {
        CUresult r = enter(g);

        if (r == CUDA_SUCCESS && n > 0 && (!from || !to))
                r = CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
                r = node_check(to[i]);
                if (r == CUDA_SUCCESS && to[i]->graph != g)
                        r = CUDA_ERROR_INVALID_VALUE;
                if (r == CUDA_SUCCESS)
                        r = node_depend(to[i], from[i]);
        }
        return r;
}

CUDA_API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                         size_t n) {
        LOCKED;

        return connect(g, from, to, n);
}

CUDA_API CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                            const CUgraphEdgeData *data, size_t n) {
        LOCKED;

        return connect(g, from, to, n);
}
