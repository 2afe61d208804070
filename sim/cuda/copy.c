/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/copy.h"
#include "sim/cuda/api_memory.h"
#include "sim/cuda/array.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/streamed.h"

/* Copies and fills. An address may be of the card or of the host: it is of the card if it is in a
 * known range. */

static bool is_card(CUdeviceptr at) {
        const Range *r = range_find(at);

        return r && r->kind != RANGE_HOST && r->kind != RANGE_REGISTERED;
}

/* ---- giving ---- */

static CUresult submit(CUstream handle, const Work *w, bool wait) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (wait) {
                r = capture_refuse(c);
                if (r != CUDA_SUCCESS)
                        return r;
        }
        r = stream_make_room(s);
        if (r == CUDA_SUCCESS)
                r = stream_submit(s, w);
        return r == CUDA_SUCCESS && wait ? stream_wait(s) : r;
}

static CUresult linear(CUstream stream, CUdeviceptr to, bool to_card, CUdeviceptr from, bool from_card,
                       size_t n, bool wait) {
        const Work w = {.kind = WORK_COPY,
                        .copy = {.to = to,
                                 .from = from,
                                 .width = n,
                                 .height = 1,
                                 .depth = 1,
                                 .to_card = to_card,
                                 .from_card = from_card}};

        return submit(stream, &w, wait);
}

static CUdeviceptr host(const void *p) {
        return (CUdeviceptr) (uintptr_t) p;
}

/* ---- linear ---- */

static CUresult any(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t n, bool wait) {
        return linear(stream, to, is_card(to), from, is_card(from), n, wait);
}

IN_DEFAULT(any, cuMemcpy, cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), to, from, n, true)
IN_STREAM(any, cuMemcpyAsync, cuMemcpyAsync_ptsz,
          (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream), to, from, n, false)

/* The addresses tell the cards; the contexts may be NULL. */
static CUresult peer(CUstream stream, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                     CUcontext from_context, size_t n, bool wait) {
        (void) to_context;
        (void) from_context;
        return linear(stream, to, true, from, true, n, wait);
}

IN_DEFAULT(linear, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void *from, size_t n), to,
           true, host(from), false, n, true)
IN_DEFAULT(linear, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, (void *to, CUdeviceptr from, size_t n), host(to),
           false, from, true, n, true)
IN_DEFAULT(linear, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), to,
           true, from, true, n, true)
IN_DEFAULT(peer, cuMemcpyPeer, cuMemcpyPeer_ptds,
           (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n), to,
           to_context, from, from_context, n, true)
IN_STREAM(peer, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t n,
           CUstream stream),
          to, to_context, from, from_context, n, false)
IN_STREAM(linear, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
          (CUdeviceptr to, const void *from, size_t n, CUstream stream), to, true, host(from), false, n,
          false)
IN_STREAM(linear, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
          (void *to, CUdeviceptr from, size_t n, CUstream stream), host(to), false, from, true, n, false)
IN_STREAM(linear, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
          (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream), to, true, from, true, n, false)

/* ---- arrays, byte by byte ---- */

/* Only arrays of one row are copied like this: their bytes are contiguous. */
static CUresult inside(CUarray a, size_t offset, size_t n, CUdeviceptr *ret) {
        CUresult r = array_check(a);

        if (r != CUDA_SUCCESS)
                return r;
        if (offset > array_width(a) || n > array_width(a) - offset)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = a->start + offset;
        return CUDA_SUCCESS;
}

static CUresult to_array(CUstream stream, CUarray a, size_t offset, CUdeviceptr from, bool card, size_t n,
                         bool wait) {
        CUdeviceptr to = 0;
        CUresult r = inside(a, offset, n, &to);

        return r == CUDA_SUCCESS ? linear(stream, to, true, from, card, n, wait) : r;
}

static CUresult from_array(CUstream stream, CUdeviceptr to, bool card, CUarray a, size_t offset, size_t n,
                           bool wait) {
        CUdeviceptr from = 0;
        CUresult r = inside(a, offset, n, &from);

        return r == CUDA_SUCCESS ? linear(stream, to, card, from, true, n, wait) : r;
}

