/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/api_memory.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/streamed.h"

/* Managed memory stays in the host's memory; a prefetch is remembered, and moves nothing. */

static CUresult prefetch(CUstream handle, CUdeviceptr at, size_t size, int device) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);
        Range *range;

        if (r != CUDA_SUCCESS)
                return r;
        range = range_find(at);
        if (!range || range->kind != RANGE_MANAGED || size == 0 || size > range->start + range->size - at)
                return CUDA_ERROR_INVALID_VALUE;
        range->prefetch_location = device;
        range->users = 1; /* the range has a prefetch location */
        return CUDA_SUCCESS;
}

static int place(CUmemLocation l) {
        return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : -1;
}

IN_STREAM(prefetch, cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz,
          (CUdeviceptr at, size_t size, CUdevice device, CUstream stream), at, size, device)
IN_STREAM(prefetch, cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz,
          (CUdeviceptr at, size_t size, CUmemLocation location, unsigned flags, CUstream stream), at, size,
          place(location))

static CUresult attach(CUstream handle, CUdeviceptr at, size_t size, unsigned flags) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        return range_find(at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

IN_STREAM(attach, cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz,
          (CUstream stream, CUdeviceptr at, size_t size, unsigned flags), at, size, flags)
