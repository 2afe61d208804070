/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cuda/stream.h"
#include "sim/cuda/streamed.h"
#include "sim/cuda/timeline.h"

/* ---- events ---- */

CUevent event_use(CUevent e) {
        e->users++;
        return e;
}

void event_drop(CUevent e) {
        if (--e->users > 0)
                return;
        timeline_forget(e);
        if (e->capture)
                capture_drop(e->capture);
        free(e->tips);
        free(e);
}

CUDA_API CUresult cuEventCreate(CUevent *ret, unsigned flags) {
        LOCKED;
        CUcontext c;
        CUresult r = context_enter(&c);
        CUevent e;

        if (r != CUDA_SUCCESS)
                return r;
        if (!ret || flags & ~(unsigned) (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING))
                return flags & CU_EVENT_INTERPROCESS ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
        e = calloc(1, sizeof *e);
        if (!e)
                return CUDA_ERROR_OUT_OF_MEMORY;
        e->users = 1;
        e->flags = flags;
        e->context = c;
        *ret = e;
        return CUDA_SUCCESS;
}

static CUresult destroy(CUevent e) {
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (!e)
                return CUDA_ERROR_INVALID_HANDLE;
        event_drop(e);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuEventDestroy_v2(CUevent e) {
        LOCKED;

        return destroy(e);
}

CUDA_API CUresult cuEventDestroy(CUevent e) {
        LOCKED;

        return destroy(e);
}

/* ---- recording and waiting in streams ---- */

static CUresult record(CUstream handle, CUevent e) {
        Work w = {.kind = WORK_RECORD, .event = {.event = e}};
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (!e || e->context->device != c->device)
                return CUDA_ERROR_INVALID_HANDLE;
        if (s->capture)
                return capture_record(s, e);
        if (e->capture) {
                capture_drop(e->capture);
                e->capture = NULL;
        }
        w.event.turn = ++e->given;
        return stream_submit(s, &w);
}

IN_STREAM(record, cuEventRecord, cuEventRecord_ptsz, (CUevent e, CUstream stream), e)

static CUresult wait_for(CUstream handle, CUevent e, unsigned flags) {
        Work w = {.kind = WORK_WAIT, .event = {.event = e}};
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (!e || flags > 1)
                return e ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
        if (e->capture)
                return capture_join(s, e);
        if (s->capture && flags == 0)
                return CUDA_ERROR_STREAM_CAPTURE_ISOLATION; /* recorded before, outside */
        w.event.turn = e->given;
        return stream_submit(s, &w);
}

IN_STREAM(wait_for, cuStreamWaitEvent, cuStreamWaitEvent_ptsz, (CUstream stream, CUevent e, unsigned flags),
          e, flags)

/* ---- asking ---- */

static bool is_over(CUevent e) {
        return e->done >= e->given && timeline_event_is_over(e);
}

static CUresult enter(CUevent e) {
        CUresult r = state_check();

        if (r != CUDA_SUCCESS)
                return r;
        if (!e)
                return CUDA_ERROR_INVALID_HANDLE;
        if (e->capture)
                return CUDA_ERROR_CAPTURED_EVENT;
        return e->context->fault;
}

CUDA_API CUresult cuEventQuery(CUevent e) {
        LOCKED;
        CUresult r = enter(e);

        if (r != CUDA_SUCCESS)
                return r;
        return is_over(e) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUDA_API CUresult cuEventSynchronize(CUevent e) {
        LOCKED;
        CUresult r = enter(e);

        if (r != CUDA_SUCCESS)
                return r;
        (void) event_use(e);
        while (!is_over(e))
                if (e->done < e->given)
                        (void) pthread_cond_wait(&state.progress, &state.lock);
                else
                        timeline_wait_for_event(e);
        r = e->context->fault;
        event_drop(e);
        return r;
}

static CUresult elapsed(float *ret, CUevent from, CUevent to) {
        CUresult r = enter(from);

        if (r == CUDA_SUCCESS)
                r = enter(to);
        if (r != CUDA_SUCCESS)
                return r;
        if (!ret)
                return CUDA_ERROR_INVALID_VALUE;
        if ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING || from->given == 0 || to->given == 0)
                return CUDA_ERROR_INVALID_HANDLE;
        if (!is_over(from) || !is_over(to))
                return CUDA_ERROR_NOT_READY;
        *ret = (float) ((double) ((int64_t) (to->time - from->time)) / 1e6);
        return CUDA_SUCCESS;
}

CUDA_API CUresult cuEventElapsedTime(float *ret, CUevent from, CUevent to) {
        LOCKED;

        return elapsed(ret, from, to);
}

CUDA_API CUresult cuEventElapsedTime_v2(float *ret, CUevent from, CUevent to) {
        LOCKED;

        return elapsed(ret, from, to);
}
