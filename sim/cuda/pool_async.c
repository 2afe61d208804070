/* SPDX-License-Identifier: Apache-2.0 */

/* Allocations in streams. */

#include "sim/cuda/pool.h"
#include "sim/cuda/streamed.h"

static CUresult alloc_async(CUstream handle, CUdeviceptr *ret, size_t size, CUmemoryPool pool, bool given) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = given ? pool_check(pool) : pool_default(c->device, &pool);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || size == 0)
                return CUDA_ERROR_INVALID_VALUE;
        if (s->capture)
                return capture_alloc(s, size, ret);
        return pool_alloc(pool, c, size, ret);
}

IN_STREAM(alloc_async, cuMemAllocAsync, cuMemAllocAsync_ptsz,
          (CUdeviceptr * ret, size_t size, CUstream stream), ret, size, NULL, false)
IN_STREAM(alloc_async, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
          (CUdeviceptr * ret, size_t size, CUmemoryPool pool, CUstream stream), ret, size, pool, true)

static CUresult free_async(CUstream handle, CUdeviceptr at) {
        const Work w = {.kind = WORK_FREE, .address = at};
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);
        const Range *range;

        if (r != CUDA_SUCCESS || at == 0)
                return r;
        range = range_find(at);
        if (!range || range->start != at || (range->kind != RANGE_POOL && range->kind != RANGE_GRAPH))
                return CUDA_ERROR_INVALID_VALUE;
        return stream_submit(s, &w);
}

IN_STREAM(free_async, cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr at, CUstream stream), at)
