/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/module.h"
#include "sim/cuda/streamed.h"

/* Attributes of functions, and their running time. */

/* The first argument, from a list of pointers or a packed buffer. NULL: there is none. */
static const void *first_argument(void **params, void **extra) {
        if (params)
                return params[0];
        for (size_t i = 0; extra && extra[i] != CU_LAUNCH_PARAM_END; i += 2)
                if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
                        return extra[i + 1];
        return NULL;
}

uint64_t function_time(CUfunction f, void **params, void **extra) {
        const void *argument = f->sleeps ? first_argument(params, extra) : NULL;
        uint32_t us;

        if (!argument)
                return KERNEL_NSEC;
        memcpy(&us, argument, sizeof us);
        return (uint64_t) us * 1000;
}

/* ---- attributes ---- */

static CUresult get(int *ret, int attribute, CUfunction f) {
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = f->attributes[attribute];
        return CUDA_SUCCESS;
}

static CUresult set(int attribute, int value, CUfunction f) {
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || attribute >= CU_FUNC_ATTRIBUTE_MAX)
                return CUDA_ERROR_INVALID_VALUE;
        f->attributes[attribute] = value;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuFuncGetAttribute(int *ret, int attribute, CUfunction f) {
        LOCKED;

        return get(ret, attribute, f);
}

CUDA_API CUresult cuFuncSetAttribute(CUfunction f, int attribute, int value) {
        LOCKED;

        return set(attribute, value, f);
}

CUDA_API CUresult cuKernelGetAttribute(int *ret, int attribute, CUkernel kernel, CUdevice device) {
        LOCKED;

        return get(ret, attribute, (CUfunction) kernel);
}

CUDA_API CUresult cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
        LOCKED;

        return set(attribute, value, (CUfunction) kernel);
}

CUDA_API CUresult cuFuncSetCacheConfig(CUfunction f, int config) {
        LOCKED;

        return function_check(f);
}

CUDA_API CUresult cuFuncSetSharedMemConfig(CUfunction f, int config) {
        LOCKED;

        return function_check(f);
}

CUDA_API CUresult cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
        LOCKED;

        return function_check((CUfunction) kernel);
}

CUDA_API CUresult cuFuncGetModule(CUmodule *ret, CUfunction f) {
        LOCKED;
        CUresult r = function_check(f);

        if (r == CUDA_SUCCESS)
                *ret = f->module;
        return r;
}

static CUresult get_name(const char **ret, CUfunction f) {
        CUresult r = function_check(f);

        if (r == CUDA_SUCCESS)
                *ret = f->name;
        return r;
}

CUDA_API CUresult cuFuncGetName(const char **ret, CUfunction f) {
        LOCKED;

        return get_name(ret, f);
}

CUDA_API CUresult cuKernelGetName(const char **ret, CUkernel kernel) {
        LOCKED;

        return get_name(ret, (CUfunction) kernel);
}

CUDA_API CUresult cuFuncIsLoaded(int *ret, CUfunction f) {
        LOCKED;
        CUresult r = function_check(f);

        if (r == CUDA_SUCCESS)
                *ret = CU_FUNCTION_LOADING_STATE_LOADED;
        return r;
}

CUDA_API CUresult cuFuncLoad(CUfunction f) {
        LOCKED;

        return function_check(f);
}

/* ---- occupancy: as many threads as a processor has ---- */

enum { THREADS = 2048, BLOCKS = 32, BLOCK = 1024 };

static CUresult active_blocks(int *ret, CUfunction f, int block) {
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || block <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = block > BLOCK ? 0 : THREADS / block < BLOCKS ? THREADS / block : BLOCKS;
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret, CUfunction f, int block,
                                                              size_t shared) {
        LOCKED;

        return active_blocks(ret, f, block);
}

CUDA_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *ret, CUfunction f, int block,
                                                                       size_t shared, unsigned flags) {
        LOCKED;

        return active_blocks(ret, f, block);
}

static CUresult best_block(int *grid, int *block, CUfunction f, int limit) {
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = function_check(f);
        if (r != CUDA_SUCCESS)
                return r;
        if (!grid || !block || limit < 0)
                return CUDA_ERROR_INVALID_VALUE;
        *block = limit > 0 && limit < BLOCK ? limit : BLOCK;
        *grid = c->device->processors * (THREADS / *block < BLOCKS ? THREADS / *block : BLOCKS);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction f,
                                                   CUoccupancyB2DSize size_of, size_t shared, int limit) {
        LOCKED;

        return best_block(grid, block, f, limit);
}

CUDA_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                            CUoccupancyB2DSize size_of, size_t shared,
                                                            int limit, unsigned flags) {
        LOCKED;

        return best_block(grid, block, f, limit);
}

CUDA_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *ret, CUfunction f, int blocks, int block) {
        LOCKED;
        CUresult r = function_check(f);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || blocks <= 0 || block <= 0)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = 49152;
        return CUDA_SUCCESS;
}
