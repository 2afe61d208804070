/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "sim/cuda/graph.h"

/* ---- graphs ---- */

static CUresult enter(CUgraph g) {
        CUresult r = state_check();

        return r == CUDA_SUCCESS ? graph_check(g) : r;
}

static CUresult enter_node(CUgraphNode n) {
        CUresult r = state_check();

        return r == CUDA_SUCCESS ? node_check(n) : r;
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

        if (r != CUDA_SUCCESS)
                return r;
        if (g->is_child)
                return CUDA_ERROR_INVALID_VALUE;
        graph_drop(g);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGraphClone(CUgraph *ret, CUgraph g) {
        LOCKED;
        CUresult r = enter(g);

        if (r != CUDA_SUCCESS)
                return r;
        for (CUgraphNode n = g->first; n; n = n->next)
                if (n->memory)
                        return CUDA_ERROR_NOT_SUPPORTED; /* the real driver refuses this, too: one address, one node */
        return ret ? graph_clone(g, ret) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphNodeFindInClone(CUgraphNode *ret, CUgraphNode node, CUgraph clone) {
        LOCKED;
        CUresult r = enter(clone);

        if (r != CUDA_SUCCESS)
                return r;
        for (CUgraphNode n = clone->first; n; n = n->next)
                if (n->original == node) {
                        *ret = n;
                        return CUDA_SUCCESS;
                }
        return CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphDestroyNode(CUgraphNode node) {
        LOCKED;
        CUresult r = enter_node(node);

        if (r != CUDA_SUCCESS)
                return r;
        if (node->memory)
                return CUDA_ERROR_NOT_SUPPORTED;
        return node_remove(node);
}

/* ---- adding nodes ---- */

static CUresult add(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                    CUgraphNodeParams params) {
        CUresult r = enter(g);

        return r == CUDA_SUCCESS ? node_add(g, deps, n, &params, ret) : r;
}

static CUgraphNodeParams kernel_params(const CUDA_KERNEL_NODE_PARAMS *p) {
        return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p};
}

/* The older structure ends before two handles. */
static CUgraphNodeParams kernel_params_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

        memcpy(&params.kernel, p, sizeof *p);
        return params;
}

static CUgraphNodeParams copy_params(const CUDA_MEMCPY3D *p, CUcontext c) {
        return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY,
                                   .memcpy = {.copyCtx = c, .copyParams = *p}};
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *p) {
        return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = *p};
}

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *p) {
        return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p};
}

static CUgraphNodeParams event_params(CUgraphNodeType type, CUevent e) {
        return (CUgraphNodeParams){.type = type, .event = e};
}

#define ADD(name, parameter, params)                                                                         \
        CUDA_API CUresult name(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n, parameter) {  \
                LOCKED;                                                                                      \
                return p ? add(ret, g, deps, n, params) : CUDA_ERROR_INVALID_VALUE;                          \
        }

ADD(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1 *p, kernel_params_v1(p))
ADD(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS *p, kernel_params(p))
ADD(cuGraphAddHostNode, const CUDA_HOST_NODE_PARAMS *p, host_params(p))
ADD(cuGraphAddEventRecordNode, CUevent p, event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, p))
ADD(cuGraphAddEventWaitNode, CUevent p, event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, p))
ADD(cuGraphAddChildGraphNode, CUgraph p, ((CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = p}))
ADD(cuGraphAddMemFreeNode, CUdeviceptr p,
    ((CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = p}))

