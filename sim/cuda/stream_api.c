/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/memory.h"
#include "sim/cuda/streamed.h"

/* ---- making and ending ---- */

static CUresult create(CUstream *ret, unsigned flags, int priority) {
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags & ~(unsigned) CU_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = stream_new(c, flags, priority);
        return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUDA_API CUresult cuStreamCreate(CUstream *ret, unsigned flags) {
        LOCKED;

        return create(ret, flags, 0);
}

CUDA_API CUresult cuStreamCreateWithPriority(CUstream *ret, unsigned flags, int priority) {
        LOCKED;

        return create(ret, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
}

/* Submitted work is still done. */
CUDA_API CUresult cuStreamDestroy_v2(CUstream handle) {
        LOCKED;
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS && r != c->fault)
                return r;
        if (!handle || s != handle)
                return CUDA_ERROR_INVALID_HANDLE;
        s->alive = false;
        (void) pthread_cond_signal(&s->more);
        stream_drop(s);
        return CUDA_SUCCESS;
}

/* ---- waiting ---- */

static CUresult synchronize(CUstream handle) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = capture_refuse_in(s);
        if (r != CUDA_SUCCESS)
                return r;
        return s == c->legacy ? blocking_wait(c) : stream_wait(s);
}

IN_STREAM(synchronize, cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream stream))

static CUresult query(CUstream handle) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = capture_refuse_in(s);
        if (r != CUDA_SUCCESS)
                return r;
        return stream_is_idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

IN_STREAM(query, cuStreamQuery, cuStreamQuery_ptsz, (CUstream stream))

/* ---- what a stream is ---- */

static CUresult get_flags(CUstream handle, unsigned *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                *ret = s->flags;
        return r;
}

IN_STREAM(get_flags, cuStreamGetFlags, cuStreamGetFlags_ptsz, (CUstream stream, unsigned *ret), ret)

static CUresult get_priority(CUstream handle, int *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                *ret = s->priority;
        return r;
}

IN_STREAM(get_priority, cuStreamGetPriority, cuStreamGetPriority_ptsz, (CUstream stream, int *ret), ret)

static CUresult get_id(CUstream handle, unsigned long long *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                *ret = s->id;
        return r;
}

IN_STREAM(get_id, cuStreamGetId, cuStreamGetId_ptsz, (CUstream stream, unsigned long long *ret), ret)

static CUresult get_context(CUstream handle, CUcontext *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                *ret = c;
        return r;
}

IN_STREAM(get_context, cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream stream, CUcontext *ret), ret)

static CUresult get_device(CUstream handle, CUdevice *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                *ret = c->device->ordinal;
        return r;
}

IN_STREAM(get_device, cuStreamGetDevice, cuStreamGetDevice_ptsz, (CUstream stream, CUdevice *ret), ret)

/* ---- attributes: kept, and of no effect ---- */

static CUresult get_attribute(CUstream handle, int attribute, void *value) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (!value || attribute < 0 || attribute >= (int) ELEMENTSOF(s->attributes))
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(value, s->attributes[attribute], sizeof s->attributes[attribute]);
        return CUDA_SUCCESS;
}

IN_STREAM(get_attribute, cuStreamGetAttribute, cuStreamGetAttribute_ptsz,
          (CUstream stream, int attribute, void *value), attribute, value)

static CUresult set_attribute(CUstream handle, int attribute, const void *value) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (!value || attribute < 0 || attribute >= (int) ELEMENTSOF(s->attributes))
                return CUDA_ERROR_INVALID_VALUE;
        memcpy(s->attributes[attribute], value, sizeof s->attributes[attribute]);
        return CUDA_SUCCESS;
}

IN_STREAM(set_attribute, cuStreamSetAttribute, cuStreamSetAttribute_ptsz,
          (CUstream stream, int attribute, const void *value), attribute, value)

