/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches, streams and events of the driver API: see api.h. */

#include "sim/cuda/api.h"

#define CU_LAUNCH_PARAM_END            ((void *) 0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *) 0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *) 0x02)

enum {
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
        CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
        CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        CU_FUNC_ATTRIBUTE_MAX = 16,
        CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
        CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
        CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
        CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
        CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
        CU_STREAM_MEM_OP_BARRIER = 6,
};

typedef struct CUlaunchAttribute {
        int id;
        char pad[4];
        union {
                char pad[64];
                unsigned long long align;
        } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
        unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
        CUstream hStream;
        CUlaunchAttribute *attrs;
        unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_LAUNCH_PARAMS {
        CUfunction function;
        unsigned int gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
        CUstream hStream;
        void **kernelParams;
} CUDA_LAUNCH_PARAMS;

typedef union CUstreamBatchMemOpParams {
        int operation;
        struct { /* of a wait and of a write alike */
                int operation;
                CUdeviceptr address;
                union {
                        cuuint32_t value;
                        cuuint64_t value64;
                };
                unsigned int flags;
                CUdeviceptr alias;
        } waitValue;
        cuuint64_t pad[6];
} CUstreamBatchMemOpParams;

typedef struct CUdevprop {
        int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
        int sharedMemPerBlock, totalConstantMemory, SIMDWidth, memPitch, regsPerBlock, clockRate,
                textureAlign;
} CUdevprop;

typedef struct CUctxCreateParams {
        void *execAffinityParams;
        int numExecAffinityParams;
        void *cigParams;
} CUctxCreateParams;