static CUresult array_to_array(CUstream stream, CUarray to, size_t to_offset, CUarray from,
                               size_t from_offset, size_t n) {
        CUdeviceptr at = 0;
        CUresult r = inside(from, from_offset, n, &at);

        return r == CUDA_SUCCESS ? to_array(stream, to, to_offset, at, true, n, true) : r;
}

IN_DEFAULT(to_array, cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds,
           (CUarray to, size_t offset, CUdeviceptr from, size_t n), to, offset, from, true, n, true)
IN_DEFAULT(to_array, cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds,
           (CUarray to, size_t offset, const void *from, size_t n), to, offset, host(from), false, n, true)
IN_STREAM(to_array, cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz,
          (CUarray to, size_t offset, const void *from, size_t n, CUstream stream), to, offset, host(from),
          false, n, false)
IN_DEFAULT(from_array, cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds,
           (CUdeviceptr to, CUarray from, size_t offset, size_t n), to, true, from, offset, n, true)
IN_DEFAULT(from_array, cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds,
           (void *to, CUarray from, size_t offset, size_t n), host(to), false, from, offset, n, true)
IN_STREAM(from_array, cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz,
          (void *to, CUarray from, size_t offset, size_t n, CUstream stream), host(to), false, from, offset,
          n, false)
IN_DEFAULT(array_to_array, cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds,
           (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t n), to, to_offset, from,
           from_offset, n)

/* ---- boxes ---- */

typedef struct Side { /* one side of a box copy, as the API describes it */
        int type;
        CUdeviceptr host, device;
        CUarray array;
        size_t x, y, z, pitch, height;
} Side;

typedef struct Place {
        CUdeviceptr at;
        size_t pitch, slice;
        bool card;
} Place;

static CUresult place_in_array(const Side *s, const CUDA_MEMCPY3D *box, Place *ret) {
        CUarray a = s->array;
        CUresult r = array_check(a);

        if (r != CUDA_SUCCESS)
                return r;
        if (s->x > array_width(a) || box->WidthInBytes > array_width(a) - s->x || s->y > array_height(a) ||
            box->Height > array_height(a) - s->y || s->z > array_depth(a) ||
            box->Depth > array_depth(a) - s->z)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = (Place){a->start + s->z * a->slice + s->y * a->pitch + s->x, a->pitch, a->slice, true};
        return CUDA_SUCCESS;
}

static CUresult place(const Side *s, const CUDA_MEMCPY3D *box, Place *ret) {
        CUdeviceptr at = s->type == CU_MEMORYTYPE_HOST ? s->host : s->device;
        size_t pitch = s->pitch != 0 ? s->pitch : s->x + box->WidthInBytes;
        size_t slice;

        if (s->type == CU_MEMORYTYPE_ARRAY)
                return place_in_array(s, box, ret);
        if (s->type < CU_MEMORYTYPE_HOST || s->type > CU_MEMORYTYPE_UNIFIED || pitch < box->WidthInBytes ||
            __builtin_mul_overflow(pitch, s->height != 0 ? s->height : s->y + box->Height, &slice))
                return CUDA_ERROR_INVALID_VALUE;
        *ret = (Place){.at = at + s->z * slice + s->y * pitch + s->x, .pitch = pitch, .slice = slice};
        ret->card = s->type == CU_MEMORYTYPE_DEVICE || (s->type == CU_MEMORYTYPE_UNIFIED && is_card(ret->at));
        return CUDA_SUCCESS;
}

CUresult copy_resolve(const CUDA_MEMCPY3D *box, Copy *ret) {
        const Side from = {box->srcMemoryType, host(box->srcHost), box->srcDevice,
                           box->srcArray,      box->srcXInBytes,   box->srcY,
                           box->srcZ,          box->srcPitch,      box->srcHeight};
        const Side to = {box->dstMemoryType, host(box->dstHost), box->dstDevice,
                         box->dstArray,      box->dstXInBytes,   box->dstY,
                         box->dstZ,          box->dstPitch,      box->dstHeight};
        Place a, b;
        CUresult r = place(&from, box, &a);

        if (r == CUDA_SUCCESS)
                r = place(&to, box, &b);
        if (r == CUDA_SUCCESS)
                *ret = (Copy){.to = b.at,
                              .from = a.at,
                              .width = box->WidthInBytes,
                              .height = box->Height,
                              .depth = box->Depth,
                              .to_pitch = b.pitch,
                              .to_slice = b.slice,
                              .from_pitch = a.pitch,
                              .from_slice = a.slice,
                              .to_card = b.card,
                              .from_card = a.card};
        return r;
}

