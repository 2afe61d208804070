/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graphs of the driver API: see api.h. */

#include "sim/cuda/api_copy.h"
#include "sim/cuda/api_memory.h"

typedef enum CUgraphNodeType {
        CU_GRAPH_NODE_TYPE_KERNEL = 0,
        CU_GRAPH_NODE_TYPE_MEMCPY = 1,
        CU_GRAPH_NODE_TYPE_MEMSET = 2,
        CU_GRAPH_NODE_TYPE_HOST = 3,
        CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
        CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
        CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
} CUgraphNodeType;

enum {
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
};

typedef struct CUDA_KERNEL_NODE_PARAMS {
        CUfunction func;
        unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
        void **kernelParams, **extra;
        CUkernel kern;
        CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS {
        CUdeviceptr dst;
        size_t pitch;
        unsigned int value, elementSize;
        size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUDA_HOST_NODE_PARAMS {
        CUhostFn fn;
        void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS {
        CUmemPoolProps poolProps;
        const CUmemAccessDesc *accessDescs;
        size_t accessDescCount, bytesize;
        CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct CUgraphNodeParams {
        CUgraphNodeType type;
        int reserved0[3];
        union {
                long long reserved1[29];
                CUDA_KERNEL_NODE_PARAMS kernel;
                struct {
                        int flags, reserved;
                        CUcontext copyCtx;
                        CUDA_MEMCPY3D copyParams;
                } memcpy;
                CUDA_MEMSET_NODE_PARAMS memset;
                CUDA_HOST_NODE_PARAMS host;
                CUevent event; /* to wait for */
                CUDA_MEM_ALLOC_NODE_PARAMS alloc;
                CUdeviceptr free;
        };
        long long reserved2;
} CUgraphNodeParams;

typedef struct CUgraphEdgeData {
        unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
