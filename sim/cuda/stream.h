/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Streams: work in order. The effect of work on memory happens at once, in the order of the calls.
 * Its time is submitted to the card's engines (timeline.h), and only synchronising calls wait for
 * it. Work that must not be done yet (a host function, a wait for something in the future) begins a
 * queue, which a thread works off. Later work queues up behind it, so that the order holds. While a
 * stream is captured, work becomes nodes of a graph. */

#include "sim/cuda/work.h"
#include "sim/engine/shape.h"

typedef struct Capture { /* shared by all streams that take part */
        unsigned users;
        int mode;
        pthread_t thread; /* that began it */
        int status;       /* CU_STREAM_CAPTURE_STATUS_* */
        uint64_t id;
        CUgraph graph;
        CUstream origin;
        bool own_graph; /* made by the capture */
} Capture;

typedef struct CUstream_st {
        CUstream next;
        unsigned users;
        bool alive, running; /* running: its thread */
        CUcontext context;
        unsigned flags;
        int priority;
        uint64_t id;
        unsigned channel;                   /* on the card's engines */
        uint64_t moment;                    /* entries of the channel up to the stream's last; 0: none */
        uint64_t followed[ENGINE_CHANNELS]; /* positions in other channels that it has waited for */
        uint64_t given, done;               /* number of queued pieces of work */
        Work *first, **last;
        pthread_cond_t more; /* its thread waits for more */
        Capture *capture;
        CUgraphNode *tips; /* dependencies of the next captured node */
        size_t n_tips;
        char attributes[16][64];
} CUstream_st;

typedef struct CUevent_st {
        unsigned users, flags;
        CUcontext context;
        uint64_t given, done; /* times it was recorded, and how many of these are complete */
        uint64_t time;        /* ns, when it is over */
        CUcontext where;      /* stream with the channel of the awaited entry; NULL: it is over */
        unsigned channel;
        uint64_t moment;
        Capture *capture; /* last recorded in a stream that was being captured */
        CUgraphNode *tips;
        size_t n_tips;
} CUevent_st;

/* A stream from a handle: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a stream of the current
 * context. */
CUresult stream_enter(CUstream handle, CUcontext *ret_context, CUstream *ret);
CUstream stream_new(CUcontext c, unsigned flags, int priority); /* NULL: no memory */
void stream_drop(CUstream s);
CUresult stream_submit(CUstream s, const Work *w);
/* Waits until a launch has room, without the lock. INVALID_HANDLE: the stream was destroyed
 * meanwhile. */
CUresult stream_make_room(CUstream s);
bool stream_is_idle(CUstream s);
CUresult stream_wait(CUstream s);    /* releases the lock meanwhile */
CUresult context_wait(CUcontext c);  /* all its streams */
CUresult blocking_wait(CUcontext c); /* the streams that stream 0 waits for, and itself */
CUstream stream_of_thread(CUcontext c);
void streams_end_context(CUcontext c);
void wait_until(uint64_t ns); /* without the lock */

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
