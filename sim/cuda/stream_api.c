/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/memory.h"
#include "sim/cuda/streamed.h"

/* ---- making and ending ---- */

CUDA_API CUresult cuStreamCreate(CUstream *ret, unsigned flags) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags & ~(unsigned) CU_STREAM_NON_BLOCKING)
                return CUDA_ERROR_INVALID_VALUE;
        *ret = stream_new(c, flags);
        return *ret ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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

/* NVIDIA's libcuda refuses it for a stream that is captured, and the capture is lost. */
static CUresult get_context(CUstream handle, CUcontext *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r == CUDA_SUCCESS)
                r = capture_refuse_in(s);
        if (r == CUDA_SUCCESS)
                *ret = c;
        return r;
}

IN_STREAM(get_context, cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream stream, CUcontext *ret), ret)

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

static CUresult word(CUstream stream, WorkKind kind, CUdeviceptr at, uint32_t value, unsigned flags) {
        const Work w = {.kind = kind, .word = {at, value, flags}};

        return give(stream, &w);
}

#define WORD(name, kind)                                                                                     \
        IN_STREAM(word, name, name##_ptsz,                                                                   \
                  (CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags), kind, at, value,      \
                  flags)

WORD(cuStreamWaitValue32, WORK_WORD_WAIT)
WORD(cuStreamWaitValue32_v2, WORK_WORD_WAIT)
WORD(cuStreamWriteValue32, WORK_WORD_WRITE)
WORD(cuStreamWriteValue32_v2, WORK_WORD_WRITE)