static CUresult box_copy(CUstream stream, const CUDA_MEMCPY3D *box, bool wait) {
        Work w = {.kind = WORK_COPY};
        CUresult r = box ? copy_resolve(box, &w.copy) : CUDA_ERROR_INVALID_VALUE;

        return r == CUDA_SUCCESS ? submit(stream, &w, wait) : r;
}

IN_DEFAULT(box_copy, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D *box), box, true)
IN_STREAM(box_copy, cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz, (const CUDA_MEMCPY3D *box, CUstream stream),
          box, false)

static CUresult peer_box(CUstream stream, const CUDA_MEMCPY3D_PEER *box, bool wait) {
        if (!box)
                return CUDA_ERROR_INVALID_VALUE;
        return box_copy(stream, box, wait);
}

IN_DEFAULT(peer_box, cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D_PEER *box), box, true)
IN_STREAM(peer_box, cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz,
          (const CUDA_MEMCPY3D_PEER *box, CUstream stream), box, false)

static CUresult flat_copy(CUstream stream, const CUDA_MEMCPY2D *f, bool wait) {
        CUDA_MEMCPY3D box = {.Depth = 1};

        if (!f)
                return CUDA_ERROR_INVALID_VALUE;
        box.srcXInBytes = f->srcXInBytes;
        box.srcY = f->srcY;
        box.srcMemoryType = f->srcMemoryType;
        box.srcHost = f->srcHost;
        box.srcDevice = f->srcDevice;
        box.srcArray = f->srcArray;
        box.srcPitch = f->srcPitch;
        box.dstXInBytes = f->dstXInBytes;
        box.dstY = f->dstY;
        box.dstMemoryType = f->dstMemoryType;
        box.dstHost = f->dstHost;
        box.dstDevice = f->dstDevice;
        box.dstArray = f->dstArray;
        box.dstPitch = f->dstPitch;
        box.WidthInBytes = f->WidthInBytes;
        box.Height = f->Height;
        return box_copy(stream, &box, wait);
}

IN_DEFAULT(flat_copy, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D *flat), flat, true)
IN_DEFAULT(flat_copy, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D *flat), flat,
           true)
IN_STREAM(flat_copy, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz,
          (const CUDA_MEMCPY2D *flat, CUstream stream), flat, false)

/* ---- fills ---- */

static CUresult fill(CUstream stream, CUdeviceptr to, size_t pitch, unsigned element, uint32_t value,
                     size_t width, size_t height) {
        const Work w = {.kind = WORK_FILL,
                        .fill = {.to = to,
                                 .value = value,
                                 .element = element,
                                 .width = width,
                                 .height = height,
                                 .pitch = pitch}};

        return submit(stream, &w, false);
}

#define FILLS(bits, type)                                                                                    \
        IN_DEFAULT(fill, cuMemsetD##bits##_v2, cuMemsetD##bits##_v2_ptds,                                    \
                   (CUdeviceptr to, type value, size_t n), to, 0, bits / 8, value, n, 1)                     \
        IN_STREAM(fill, cuMemsetD##bits##Async, cuMemsetD##bits##Async_ptsz,                                 \
                  (CUdeviceptr to, type value, size_t n, CUstream stream), to, 0, bits / 8, value, n, 1)     \
        IN_DEFAULT(fill, cuMemsetD2D##bits##_v2, cuMemsetD2D##bits##_v2_ptds,                                \
                   (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height), to, pitch,       \
                   bits / 8, value, width, height)                                                           \
        IN_STREAM(fill, cuMemsetD2D##bits##Async, cuMemsetD2D##bits##Async_ptsz,                             \
                  (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream),  \
                  to, pitch, bits / 8, value, width, height)

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
