/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Launches, streams and events of the driver API: see api.h. */

#include "sim/cuda/api.h"

#define CU_LAUNCH_PARAM_END            ((void *) 0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *) 0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *) 0x02)

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

typedef struct CUctxCreateParams {
        void *execAffinityParams;
        int numExecAffinityParams;
        void *cigParams;
} CUctxCreateParams;
