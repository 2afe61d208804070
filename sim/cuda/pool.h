/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pools of cuMemAllocAsync, and the memory of graphs. Freed memory stays reserved until it is
 * trimmed, until memory runs out, or until a synchronisation finds more of it than the pool's
 * threshold (0, unless set). */

#include "sim/cuda/api_memory.h"
#include "sim/cuda/memory.h"

typedef struct CUmemPoolHandle_st {
        CUmemoryPool next;
        bool destroyed; /* freed when none of it is in use */
        Heap heap;
        CUmemPoolProps props;
        uint64_t threshold;
        int reuse[3];
} CUmemPoolHandle_st;

CUresult pool_default(Device *d, CUmemoryPool *ret);
CUresult pool_check(CUmemoryPool pool);
CUresult pool_alloc(CUmemoryPool pool, CUcontext c, size_t size, CUdeviceptr *ret);
void pool_free(Range *r);
void pools_relax(const Device *d);   /* at a synchronisation */
void pools_reclaim(const Device *d); /* everything that is not in use */

/* Memory of an allocation node: its address is fixed when the node is made, and its pages come with
 * the first launch. */
typedef struct GraphMemory {
        struct GraphMemory *next;
        unsigned users; /* references: nodes, executable nodes, and the allocation while it lives */
        bool live;
        Range *range;
} GraphMemory;

CUresult graph_memory_new(Device *d, size_t size, GraphMemory **ret);
GraphMemory *graph_memory_use(GraphMemory *m);
void graph_memory_drop(GraphMemory *m);
CUresult graph_memory_begin(GraphMemory *m); /* INVALID_VALUE when it lives already */
void graph_memory_end(GraphMemory *m);
GraphMemory *graph_memory_find(CUdeviceptr at);
void graph_memory_trim(Device *d);
void graph_memory_end_device(const Device *d); /* frees all: no user is left */
