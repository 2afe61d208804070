/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/graph.h"
#include "sim/cuda/streamed.h"

static CUgraphExec execs;

/* ---- making ---- */

static void step_drop(Step *s) {
        if (s->work.kind == WORK_WAIT || s->work.kind == WORK_RECORD)
                event_drop(s->work.event.event);
        if (s->memory)
                graph_memory_drop(s->memory);
        if (s->child)
                exec_drop(s->child);
}

void exec_drop(CUgraphExec e) { /* NOLINT(misc-no-recursion): as deep as graphs are nested */
        for (CUgraphExec *link = &execs; *link; link = &(*link)->next)
                if (*link == e) {
                        *link = e->next;
                        break;
                }
        for (size_t i = 0; i < e->n; i++)
                step_drop(&e->steps[i]);
        free(e->steps);
        free(e);
}

static CUresult make_step(Step *s, CUgraphNode n, unsigned long long flags) {
        *s = (Step){.node = n, .type = n->params.type, .work = n->work, .enabled = true};
        s->memory = n->memory ? graph_memory_use(n->memory) : NULL;
        if (s->work.kind == WORK_WAIT || s->work.kind == WORK_RECORD)
                (void) event_use(s->work.event.event);
        return n->child ? exec_new(n->child, flags, &s->child) : CUDA_SUCCESS;
}

static void find_freed(CUgraphExec e) {
        for (size_t i = 0; i < e->n; i++)
                for (size_t j = i + 1; e->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && j < e->n; j++)
                        if (e->steps[j].type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
                            e->steps[j].memory == e->steps[i].memory)
                                e->steps[i].freed = true;
}

CUresult exec_new(CUgraph g, unsigned long long flags,
                  CUgraphExec *ret) { /* NOLINT(misc-no-recursion): the same */
        _cleanup_free_ CUgraphNode *order = NULL;
        CUresult r = graph_order(g, &order);
        CUgraphExec e;

        if (r != CUDA_SUCCESS)
                return r;
        e = calloc(1, sizeof *e);
        if (!e)
                return CUDA_ERROR_OUT_OF_MEMORY;
        e->flags = flags;
        e->steps = calloc(g->n + 1, sizeof *e->steps);
        e->next = execs;
        execs = e;
        if (!e->steps)
                r = CUDA_ERROR_OUT_OF_MEMORY;
        for (size_t i = 0; i < g->n && r == CUDA_SUCCESS; i++) {
                r = make_step(&e->steps[i], order[i], flags);
                e->n++;
                if (e->steps[i].child)
                        e->steps[i].child->is_child = true;
        }
        if (r != CUDA_SUCCESS) {
                exec_drop(e);
                return r;
        }
        find_freed(e);
        *ret = e;
        return CUDA_SUCCESS;
}

static CUresult check(CUgraphExec exec) {
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        for (CUgraphExec e = execs; e; e = e->next)
                if (e == exec)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_VALUE;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph g, unsigned long long flags) {
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = graph_check(g);
        if (r != CUDA_SUCCESS)
                return r;
        return ret && flags < 16 ? exec_new(g, flags, ret) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret, CUgraph g, unsigned long long flags) {
        LOCKED;

        return instantiate(ret, g, flags);
}

static CUresult instantiate_logged(CUgraphExec *ret, CUgraph g, CUgraphNode *bad, char *log, size_t n) {
        if (bad)
                *bad = NULL;
        if (log && n > 0)
                log[0] = '\0';
        return instantiate(ret, g, 0);
}

CUDA_API CUresult cuGraphInstantiate(CUgraphExec *ret, CUgraph g, CUgraphNode *bad, char *log, size_t n) {
        LOCKED;

        return instantiate_logged(ret, g, bad, log, n);
}

CUDA_API CUresult cuGraphInstantiate_v2(CUgraphExec *ret, CUgraph g, CUgraphNode *bad, char *log, size_t n) {
        LOCKED;

        return instantiate_logged(ret, g, bad, log, n);
}

