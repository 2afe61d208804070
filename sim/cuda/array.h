/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Arrays: memory of the card in rows, slices and levels, one behind the other. Real cards swizzle
 * them; only the size of the allocation can be seen from outside. */

#include "sim/cuda/api_copy.h"
#include "sim/cuda/memory.h"

typedef struct CUarray_st {
        CUarray next;
        CUcontext context;
        CUDA_ARRAY3D_DESCRIPTOR desc;
        bool of_mipmap; /* a level: freed with its mipmap */
        Block *block;
        CUdeviceptr start;
        size_t pitch, slice, size; /* bytes */
} CUarray_st;

CUresult array_check(CUarray a);
/* Rows of an array as copies see them: at least 1 each. */
size_t array_width(CUarray a); /* bytes */
size_t array_height(CUarray a);
size_t array_depth(CUarray a);
void arrays_end_context(CUcontext c);
