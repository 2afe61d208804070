/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Arrays and copies of the driver API: see api.h. */

#include "sim/cuda/api.h"

enum {
        CU_AD_FORMAT_UNSIGNED_INT8 = 0x01,
        CU_AD_FORMAT_UNSIGNED_INT16 = 0x02,
        CU_AD_FORMAT_UNSIGNED_INT32 = 0x03,
        CU_AD_FORMAT_SIGNED_INT8 = 0x08,
        CU_AD_FORMAT_SIGNED_INT16 = 0x09,
        CU_AD_FORMAT_SIGNED_INT32 = 0x0a,
        CU_AD_FORMAT_HALF = 0x10,
        CU_AD_FORMAT_FLOAT = 0x20,
};

typedef struct CUDA_MEMCPY2D {
        size_t srcXInBytes, srcY;
        int srcMemoryType;
        const void *srcHost;
        CUdeviceptr srcDevice;
        CUarray srcArray;
        size_t srcPitch;
        size_t dstXInBytes, dstY;
        int dstMemoryType;
        void *dstHost;
        CUdeviceptr dstDevice;
        CUarray dstArray;
        size_t dstPitch;
        size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D {
        size_t srcXInBytes, srcY, srcZ, srcLOD;
        int srcMemoryType;
        const void *srcHost;
        CUdeviceptr srcDevice;
        CUarray srcArray;
        void *reserved0;
        size_t srcPitch, srcHeight;
        size_t dstXInBytes, dstY, dstZ, dstLOD;
        int dstMemoryType;
        void *dstHost;
        CUdeviceptr dstDevice;
        CUarray dstArray;
        void *reserved1;
        size_t dstPitch, dstHeight;
        size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

/* Of the same layout: the contexts of source and destination are reserved0 and reserved1. */
typedef CUDA_MEMCPY3D CUDA_MEMCPY3D_PEER;

typedef struct CUDA_ARRAY_DESCRIPTOR {
        size_t Width, Height;
        int Format;
        unsigned int NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct CUDA_ARRAY3D_DESCRIPTOR {
        size_t Width, Height, Depth;
        int Format;
        unsigned int NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;
