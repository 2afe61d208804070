/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of the CUDA driver API: results, handles, flags and attributes. They are declared here
 * because no machine that builds this has cuda.h. Names, numbers and layouts are those of cuda.h of
 * CUDA 13.0; tests/sim/header.py compares every one with the real header where there is one.
 * Structures are in api_memory.h, api_launch.h and api_graph.h. */

#include <stddef.h>
#include <stdint.h>

#include "sim/cuda/errors.h"

#define CUDA_ERROR_VALUE(name, number) name = number,
typedef enum CUresult { CUDA_ERRORS(CUDA_ERROR_VALUE) } CUresult;

/* What is exported. */
#define CUDA_API __attribute__((visibility("default")))

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef void (*CUhostFn)(void *data);
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *data);

typedef struct CUuuid {
        char bytes[16];
} CUuuid;

#define CU_STREAM_LEGACY     ((CUstream) 0x1)
#define CU_STREAM_PER_THREAD ((CUstream) 0x2)

enum {
        CU_CTX_FLAGS_MASK = 0xFF,
        CU_STREAM_DEFAULT = 0,
        CU_STREAM_NON_BLOCKING = 1,
        CU_EVENT_DEFAULT = 0,
        CU_EVENT_BLOCKING_SYNC = 1,
        CU_EVENT_DISABLE_TIMING = 2,
        CU_EVENT_INTERPROCESS = 4,
        CU_STREAM_CAPTURE_STATUS_NONE = 0,
        CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
        CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
        CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
        CU_STREAM_CAPTURE_MODE_RELAXED = 2,
        CU_STREAM_WAIT_VALUE_GEQ = 0,
        CU_STREAM_WAIT_VALUE_EQ = 1,
        CU_STREAM_WAIT_VALUE_AND = 2,
        CU_STREAM_WAIT_VALUE_NOR = 3,
        CU_GET_PROC_ADDRESS_DEFAULT = 0,
        CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
        CU_GET_PROC_ADDRESS_SUCCESS = 0,
        CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
        CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};
