/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/graph.h"

#include <string.h>

#include "sim/cuda/copy.h"
#include "sim/cuda/module.h"

static CUgraph graphs;

/* ---- graphs ---- */

CUgraph graph_new(void) {
        CUgraph g = calloc(1, sizeof *g);

        if (!g)
                return NULL;
        g->last = &g->first;
        g->next = graphs;
        graphs = g;
        return g;
}

CUresult graph_check(CUgraph g) {
        for (CUgraph known = graphs; known; known = known->next)
                if (known == g)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_VALUE;
}

CUresult node_check(CUgraphNode node) {
        for (CUgraph g = graphs; g; g = g->next)
                for (CUgraphNode n = g->first; n; n = n->next)
                        if (n == node)
                                return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_VALUE;
}

static void node_drop(CUgraphNode n) {
        if (n->work.kind == WORK_WAIT)
                event_drop(n->work.event.event);
        if (n->memory)
                graph_memory_drop(n->memory);
        free(n->deps);
        free(n);
}

void graph_drop(CUgraph g) {
        for (CUgraph *link = &graphs; *link; link = &(*link)->next)
                if (*link == g) {
                        *link = g->next;
                        break;
                }
        while (g->first) {
                CUgraphNode n = g->first;

                g->first = n->next;
                node_drop(n);
        }
        free(g);
}

/* ---- what nodes mean ---- */

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, Work *ret) {
        CUresult r = function_check(p->func);

        if (r != CUDA_SUCCESS)
                return r;
        if (p->gridDimX == 0 || p->gridDimY == 0 || p->gridDimZ == 0 || p->blockDimX == 0 ||
            p->blockDimY == 0 || p->blockDimZ == 0)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = (Work){.kind = WORK_KERNEL, .kernel = {function_time(p->func, p->kernelParams, p->extra), *p}};
        return CUDA_SUCCESS;
}

static CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS *p, Work *ret) {
        if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = (Work){.kind = WORK_FILL,
                      .fill = {.to = p->dst,
                               .value = p->value,
                               .element = p->elementSize,
                               .width = p->width,
                               .height = p->height,
                               .pitch = p->pitch}};
        return CUDA_SUCCESS;
}