CUDA_API CUresult cuGraphAddEmptyNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n) {
        LOCKED;

        return add(ret, g, deps, n, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

CUDA_API CUresult cuGraphAddMemcpyNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                       const CUDA_MEMCPY3D *p, CUcontext c) {
        LOCKED;

        return p ? add(ret, g, deps, n, copy_params(p, c)) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                       const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c) {
        LOCKED;

        return p ? add(ret, g, deps, n, fill_params(p)) : CUDA_ERROR_INVALID_VALUE;
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

static CUresult add_any(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                        CUgraphNodeParams *params) {
        CUresult r = enter(g);

        if (r == CUDA_SUCCESS && !params)
                r = CUDA_ERROR_INVALID_VALUE;
        return r == CUDA_SUCCESS ? node_add(g, deps, n, params, ret) : r;
}

CUDA_API CUresult cuGraphAddNode(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps, size_t n,
                                 CUgraphNodeParams *params) {
        LOCKED;

        return add_any(ret, g, deps, n, params);
}

CUDA_API CUresult cuGraphAddNode_v2(CUgraphNode *ret, CUgraph g, const CUgraphNode *deps,
                                    const CUgraphEdgeData *data, size_t n, CUgraphNodeParams *params) {
        LOCKED;

        return add_any(ret, g, deps, n, params);
}

/* ---- parameters of nodes ---- */

static CUresult get(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams *ret) {
        CUresult r = enter_node(node);

        if (r != CUDA_SUCCESS)
                return r;
        if (node->params.type != type)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = node->params;
        return CUDA_SUCCESS;
}

static CUresult set(CUgraphNode node, CUgraphNodeParams params) {
        CUresult r = enter_node(node);

        return r == CUDA_SUCCESS ? node_set(node, &params) : r;
}

#define GET(name, kind, type, value)                                                                         \
        CUDA_API CUresult name(CUgraphNode node, type *ret) {                                                \
                LOCKED;                                                                                      \
                CUgraphNodeParams p;                                                                         \
                CUresult r = get(node, kind, &p);                                                            \
                if (r == CUDA_SUCCESS)                                                                       \
                        memcpy(ret, &p.value, sizeof *ret);                                                  \
                return r;                                                                                    \
        }
#define SET(name, type, params)                                                                              \
        CUDA_API CUresult name(CUgraphNode node, type p) {                                                   \
                LOCKED;                                                                                      \
                return p ? set(node, params) : CUDA_ERROR_INVALID_VALUE;                                     \
        }

GET(cuGraphKernelNodeGetParams, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS_v1, kernel)
GET(cuGraphKernelNodeGetParams_v2, CU_GRAPH_NODE_TYPE_KERNEL, CUDA_KERNEL_NODE_PARAMS, kernel)
GET(cuGraphMemcpyNodeGetParams, CU_GRAPH_NODE_TYPE_MEMCPY, CUDA_MEMCPY3D, memcpy.copyParams)
GET(cuGraphMemsetNodeGetParams, CU_GRAPH_NODE_TYPE_MEMSET, CUDA_MEMSET_NODE_PARAMS, memset)
GET(cuGraphHostNodeGetParams, CU_GRAPH_NODE_TYPE_HOST, CUDA_HOST_NODE_PARAMS, host)
GET(cuGraphEventRecordNodeGetEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CUevent, event)
GET(cuGraphEventWaitNodeGetEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUevent, event)
GET(cuGraphMemAllocNodeGetParams, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CUDA_MEM_ALLOC_NODE_PARAMS, alloc)
GET(cuGraphMemFreeNodeGetParams, CU_GRAPH_NODE_TYPE_MEM_FREE, CUdeviceptr, free)

SET(cuGraphKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1 *, kernel_params_v1(p))
SET(cuGraphKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS *, kernel_params(p))
SET(cuGraphMemcpyNodeSetParams, const CUDA_MEMCPY3D *, copy_params(p, NULL))
SET(cuGraphMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS *, fill_params(p))
SET(cuGraphHostNodeSetParams, const CUDA_HOST_NODE_PARAMS *, host_params(p))
SET(cuGraphEventRecordNodeSetEvent, CUevent, event_params(CU_GRAPH_NODE_TYPE_EVENT_RECORD, p))
SET(cuGraphEventWaitNodeSetEvent, CUevent, event_params(CU_GRAPH_NODE_TYPE_WAIT_EVENT, p))
SET(cuGraphNodeSetParams, CUgraphNodeParams *, *p)

CUDA_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *ret) {
        LOCKED;
        CUresult r = enter_node(node);

        if (r != CUDA_SUCCESS || !node->child)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = node->child;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *ret) {
        LOCKED;
        CUresult r = enter_node(node);

        if (r == CUDA_SUCCESS)
                *ret = node->params.type;
        return r;
}

/* ---- what is there ---- */

/* The API's convention for lists: without room it returns the number; spare room is filled with
 * NULL. */
typedef struct List {
        CUgraphNode *into, *into_too;
        size_t room, n;
} List;

static void put(List *l, CUgraphNode node, CUgraphNode too) {
        if (l->into && l->n < l->room)
                l->into[l->n] = node;
        if (l->into_too && l->n < l->room)
                l->into_too[l->n] = too;
        l->n++;
}

static CUresult finish(List *l, size_t *n) {
        for (size_t i = l->n; l->into && i < l->room; i++)
                l->into[i] = NULL;
        *n = l->into && l->n > l->room ? l->room : l->n;
        return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph g, CUgraphNode *nodes, size_t *n, bool roots) {
        List l = {.into = nodes, .room = n ? *n : 0};
        CUresult r = enter(g);

        if (r != CUDA_SUCCESS || !n)
                return CUDA_ERROR_INVALID_VALUE;
        for (CUgraphNode node = g->first; node; node = node->next)
                if (!roots || node->n_deps == 0)
                        put(&l, node, NULL);
        return finish(&l, n);
}

CUDA_API CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
        LOCKED;

        return list_nodes(g, nodes, n, false);
}

