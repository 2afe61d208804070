/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/array.h"

#include <string.h>

#include "sim/cuda/api_memory.h"
#include "sim/cuda/stream.h"

enum {
        ROW = 64,
        PAGE = 65536,
        LEVELS = 20
}; /* bytes a row is rounded to; bytes a whole array is rounded to */

typedef struct CUmipmappedArray_st {
        CUmipmappedArray next;
        CUcontext context;
        unsigned n;
        Block *block;
        CUdeviceptr start;
        size_t size;
        CUarray_st levels[LEVELS];
} CUmipmappedArray_st;

static CUarray arrays;
static CUmipmappedArray mipmaps;

/* ---- measures ---- */

static size_t format_size(int format) {
        switch (format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
        case CU_AD_FORMAT_SIGNED_INT8:
                return 1;
        case CU_AD_FORMAT_UNSIGNED_INT16:
        case CU_AD_FORMAT_SIGNED_INT16:
        case CU_AD_FORMAT_HALF:
                return 2;
        case CU_AD_FORMAT_UNSIGNED_INT32:
        case CU_AD_FORMAT_SIGNED_INT32:
        case CU_AD_FORMAT_FLOAT:
                return 4;
        default:
                return 0;
        }
}

static size_t at_least_one(size_t n) {
        return n > 0 ? n : 1;
}

size_t array_width(CUarray a) {
        return a->desc.Width * format_size(a->desc.Format) * a->desc.NumChannels;
}

size_t array_height(CUarray a) {
        return at_least_one(a->desc.Height);
}

size_t array_depth(CUarray a) {
        return at_least_one(a->desc.Depth);
}

/* Fills in the sizes. OUT_OF_MEMORY if they overflow. */
static CUresult measure(CUarray a, const CUDA_ARRAY3D_DESCRIPTOR *desc) {
        a->desc = *desc;
        if (desc->Width == 0 || format_size(desc->Format) == 0 ||
            (desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4))
                return CUDA_ERROR_INVALID_VALUE;
        if (desc->Width > SIZE_MAX / 64)
                return CUDA_ERROR_OUT_OF_MEMORY;
        a->pitch = (array_width(a) + ROW - 1) / ROW * ROW;
        if (__builtin_mul_overflow(a->pitch, array_height(a), &a->slice) ||
            __builtin_mul_overflow(a->slice, array_depth(a), &a->size) || a->size > SIZE_MAX / 2)
                return CUDA_ERROR_OUT_OF_MEMORY;
        return CUDA_SUCCESS;
}

static size_t round_up(size_t size) {
        return (size + PAGE - 1) / PAGE * PAGE;
}

/* ---- arrays ---- */

CUresult array_check(CUarray a) {
        for (CUarray known = arrays; known; known = known->next)
                if (known == a)
                        return CUDA_SUCCESS;
        for (CUmipmappedArray m = mipmaps; m; m = m->next)
                if (a >= m->levels && a < m->levels + m->n)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult take(Device *d, size_t size, Block **block, CUdeviceptr *start) {
        Range range = {.kind = RANGE_ARRAY, .size = size, .device = d};
        CUresult r = block_new(d, size, false, block);

        if (r != CUDA_SUCCESS)
                return r;
        range.block = *block;
        range.start = *start = address_take(size, PAGE, 0);
        r = *start != 0 ? block_map(*block, *start, size, 0) : CUDA_ERROR_OUT_OF_MEMORY;
        if (r == CUDA_SUCCESS && !range_add(&range))
                r = CUDA_ERROR_OUT_OF_MEMORY;
        if (r != CUDA_SUCCESS) {
                if (*start != 0)
                        address_drop(*start, size);
                block_drop(*block);
        }
        return r;
}

static void give_back(Block *block, CUdeviceptr start, size_t size) {
        range_remove(range_find(start));
        address_drop(start, size);
        block_drop(block);
}

static CUresult create(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc) {
        CUcontext c;
        CUresult r = context_enter(&c);
        CUarray a;

        if (r == CUDA_SUCCESS)
                r = capture_refuse(c);
        if (r != CUDA_SUCCESS)
                return r;
        a = calloc(1, sizeof *a);
        if (!a)
                return CUDA_ERROR_OUT_OF_MEMORY;
        a->context = c;
        r = measure(a, desc);
        if (r == CUDA_SUCCESS) {
                a->size = round_up(a->size);
                r = take(c->device, a->size, &a->block, &a->start);
        }
        if (r != CUDA_SUCCESS) {
                free(a);
                return r;
        }
        a->next = arrays;
        arrays = a;
        *ret = a;
        return CUDA_SUCCESS;
}

static void destroy(CUarray a) {
        for (CUarray *link = &arrays; *link; link = &(*link)->next)
                if (*link == a) {
                        *link = a->next;
                        break;
                }
        give_back(a->block, a->start, a->size);
        free(a);
}

CUDA_API CUresult cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *desc) {
        LOCKED;
        CUDA_ARRAY3D_DESCRIPTOR full = {.Depth = 0};

        if (!ret || !desc)
                return CUDA_ERROR_INVALID_VALUE;
        full.Width = desc->Width;
        full.Height = desc->Height;
        full.Format = desc->Format;
        full.NumChannels = desc->NumChannels;
        return create(ret, &full);
}