static CUresult work_from(const CUgraphNodeParams *p, Work *ret) {
        *ret = (Work){.kind = WORK_NOTHING};
        switch (p->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
                return kernel_work(&p->kernel, ret);
        case CU_GRAPH_NODE_TYPE_MEMCPY:
                ret->kind = WORK_COPY;
                return copy_resolve(&p->memcpy.copyParams, &ret->copy);
        case CU_GRAPH_NODE_TYPE_MEMSET:
                return fill_work(&p->memset, ret);
        case CU_GRAPH_NODE_TYPE_HOST:
                *ret = (Work){.kind = WORK_HOST, .host = {.run = p->host.fn, .data = p->host.userData}};
                return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
                ret->kind = WORK_WAIT;
                ret->event.event = p->event;
                return p->event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        case CU_GRAPH_NODE_TYPE_MEM_FREE:
                *ret = (Work){.kind = WORK_FREE, .address = p->free};
                return CUDA_SUCCESS;
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
                return CUDA_SUCCESS;
        }
        return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult take_memory(CUgraphNode n, CUgraphNodeParams *p) {
        Device *d;
        CUresult r;

        if (p->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
                n->memory = graph_memory_find(p->free);
                if (!n->memory)
                        return CUDA_ERROR_INVALID_VALUE;
                (void) graph_memory_use(n->memory);
                return CUDA_SUCCESS;
        }
        if (p->alloc.bytesize == 0 || p->alloc.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
                return CUDA_ERROR_INVALID_VALUE;
        r = state_device(p->alloc.poolProps.location.id, &d);
        if (r == CUDA_SUCCESS)
                r = graph_memory_new(d, p->alloc.bytesize, &n->memory);
        if (r == CUDA_SUCCESS)
                p->alloc.dptr = n->memory->range->start;
        return r;
}

/* The parts of a node besides its work. */
static CUresult furnish(CUgraphNode n, CUgraphNodeParams *p) {
        CUresult r = CUDA_SUCCESS;

        if (p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
                r = take_memory(n, p);
        if (r == CUDA_SUCCESS && n->work.kind == WORK_WAIT)
                (void) event_use(n->work.event.event);
        return r;
}

/* ---- dependencies ---- */

CUresult node_depend(CUgraphNode n, CUgraphNode on) {
        CUgraphNode *deps;

        for (size_t i = 0; i < n->n_deps; i++)
                if (n->deps[i] == on)
                        return CUDA_SUCCESS;
        if (node_check(on) != CUDA_SUCCESS || on->graph != n->graph || on == n)
                return CUDA_ERROR_INVALID_VALUE;
        deps = reallocarray(n->deps, n->n_deps + 1, sizeof *deps);
        if (!deps)
                return CUDA_ERROR_OUT_OF_MEMORY;
        n->deps = deps;
        n->deps[n->n_deps++] = on;
        return CUDA_SUCCESS;
}

CUresult node_add(CUgraph g, const CUgraphNode *deps, size_t n_deps, CUgraphNodeParams *params,
                  CUgraphNode *ret) {
        CUgraphNode n;
        CUresult r;

        if (!ret || (n_deps > 0 && !deps))
                return CUDA_ERROR_INVALID_VALUE;
        n = calloc(1, sizeof *n);
        if (!n)
                return CUDA_ERROR_OUT_OF_MEMORY;
        n->graph = g;
        r = work_from(params, &n->work);
        for (size_t i = 0; i < n_deps && r == CUDA_SUCCESS; i++)
                r = node_depend(n, deps[i]);
        if (r == CUDA_SUCCESS)
                r = furnish(n, params);
        if (r != CUDA_SUCCESS) {
                n->work.kind = WORK_NOTHING; /* it has no reference to its event */
                node_drop(n);
                return r;
        }
        n->type = params->type;
        *g->last = n;
        g->last = &n->next;
        g->n++;
        *ret = n;
        return CUDA_SUCCESS;
}

/* ---- walks ---- */

enum { UNSEEN, OPEN, DONE };

/* Depth first, without recursion, because chains can be long. `path` has room for every node. */
static CUresult walk(CUgraphNode from, CUgraphNode *path, CUgraphNode *order, size_t *n_order) {
        size_t depth = 0;

        if (from->mark != UNSEEN)
                return CUDA_SUCCESS;
        path[depth++] = from;
        from->mark = OPEN;
        while (depth > 0) {
                CUgraphNode n = path[depth - 1];

                if (n->cursor < n->n_deps) {
                        CUgraphNode dep = n->deps[n->cursor++];

                        if (dep->mark == OPEN)
                                return CUDA_ERROR_INVALID_VALUE;
                        if (dep->mark == UNSEEN) {
                                dep->mark = OPEN;
                                path[depth++] = dep;
                        }
                        continue;
                }
                n->mark = DONE;
                order[(*n_order)++] = n;
                depth--;
        }
        return CUDA_SUCCESS;
}

static void unmark(CUgraph g) {
        for (CUgraphNode n = g->first; n; n = n->next) {
                n->mark = UNSEEN;
                n->cursor = 0;
        }
}

CUresult graph_order(CUgraph g, CUgraphNode **ret) {
        _cleanup_free_ CUgraphNode *path = calloc(g->n + 1, sizeof(CUgraphNode));
        _cleanup_free_ CUgraphNode *order = calloc(g->n + 1, sizeof(CUgraphNode));
        size_t n_order = 0;
        CUresult r = path && order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

        unmark(g);
        for (CUgraphNode n = g->first; n && r == CUDA_SUCCESS; n = n->next)
                r = walk(n, path, order, &n_order);
        if (r == CUDA_SUCCESS)
                *ret = TAKE_PTR(order);
        return r;
}

void graph_mark(CUgraph g, const CUgraphNode *tips, size_t n) {
        _cleanup_free_ CUgraphNode *path = calloc(g->n + 1, sizeof(CUgraphNode));
        _cleanup_free_ CUgraphNode *order = calloc(g->n + 1, sizeof(CUgraphNode));
        size_t n_order = 0;

        unmark(g);
        for (size_t i = 0; path && order && i < n; i++)
                (void) walk(tips[i], path, order, &n_order);
        for (CUgraphNode node = g->first; node; node = node->next)
                node->mark = node->mark == DONE;
}