CUDA_API CUresult cuGraphGetRootNodes(CUgraph g, CUgraphNode *nodes, size_t *n) {
        LOCKED;

        return list_nodes(g, nodes, n, true);
}

static CUresult list_edges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n) {
        List l = {.into = from, .into_too = to, .room = n ? *n : 0};
        CUresult r = enter(g);

        if (r != CUDA_SUCCESS || !n)
                return CUDA_ERROR_INVALID_VALUE;
        for (CUgraphNode node = g->first; node; node = node->next)
                for (size_t i = 0; i < node->n_deps; i++)
                        put(&l, node->deps[i], node);
        return finish(&l, n);
}

CUDA_API CUresult cuGraphGetEdges(CUgraph g, CUgraphNode *from, CUgraphNode *to, size_t *n) {
        LOCKED;

        return list_edges(g, from, to, n);
}

static void clear(CUgraphEdgeData *data, const size_t *n) {
        if (data)
                memset(data, 0, *n * sizeof *data);
}

CUDA_API CUresult cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                                     size_t *n) {
        LOCKED;
        CUresult r = list_edges(g, from, to, n);

        if (r == CUDA_SUCCESS)
                clear(data, n);
        return r;
}

static CUresult list_deps(CUgraphNode node, CUgraphNode *nodes, size_t *n) {
        List l = {.into = nodes, .room = n ? *n : 0};
        CUresult r = enter_node(node);

        if (r != CUDA_SUCCESS || !n)
                return CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < node->n_deps; i++)
                put(&l, node->deps[i], NULL);
        return finish(&l, n);
}

static CUresult list_dependents(CUgraphNode node, CUgraphNode *nodes, size_t *n) {
        List l = {.into = nodes, .room = n ? *n : 0};
        CUresult r = enter_node(node);

        if (r != CUDA_SUCCESS || !n)
                return CUDA_ERROR_INVALID_VALUE;
        for (CUgraphNode other = node->graph->first; other; other = other->next)
                for (size_t i = 0; i < other->n_deps; i++)
                        if (other->deps[i] == node)
                                put(&l, other, NULL);
        return finish(&l, n);
}

CUDA_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *n) {
        LOCKED;

        return list_deps(node, nodes, n);
}

CUDA_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                                size_t *n) {
        LOCKED;
        CUresult r = list_deps(node, nodes, n);

        if (r == CUDA_SUCCESS)
                clear(data, n);
        return r;
}

CUDA_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n) {
        LOCKED;

        return list_dependents(node, nodes, n);
}

CUDA_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data,
                                                  size_t *n) {
        LOCKED;
        CUresult r = list_dependents(node, nodes, n);

        if (r == CUDA_SUCCESS)
                clear(data, n);
        return r;
}

/* ---- edges ---- */

static CUresult change(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t n, bool adds) {
        CUresult r = enter(g);

        if (r == CUDA_SUCCESS && n > 0 && (!from || !to))
                r = CUDA_ERROR_INVALID_VALUE;
        for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
                r = node_check(to[i]);
                if (r == CUDA_SUCCESS && to[i]->graph != g)
                        r = CUDA_ERROR_INVALID_VALUE;
                if (r == CUDA_SUCCESS && adds)
                        r = node_depend(to[i], from[i]);
                else if (r == CUDA_SUCCESS)
                        node_forget(to[i], from[i]);
        }
        return r;
}

CUDA_API CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                         size_t n) {
        LOCKED;

        return change(g, from, to, n, true);
}

CUDA_API CUresult cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                            const CUgraphEdgeData *data, size_t n) {
        LOCKED;

        return change(g, from, to, n, true);
}

CUDA_API CUresult cuGraphRemoveDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                            size_t n) {
        LOCKED;

        return change(g, from, to, n, false);
}

CUDA_API CUresult cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                               const CUgraphEdgeData *data, size_t n) {
        LOCKED;

        return change(g, from, to, n, false);
}
