/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The types of libcuda that copy_hooks.c reads. tests/unit/preload/launch/test-launches.c compares
 * them with the simulated libcuda's, which are compared with NVIDIA's header. */

#include <stddef.h>
#include <stdint.h>

#include "preload/launch/real.h"

enum {
        COPY_MEMORY_HOST = 1,           /* CU_MEMORYTYPE_HOST */
        COPY_MEMORY_DEVICE = 2,         /* CU_MEMORYTYPE_DEVICE */
        COPY_MEMORY_ARRAY = 3,          /* CU_MEMORYTYPE_ARRAY */
        COPY_MEMORY_UNIFIED = 4,        /* CU_MEMORYTYPE_UNIFIED */
        COPY_ATTRIBUTE_MEMORY_TYPE = 2, /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
        COPY_ATTRIBUTE_IS_MANAGED = 8,  /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
        COPY_ATTRIBUTE_ORDINAL = 9,     /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
};

typedef struct CopyRowsSide {
        size_t x, y;
        unsigned type;
        const void *host;
        uint64_t device;
        CuHandle array;
        size_t pitch;
} CopyRowsSide;

typedef struct CopyRows { /* CUDA_MEMCPY2D */
        CopyRowsSide from, to;
        size_t width, height; /* width: bytes */
} CopyRows;

typedef struct CopyBoxSide {
        size_t x, y, z, lod;
        unsigned type;
        const void *host;
        uint64_t device;
        CuHandle array;
        CuHandle context; /* of CUDA_MEMCPY3D_PEER; libcuda does not look at it */
        size_t pitch, height;
} CopyBoxSide;

typedef struct CopyBox { /* CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER */
        CopyBoxSide from, to;
        size_t width, height, depth; /* width: bytes */
} CopyBox;
