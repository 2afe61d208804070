/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/api_graph.h"
#include "sim/cuda/pool.h"

static GraphMemory *memories;

CUresult graph_memory_new(Device *d, size_t size, GraphMemory **ret) {
        Range range = {.kind = RANGE_GRAPH, .device = d};
        GraphMemory *m = calloc(1, sizeof *m);

        if (!m || size > SIZE_MAX / 2) {
                free(m);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        range.size = (size + GRANULE - 1) / GRANULE * GRANULE;
        range.owner = m;
        range.start = address_take(range.size, GRANULE, 0);
        m->range = range.start != 0 ? range_add(&range) : NULL;
        if (!m->range) {
                if (range.start != 0)
                        address_drop(range.start, range.size);
                free(m);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        m->users = 1;
        m->next = memories;
        memories = m;
        *ret = m;
        return CUDA_SUCCESS;
}

GraphMemory *graph_memory_use(GraphMemory *m) {
        m->users++;
        return m;
}

static void forget_pages(GraphMemory *m) {
        if (!m->range->block)
                return;
        address_clear(m->range->start, m->range->size);
        block_drop(m->range->block);
        m->range->block = NULL;
}

void graph_memory_drop(GraphMemory *m) {
        if (--m->users > 0)
                return;
        for (GraphMemory **link = &memories; *link; link = &(*link)->next)
                if (*link == m) {
                        *link = m->next;
                        break;
                }
        forget_pages(m);
        address_drop(m->range->start, m->range->size);
        range_remove(m->range);
        free(m);
}

static CUresult take_pages(GraphMemory *m) {
        Block *b;
        CUresult r;

        if (m->range->block)
                return CUDA_SUCCESS;
        r = block_new(m->range->device, m->range->size, false, &b);
        if (r != CUDA_SUCCESS)
                return r;
        r = block_map(b, m->range->start, m->range->size, 0);
        if (r != CUDA_SUCCESS) {
                block_drop(b);
                return r;
        }
        m->range->block = b;
        return CUDA_SUCCESS;
}

CUresult graph_memory_begin(GraphMemory *m) {
        CUresult r;

        if (m->live)
                return CUDA_ERROR_INVALID_VALUE;
        r = take_pages(m);
        if (r != CUDA_SUCCESS)
                return r;
        m->live = true;
        m->users++;
        return CUDA_SUCCESS;
}

void graph_memory_end(GraphMemory *m) {
        if (!m->live)
                return;
        m->live = false;
        graph_memory_drop(m);
}

GraphMemory *graph_memory_find(CUdeviceptr at) {
        const Range *r = range_find(at);

        return r && r->kind == RANGE_GRAPH && r->start == at ? r->owner : NULL;
}

void graph_memory_trim(Device *d) {
        for (GraphMemory *m = memories; m; m = m->next)
                if (!m->live && m->range->device == d)
                        forget_pages(m);
}

void graph_memory_end_device(const Device *d) {
        GraphMemory *next;

        for (GraphMemory *m = memories; m; m = next) {
                next = m->next;
                if (m->range->device == d)
                        graph_memory_end(m);
        }
}

/* ---- exported ---- */

CUDA_API CUresult cuDeviceGraphMemTrim(CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        if (r == CUDA_SUCCESS)
                graph_memory_trim(d);
        return r;
}
