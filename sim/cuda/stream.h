/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Streams: work in order. The effect of work on memory happens at once, in the order of the calls.
 * Its time is submitted to the card's engines (timeline.h), and only synchronising calls wait for
 * it. Work that must not be done yet (a host function, a wait for something in the future) begins a
 * queue, which a thread works off. Later work queues up behind it, so that the order holds. While a
 * stream is captured, work becomes nodes of a graph. */

#include "sim/cuda/stream_state.h"

/* A stream from a handle: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a stream of the current
 * context. */
CUresult stream_enter(CUstream handle, CUcontext *ret_context, CUstream *ret);
CUstream stream_new(CUcontext c, unsigned flags); /* NULL: no memory */
void stream_drop(CUstream s);
CUresult stream_submit(CUstream s, const Work *w);
/* Waits until a launch has room, without the lock. INVALID_HANDLE: the stream was destroyed
 * meanwhile. */
CUresult stream_make_room(CUstream s);
bool stream_is_idle(CUstream s);
CUresult stream_wait(CUstream s);    /* releases the lock meanwhile */
CUresult context_wait(CUcontext c);  /* all its streams */
CUresult blocking_wait(CUcontext c); /* the streams that stream 0 waits for, and itself */
void streams_end_context(CUcontext c);

CUevent event_use(CUevent e);
void event_drop(CUevent e);

/* Whether calls that wait or allocate are refused now. Invalidates the captures that they would
 * break. */
CUresult capture_refuse(CUcontext c);
CUresult capture_refuse_in(CUstream s); /* the same for a call on this stream only */
CUresult capture_add(CUstream s, const Work *w);
CUresult capture_alloc(CUstream s, size_t size, CUdeviceptr *ret); /* a node that allocates */
void capture_drop(Capture *c);
CUresult capture_join(CUstream s, CUevent e);   /* cuStreamWaitEvent with an event of a capture */
CUresult capture_record(CUstream s, CUevent e); /* cuEventRecord in a captured stream */