static CUresult instantiate_params(CUgraphExec *ret, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
        CUresult r;

        if (!p)
                return CUDA_ERROR_INVALID_VALUE;
        r = instantiate(ret, g, p->flags);
        p->hErrNode_out = NULL;
        p->result_out = r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : 1;
        return r;
}

CUDA_API CUresult cuGraphInstantiateWithParams(CUgraphExec *ret, CUgraph g,
                                               CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
        LOCKED;

        return instantiate_params(ret, g, p);
}

CUDA_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *ret, CUgraph g,
                                                    CUDA_GRAPH_INSTANTIATE_PARAMS *p) {
        LOCKED;

        return instantiate_params(ret, g, p);
}

CUDA_API CUresult cuGraphExecDestroy(CUgraphExec e) {
        LOCKED;
        CUresult r = check(e);

        if (r != CUDA_SUCCESS)
                return r;
        if (e->is_child)
                return CUDA_ERROR_INVALID_VALUE;
        exec_drop(e);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGraphExecGetFlags(CUgraphExec e, cuuint64_t *ret) {
        LOCKED;
        CUresult r = check(e);

        if (r == CUDA_SUCCESS)
                *ret = e->flags;
        return r;
}

/* ---- launching ---- */

/* Memory comes first: a launch that cannot have it does no other work. */
static CUresult begin_memory(CUgraphExec e) { /* NOLINT(misc-no-recursion): as deep as graphs are nested */
        CUresult r = CUDA_SUCCESS;

        for (size_t i = 0; i < e->n && r == CUDA_SUCCESS; i++) {
                const Step *s = &e->steps[i];

                if (s->child)
                        r = begin_memory(s->child);
                if (s->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
                        continue;
                if (s->memory->live &&
                    (s->freed || e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
                        continue;
                r = graph_memory_begin(s->memory);
                if (r == CUDA_ERROR_OUT_OF_MEMORY) {
                        memory_reclaim(s->memory->range->device);
                        r = graph_memory_begin(s->memory);
                }
        }
        return r;
}

static CUresult give(CUgraphExec e, CUstream s) { /* NOLINT(misc-no-recursion): the same */
        CUresult r = CUDA_SUCCESS;

        for (size_t i = 0; i < e->n && r == CUDA_SUCCESS; i++) {
                Step *step = &e->steps[i];
                Work w = step->work;

                if (step->child)
                        r = give(step->child, s);
                if (w.kind == WORK_NOTHING || !step->enabled)
                        continue;
                if (w.kind == WORK_RECORD)
                        w.event.turn = ++w.event.event->given;
                else if (w.kind == WORK_WAIT)
                        w.event.turn = w.event.event->given;
                r = stream_submit(s, &w);
        }
        return r;
}

static CUresult launch(CUstream handle, CUgraphExec e) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = stream_make_room(s);
        if (r == CUDA_SUCCESS)
                r = check(e);
        if (r == CUDA_SUCCESS)
                r = capture_refuse_in(s);
        if (r == CUDA_SUCCESS)
                r = begin_memory(e);
        return r == CUDA_SUCCESS ? give(e, s) : r;
}

IN_STREAM(launch, cuGraphLaunch, cuGraphLaunch_ptsz, (CUgraphExec e, CUstream stream), e)

static CUresult upload(CUstream handle, CUgraphExec e) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        return r == CUDA_SUCCESS ? check(e) : r;
}

IN_STREAM(upload, cuGraphUpload, cuGraphUpload_ptsz, (CUgraphExec e, CUstream stream), e)

/* ---- changing ---- */

static CUresult find_step(CUgraphExec e, CUgraphNode node, Step **ret) {
        CUresult r = check(e);

        if (r != CUDA_SUCCESS)
                return r;
        for (size_t i = 0; i < e->n; i++)
                if (e->steps[i].node == node) {
                        *ret = &e->steps[i];
                        return CUDA_SUCCESS;
                }
        return CUDA_ERROR_INVALID_VALUE;
}

static void replace_work(Step *s, const Work *w) {
        if (w->kind == WORK_WAIT || w->kind == WORK_RECORD)
                (void) event_use(w->event.event);
        if (s->work.kind == WORK_WAIT || s->work.kind == WORK_RECORD)
                event_drop(s->work.event.event);
        s->work = *w;
}

static CUresult set(CUgraphExec e, CUgraphNode node, const CUgraphNodeParams *params) {
        Step *s;
        Work w;
        CUresult r = find_step(e, node, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (s->type != params->type || s->memory || s->child)
                return CUDA_ERROR_INVALID_VALUE;
        r = work_from(params, &w);
        if (r == CUDA_SUCCESS)
                replace_work(s, &w);
        return r;
}

CUDA_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec e, CUgraphNode node,
                                                    const CUDA_KERNEL_NODE_PARAMS *p) {
        LOCKED;

        return p ? set(e, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = *p})
                 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec e, CUgraphNode node,
                                                 const CUDA_KERNEL_NODE_PARAMS_v1 *p) {
        LOCKED;
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

        if (!p)
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(&params.kernel, p, sizeof *p);
        return set(e, node, &params);
}

CUDA_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec e, CUgraphNode node, const CUDA_MEMCPY3D *p,
                                                 CUcontext c) {
        LOCKED;

        return p ? set(e, node,
                       &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyParams = *p}})
                 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec e, CUgraphNode node,
                                                 const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c) {
        LOCKED;

        return p ? set(e, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = *p})
                 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec e, CUgraphNode node,
                                               const CUDA_HOST_NODE_PARAMS *p) {
        LOCKED;

        return p ? set(e, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = *p})
                 : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec e, CUgraphNode node, CUevent event) {
        LOCKED;

        return set(e, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event});
}

