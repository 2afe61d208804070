/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/host.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/stream.h"

enum { PITCH = 512 };

/* ---- what ranges stand for ---- */

void memory_reclaim(Device *d) {
        pools_reclaim(d);
        graph_memory_trim(d);
}

static void free_device(Range *r) {
        heap_free(r->context->heap, r->chunk, r->start, r->size);
        range_remove(r);
}

static void free_block(Range *r) {
        address_drop(r->start, r->size);
        block_drop(r->block);
        range_remove(r);
}

void range_free(Range *r) {
        switch (r->kind) {
        case RANGE_DEVICE:
        case RANGE_MODULE:
                free_device(r);
                return;
        case RANGE_POOL:
                pool_free(r);
                return;
        case RANGE_GRAPH:
                graph_memory_end(r->owner);
                return;
        case RANGE_IPC:
        case RANGE_EXTERNAL:
                free_block(r);
                return;
        case RANGE_MANAGED:
        case RANGE_HOST:
        case RANGE_REGISTERED:
                host_free(r);
                return;
        case RANGE_MAPPED: /* cuMemUnmap() ends it */
        case RANGE_ARRAY:
                return;
        }
}

/* ---- plain ---- */

static CUresult enter_to_allocate(CUcontext *ret) {
        CUresult r = context_enter(ret);

        return r == CUDA_SUCCESS ? capture_refuse(*ret) : r;
}

static CUresult alloc(CUdeviceptr *ret, size_t size) {
        Range range = {.kind = RANGE_DEVICE, .size = size};
        CUcontext c;
        CUresult r = enter_to_allocate(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        range.context = c;
        range.device = c->device;
        r = heap_alloc(c->heap, size, &range.start, &range.chunk);
        if (r != CUDA_SUCCESS)
                return r;
        range.block = chunk_block(range.chunk);
        if (!range_add(&range)) {
                heap_free(c->heap, range.chunk, range.start, size);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        *ret = range.start;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t size) {
        LOCKED;

        return alloc(ret, size);
}

CUDA_API CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t width, size_t height,
                                     unsigned element) {
        LOCKED;
        size_t row = (width + PITCH - 1) / PITCH * PITCH, size;
        CUresult r;

        if (!pitch || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
                return CUDA_ERROR_INVALID_VALUE;
        if (row < width || __builtin_mul_overflow(row, height, &size))
                return CUDA_ERROR_OUT_OF_MEMORY;
        r = alloc(ret, size);
        if (r == CUDA_SUCCESS)
                *pitch = row;
        return r;
}

/* Memory that is freed must not be in use: the real driver waits, too. */
static CUresult free_at(CUdeviceptr at) {
        CUcontext c;
        CUresult r = enter_to_allocate(&c);
        Range *range;

        if (r != CUDA_SUCCESS || at == 0)
                return r;
        range = range_find(at);
        if (!range || range->start != at || range->kind == RANGE_HOST || range->kind == RANGE_REGISTERED ||
            range->kind == RANGE_MAPPED || range->kind == RANGE_IPC || range->kind == RANGE_MODULE ||
            range->kind == RANGE_ARRAY)
                return CUDA_ERROR_INVALID_VALUE;
        r = context_wait(range->context ? range->context : c);
        range = range_find(at); /* the lock was gone */
        if (!range || range->start != at)
                return CUDA_ERROR_INVALID_VALUE;
        range_free(range);
        return r;
}

CUDA_API CUresult cuMemFree_v2(CUdeviceptr at) {
        LOCKED;

        return free_at(at);
}

CUDA_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr at) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);
        const Range *range;

        if (r != CUDA_SUCCESS)
                return r;
        range = range_find(at);
        if (!range)
                return CUDA_ERROR_NOT_FOUND;
        if (base)
                *base = range->start;
        if (size)
                *size = range->size;
        return CUDA_SUCCESS;
}

/* ---- attributes of pointers ---- */

static bool is_host(const Range *r) {
        return r->kind == RANGE_HOST || r->kind == RANGE_REGISTERED;
}

static CUresult attribute_of(const Range *r, CUpointer_attribute attribute, CUdeviceptr at, void *ret) {
        switch (attribute) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
                *(CUcontext *) ret = r->context;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
                *(unsigned *) ret = is_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
                *(CUdeviceptr *) ret = at;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
                if (!is_host(r) && r->kind != RANGE_MANAGED)
                        return CUDA_ERROR_INVALID_VALUE;
                *(void **) ret = (void *) (uintptr_t) at;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
                *(int *) ret = 0;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
                *(unsigned long long *) ret = r->id;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
                *(int *) ret = r->kind == RANGE_MANAGED;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
                *(int *) ret = r->device ? r->device->ordinal : 0;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
                *(int *) ret = r->kind == RANGE_DEVICE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
                *(CUdeviceptr *) ret = r->start;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
                *(size_t *) ret = r->size;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPED:
                *(int *) ret = r->kind != RANGE_GRAPH || r->block;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
                *(unsigned long long *) ret = r->block && r->block->own_file
                                                      ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                      : CU_MEM_HANDLE_TYPE_NONE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
                *(int *) ret = r->kind == RANGE_MAPPED ? r->access : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
                return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
                *(CUmemoryPool *) ret = r->pool;
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

CUDA_API CUresult cuPointerGetAttribute(void *ret, CUpointer_attribute attribute, CUdeviceptr at) {
        LOCKED;
        CUresult r = state_check();
        const Range *range;

        if (r != CUDA_SUCCESS)
                return r;
        range = range_find(at);
        if (!ret || !range)
                return CUDA_ERROR_INVALID_VALUE;
        return attribute_of(range, attribute, at, ret);
}
