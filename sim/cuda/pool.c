/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/pool.h"

#include <string.h>

#include "sim/cuda/state.h"

static CUmemoryPool pools;

/* ---- pools ---- */

static CUresult pool_new(Device *d, bool host, const CUmemPoolProps *props, CUmemoryPool *ret) {
        CUmemoryPool p = calloc(1, sizeof *p);

        if (!p)
                return CUDA_ERROR_OUT_OF_MEMORY;
        p->heap = (Heap){.device = d, .keeps = true, .host = host};
        p->props = *props;
        p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
        p->next = pools;
        pools = p;
        *ret = p;
        return CUDA_SUCCESS;
}

static void pool_drop(CUmemoryPool p) {
        for (CUmemoryPool *at = &pools; *at; at = &(*at)->next)
                if (*at == p) {
                        *at = p->next;
                        break;
                }
        heap_done(&p->heap);
        free(p);
}

CUresult pool_check(CUmemoryPool pool) {
        for (CUmemoryPool p = pools; p; p = p->next)
                if (p == pool)
                        return p->destroyed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_VALUE;
}

CUresult pool_default(Device *d, CUmemoryPool *ret) {
        const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal}};
        CUresult r = d->default_pool ? CUDA_SUCCESS : pool_new(d, false, &props, &d->default_pool);

        *ret = d->default_pool;
        return r;
}

CUresult pool_alloc(CUmemoryPool pool, CUcontext c, size_t size, CUdeviceptr *ret) {
        Range range = {
                .kind = RANGE_POOL, .size = size, .context = c, .device = pool->heap.device, .pool = pool};
        CUresult r;

        if (pool->props.maxSize != 0 &&
            (pool->heap.used > pool->props.maxSize || size > pool->props.maxSize - pool->heap.used))
                return CUDA_ERROR_OUT_OF_MEMORY;
        r = heap_alloc(&pool->heap, size, &range.start, &range.chunk);
        if (r != CUDA_SUCCESS)
                return r;
        range.block = chunk_block(range.chunk);
        if (!range_add(&range)) {
                heap_free(&pool->heap, range.chunk, range.start, size);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret = range.start;
        return CUDA_SUCCESS;
}

void pool_free(Range *r) {
        CUmemoryPool p = r->pool;

        heap_free(&p->heap, r->chunk, r->start, r->size);
        range_remove(r);
        if (p->destroyed && p->heap.used == 0)
                pool_drop(p);
}

void pools_relax(const Device *d) {
        for (CUmemoryPool p = pools; p; p = p->next)
                if (p->heap.device == d && p->heap.reserved > p->threshold)
                        heap_trim(&p->heap, p->threshold);
}

void pools_reclaim(const Device *d) {
        for (CUmemoryPool p = pools; p; p = p->next)
                if (p->heap.device == d)
                        heap_trim(&p->heap, 0);
}

/* ---- exported: pools ---- */

CUDA_API CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props) {
        LOCKED;
        bool host;
        Device *d;
        CUresult r;

        if (!ret || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
                return CUDA_ERROR_INVALID_VALUE;
        if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
                return CUDA_ERROR_NOT_SUPPORTED;
        r = memory_location(&props->location, &host, &d);
        return r == CUDA_SUCCESS ? pool_new(d, host, props, ret) : r;
}

CUDA_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
        LOCKED;
        CUresult r = pool_check(pool);

        if (r != CUDA_SUCCESS)
                return r;
        if (pool == pool->heap.device->default_pool)
                return CUDA_ERROR_INVALID_VALUE;
        pool->destroyed = true;
        heap_trim(&pool->heap, 0);
        if (pool->heap.used == 0)
                pool_drop(pool);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
        LOCKED;
        CUresult r = pool_check(pool);

        if (r == CUDA_SUCCESS)
                heap_trim(&pool->heap, keep);
        return r;
}

/* Address of an attribute of 64 bits; NULL: it is none. */
static uint64_t *large_attribute(CUmemoryPool p, int attribute) {
        switch (attribute) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
                return &p->threshold;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
                return &p->heap.reserved;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
                return &p->heap.reserved_high;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
                return &p->heap.used;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
                return &p->heap.used_high;
        default:
                return NULL;
        }
}

static bool is_reuse(int attribute) {
        return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
               attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUDA_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
        LOCKED;
        CUresult r = pool_check(pool);
        const uint64_t *large;

        if (r != CUDA_SUCCESS || !value)
                return CUDA_ERROR_INVALID_VALUE;
        large = large_attribute(pool, attribute);
        if (large)
                *(uint64_t *) value = *large;
        else if (is_reuse(attribute))
                *(int *) value = pool->reuse[attribute - 1];
        else
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
        LOCKED;
        CUresult r = pool_check(pool);

        if (r != CUDA_SUCCESS || !value)
                return CUDA_ERROR_INVALID_VALUE;
        if (is_reuse(attribute))
                pool->reuse[attribute - 1] = *(const int *) value;
        else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
                pool->threshold = *(const uint64_t *) value;
        else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && *(const uint64_t *) value == 0)
                pool->heap.reserved_high = pool->heap.reserved;
        else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && *(const uint64_t *) value == 0)
                pool->heap.used_high = pool->heap.used;
        else
                return CUDA_ERROR_INVALID_VALUE;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device) {
        LOCKED;
        Device *d;
        CUresult r = state_device(device, &d);

        return r == CUDA_SUCCESS ? pool_default(d, ret) : r;
}