CUDA_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec e, CUgraphNode node, CUevent event) {
        LOCKED;

        return set(e, node, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event});
}

CUDA_API CUresult cuGraphExecNodeSetParams(CUgraphExec e, CUgraphNode node, CUgraphNodeParams *params) {
        LOCKED;

        return params ? set(e, node, params) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphNodeSetEnabled(CUgraphExec e, CUgraphNode node, unsigned enabled) {
        LOCKED;
        Step *s;
        CUresult r = find_step(e, node, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (s->work.kind != WORK_KERNEL && s->work.kind != WORK_COPY && s->work.kind != WORK_FILL)
                return CUDA_ERROR_INVALID_VALUE;
        s->enabled = enabled != 0;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGraphNodeGetEnabled(CUgraphExec e, CUgraphNode node, unsigned *ret) {
        LOCKED;
        Step *s;
        CUresult r = find_step(e, node, &s);

        if (r == CUDA_SUCCESS)
                *ret = s->enabled;
        return r;
}

/* Takes over the parameters of another graph of the same shape. One with memory or child graphs
 * must be instantiated anew. */
static CUresult update(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info) {
        _cleanup_free_ CUgraphNode *order = NULL;
        CUresult r = check(e);

        if (r == CUDA_SUCCESS)
                r = graph_check(g);
        if (r == CUDA_SUCCESS)
                r = graph_order(g, &order);
        if (r != CUDA_SUCCESS)
                return r;
        *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
        if (g->n != e->n)
                return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        for (size_t i = 0; i < e->n; i++)
                if (e->steps[i].type != order[i]->params.type || e->steps[i].memory || e->steps[i].child) {
                        info->errorNode = order[i];
                        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
                }
        for (size_t i = 0; i < e->n; i++)
                replace_work(&e->steps[i], &order[i]->work);
        info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info) {
        LOCKED;

        return info ? update(e, g, info) : CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *bad, int *result) {
        LOCKED;
        CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
        CUresult r = update(e, g, &info);

        if (bad)
                *bad = info.errorNode;
        if (result)
                *result = info.result;
        return r;
}
