/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/share.h"

/* External memory: descriptors from another API. Here only cuMemExportToShareableHandle() makes
 * such descriptors. */

typedef struct CUextMemory_st {
        CUexternalMemory next;
        Block *block;
} CUextMemory_st;

static CUexternalMemory memories;

static CUresult check(CUexternalMemory memory) {
        for (CUexternalMemory m = memories; m; m = m->next)
                if (m == memory)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API CUresult cuImportExternalMemory(CUexternalMemory *ret,
                                         const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);
        CUexternalMemory m;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || !desc)
                return CUDA_ERROR_INVALID_VALUE;
        if (desc->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD)
                return CUDA_ERROR_NOT_SUPPORTED;
        m = calloc(1, sizeof *m);
        if (!m)
                return CUDA_ERROR_OUT_OF_MEMORY;
        r = share_import(desc->handle.fd, &m->block);
        if (r == CUDA_SUCCESS && desc->size > m->block->size) {
                block_drop(m->block);
                r = CUDA_ERROR_INVALID_VALUE;
        }
        if (r != CUDA_SUCCESS) {
                free(m);
                return r;
        }
        (void) close(desc->handle.fd); /* the driver owns it from now on */
        m->next = memories;
        memories = m;
        *ret = m;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *ret, CUexternalMemory memory,
                                                  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc) {
        LOCKED;
        Range range = {.kind = RANGE_EXTERNAL};
        CUresult r = context_enter(&range.context);

        if (r == CUDA_SUCCESS)
                r = check(memory);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || !desc || desc->size == 0 || desc->flags != 0 || desc->offset % 4096 != 0 ||
            desc->offset > memory->block->size || desc->size > memory->block->size - desc->offset)
                return CUDA_ERROR_INVALID_VALUE;
        range.size = (desc->size + 4095) / 4096 * 4096;
        range.device = memory->block->device;
        range.block = memory->block;
        range.start = address_take(range.size, GRANULE, 0);
        if (range.start == 0)
                return CUDA_ERROR_OUT_OF_MEMORY;
        r = block_map(memory->block, range.start, range.size, desc->offset);
        if (r == CUDA_SUCCESS && !range_add(&range))
                r = CUDA_ERROR_OUT_OF_MEMORY;
        if (r != CUDA_SUCCESS) {
                address_drop(range.start, range.size);
                return r;
        }
        (void) block_use(memory->block);
        *ret = range.start;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
        LOCKED;
        CUresult r = check(memory);

        if (r != CUDA_SUCCESS)
                return r;
        for (CUexternalMemory *link = &memories; *link; link = &(*link)->next)
                if (*link == memory) {
                        *link = memory->next;
                        break;
                }
        block_drop(memory->block);
        free(memory);
        return CUDA_SUCCESS;
}
