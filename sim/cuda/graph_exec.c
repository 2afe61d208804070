/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/graph.h"
#include "sim/cuda/streamed.h"

static CUgraphExec execs;

/* ---- making ---- */

static void step_drop(Step *s) {
        if (s->work.kind == WORK_WAIT)
                event_drop(s->work.event.event);
        if (s->memory)
                graph_memory_drop(s->memory);
}

static void exec_drop(CUgraphExec e) {
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

static void make_step(Step *s, CUgraphNode n) {
        *s = (Step){.type = n->type, .work = n->work};
        s->memory = n->memory ? graph_memory_use(n->memory) : NULL;
        if (s->work.kind == WORK_WAIT)
                (void) event_use(s->work.event.event);
}

static void find_freed(CUgraphExec e) {
        for (size_t i = 0; i < e->n; i++)
                for (size_t j = i + 1; e->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && j < e->n; j++)
                        if (e->steps[j].type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
                            e->steps[j].memory == e->steps[i].memory)
                                e->steps[i].freed = true;
}

static CUresult exec_new(CUgraph g, unsigned long long flags, CUgraphExec *ret) {
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
        if (!e->steps) {
                exec_drop(e);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        for (; e->n < g->n; e->n++)
                make_step(&e->steps[e->n], order[e->n]);
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

CUDA_API CUresult cuGraphExecDestroy(CUgraphExec e) {
        LOCKED;
        CUresult r = check(e);

        if (r == CUDA_SUCCESS)
                exec_drop(e);
        return r;
}

/* ---- launching ---- */

/* Memory comes first: a launch that cannot have it does no other work. */
static CUresult begin_memory(CUgraphExec e) {
        CUresult r = CUDA_SUCCESS;

        for (size_t i = 0; i < e->n && r == CUDA_SUCCESS; i++) {
                const Step *s = &e->steps[i];

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

static CUresult give(CUgraphExec e, CUstream s) {
        CUresult r = CUDA_SUCCESS;

        for (size_t i = 0; i < e->n && r == CUDA_SUCCESS; i++) {
                Work w = e->steps[i].work;

                if (w.kind == WORK_NOTHING)
                        continue;
                if (w.kind == WORK_WAIT)
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