static CUresult copy_attributes(CUstream to, CUstream from) {
        CUcontext c;
        CUstream a, b;
        CUresult r = stream_enter(to, &c, &a);

        if (r == CUDA_SUCCESS)
                r = stream_enter(from, &c, &b);
        if (r == CUDA_SUCCESS && a != b)
                memcpy(a->attributes, b->attributes, sizeof a->attributes);
        return r;
}

IN_STREAM(copy_attributes, cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz,
          (CUstream stream, CUstream from), from)

/* ---- host functions ---- */

static CUresult give(CUstream handle, const Work *w) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        return r == CUDA_SUCCESS ? stream_submit(s, w) : r;
}

static CUresult host_function(CUstream stream, CUhostFn run, void *data) {
        const Work w = {.kind = WORK_HOST, .host = {.run = run, .data = data}};

        return run ? give(stream, &w) : CUDA_ERROR_INVALID_VALUE;
}

IN_STREAM(host_function, cuLaunchHostFunc, cuLaunchHostFunc_ptsz, (CUstream stream, CUhostFn run, void *data),
          run, data)

static CUresult add_callback(CUstream handle, CUstreamCallback call, void *data, unsigned flags) {
        const Work w = {.kind = WORK_CALLBACK, .host = {.call = call, .data = data}};
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = capture_refuse_in(s);
        if (r != CUDA_SUCCESS)
                return r;
        return call && flags == 0 ? stream_submit(s, &w) : CUDA_ERROR_INVALID_VALUE;
}

IN_STREAM(add_callback, cuStreamAddCallback, cuStreamAddCallback_ptsz,
          (CUstream stream, CUstreamCallback call, void *data, unsigned flags), call, data, flags)

/* ---- words in memory ---- */

static CUresult word(CUstream stream, WorkKind kind, CUdeviceptr at, uint64_t value, unsigned flags,
                     bool wide) {
        const Work w = {.kind = kind, .word = {at, value, flags, wide}};

        return give(stream, &w);
}

#define WORDS(bits, type, wide, twin)                                                                        \
        IN_STREAM(word, cuStreamWaitValue##bits##twin, cuStreamWaitValue##bits##twin##_ptsz,                 \
                  (CUstream stream, CUdeviceptr at, type value, unsigned flags), WORK_WORD_WAIT, at, value,  \
                  flags, wide)                                                                               \
        IN_STREAM(word, cuStreamWriteValue##bits##twin, cuStreamWriteValue##bits##twin##_ptsz,               \
                  (CUstream stream, CUdeviceptr at, type value, unsigned flags), WORK_WORD_WRITE, at, value, \
                  flags, wide)

WORDS(32, cuuint32_t, false, )
WORDS(64, cuuint64_t, true, )
WORDS(32, cuuint32_t, false, _v2)
WORDS(64, cuuint64_t, true, _v2)

static CUresult one_of_batch(CUstream stream, const CUstreamBatchMemOpParams *p) {
        switch (p->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
                return word(stream, WORK_WORD_WAIT, p->waitValue.address, p->waitValue.value,
                            p->waitValue.flags, false);
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
                return word(stream, WORK_WORD_WAIT, p->waitValue.address, p->waitValue.value64,
                            p->waitValue.flags, true);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
                return word(stream, WORK_WORD_WRITE, p->waitValue.address, p->waitValue.value, 0, false);
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
                return word(stream, WORK_WORD_WRITE, p->waitValue.address, p->waitValue.value64, 0, true);
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
                return CUDA_SUCCESS;
        default:
                return CUDA_ERROR_INVALID_VALUE;
        }
}

static CUresult batch(CUstream stream, unsigned n, const CUstreamBatchMemOpParams *list) {
        CUresult r = list && n <= 256 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

        for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++)
                r = one_of_batch(stream, &list[i]);
        return r;
}

IN_STREAM(batch, cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz,
          (CUstream stream, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags), n, list)
IN_STREAM(batch, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
          (CUstream stream, unsigned n, CUstreamBatchMemOpParams *list, unsigned flags), n, list)