CUDA_API CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc) {
        LOCKED;

        return !ret || !desc ? CUDA_ERROR_INVALID_VALUE : create(ret, desc);
}

CUDA_API CUresult cuArrayDestroy(CUarray a) {
        LOCKED;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = array_check(a);
        if (r != CUDA_SUCCESS)
                return r;
        if (a->of_mipmap)
                return CUDA_ERROR_INVALID_HANDLE;
        r = context_wait(a->context);
        if (array_check(a) == CUDA_SUCCESS)
                destroy(a);
        return r;
}

/* ---- mipmaps ---- */

static size_t halve(size_t n, unsigned times) {
        return n == 0 ? 0 : at_least_one(n >> times);
}

/* Sizes every level, and puts it behind the one before. */
static CUresult lay_out(CUmipmappedArray m, const CUDA_ARRAY3D_DESCRIPTOR *desc) {
        for (unsigned i = 0; i < m->n; i++) {
                CUarray level = &m->levels[i];
                CUDA_ARRAY3D_DESCRIPTOR d = *desc;
                bool layered = (desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
                CUresult r;

                d.Width = halve(desc->Width, i);
                d.Height = halve(desc->Height, i);
                d.Depth = layered ? desc->Depth : halve(desc->Depth, i);
                r = measure(level, &d);
                if (r != CUDA_SUCCESS)
                        return r;
                level->of_mipmap = true;
                level->context = m->context;
                level->start = m->size; /* an offset until memory is allocated */
                m->size += level->size;
        }
        m->size = round_up(m->size);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                         unsigned levels) {
        LOCKED;
        CUmipmappedArray m;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r == CUDA_SUCCESS)
                r = capture_refuse(c);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || !desc || levels == 0)
                return CUDA_ERROR_INVALID_VALUE;
        m = calloc(1, sizeof *m);
        if (!m)
                return CUDA_ERROR_OUT_OF_MEMORY;
        m->context = c;
        m->n = levels < LEVELS ? levels : LEVELS;
        r = lay_out(m, desc);
        if (r == CUDA_SUCCESS)
                r = take(c->device, m->size, &m->block, &m->start);
        if (r != CUDA_SUCCESS) {
                free(m);
                return r;
        }
        for (unsigned i = 0; i < m->n; i++)
                m->levels[i].start += m->start;
        m->next = mipmaps;
        mipmaps = m;
        *ret = m;
        return CUDA_SUCCESS;
}

static CUresult check_mipmap(CUmipmappedArray mipmap) {
        for (CUmipmappedArray m = mipmaps; m; m = m->next)
                if (m == mipmap)
                        return CUDA_SUCCESS;
        return CUDA_ERROR_INVALID_HANDLE;
}

CUDA_API CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray m, unsigned level) {
        LOCKED;
        CUresult r = check_mipmap(m);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || level >= m->n)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = &m->levels[level];
        return CUDA_SUCCESS;
}

static void destroy_mipmap(CUmipmappedArray m) {
        for (CUmipmappedArray *link = &mipmaps; *link; link = &(*link)->next)
                if (*link == m) {
                        *link = m->next;
                        break;
                }
        give_back(m->block, m->start, m->size);
        free(m);
}

CUDA_API CUresult cuMipmappedArrayDestroy(CUmipmappedArray m) {
        LOCKED;
        CUresult r = state_check();

        if (r == CUDA_SUCCESS)
                r = check_mipmap(m);
        if (r != CUDA_SUCCESS)
                return r;
        r = context_wait(m->context);
        if (check_mipmap(m) == CUDA_SUCCESS)
                destroy_mipmap(m);
        return r;
}

void arrays_end_context(CUcontext c) {
        CUmipmappedArray next_mipmap;
        CUarray next;

        for (CUarray a = arrays; a; a = next) {
                next = a->next;
                if (a->context == c)
                        destroy(a);
        }
        for (CUmipmappedArray m = mipmaps; m; m = next_mipmap) {
                next_mipmap = m->next;
                if (m->context == c)
                        destroy_mipmap(m);
        }
}
