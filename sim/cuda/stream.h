/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Streams: work in order. What a piece of work does to memory is done at once, in the order of the
 * calls, and the time that it takes is given to the card's engines (timeline.h); only who
 * synchronises waits for that. Work that must not be done yet (a host function, a wait for what has
 * not happened) begins a queue, which a thread works off; what comes behind it queues up, so that
 * order holds. While a stream is being captured, work becomes nodes of a graph. */

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
        unsigned channel; /* on the card's engines */
        uint64_t moment;  /* entries of the channel up to the stream's last one; 0: it has none */
        uint64_t followed[ENGINE_CHANNELS]; /* moments of other channels that it has waited for */
        uint64_t given, done;               /* pieces of work that were queued */
        Work *first, **last;
        pthread_cond_t more; /* its thread waits for the next one */
        Capture *capture;
        CUgraphNode *tips; /* what the next captured node depends on */
        size_t n_tips;
        char attributes[16][64];
} CUstream_st;

typedef struct CUevent_st {
        unsigned users, flags;
        CUcontext context;
        uint64_t given, done; /* times it was recorded, and how many of those have come to pass */
        uint64_t time;        /* ns, when it is over */
        CUcontext where;      /* whose channel has the entry that it waits for; NULL: it is over */
        unsigned channel;
        uint64_t moment;
        Capture *capture; /* recorded last in a stream that was being captured */
        CUgraphNode *tips;
        size_t n_tips;
} CUevent_st;

/* A handle as the API takes it: 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or one of ours; of the
 * current context. */
CUresult stream_enter(CUstream handle, CUcontext *ret_context, CUstream *ret);
CUstream stream_new(CUcontext c, unsigned flags, int priority); /* NULL: no memory */
void stream_drop(CUstream s);
CUresult stream_submit(CUstream s, const Work *w);
/* Waits until a launch finds room, without the lock: INVALID_HANDLE when the stream has gone
 * meanwhile. */
CUresult stream_make_room(CUstream s);
bool stream_is_idle(CUstream s);
CUresult stream_wait(CUstream s);    /* lets go of the lock meanwhile */
CUresult context_wait(CUcontext c);  /* all its streams */
CUresult blocking_wait(CUcontext c); /* those that the stream 0 waits for, and itself */
CUstream stream_of_thread(CUcontext c);
void streams_end_context(CUcontext c);
void wait_until(uint64_t ns); /* without the lock */

CUevent event_use(CUevent e);
void event_drop(CUevent e);

/* Whether calls that wait or allocate must be refused now; invalidates the captures that they would
 * break. */
CUresult capture_refuse(CUcontext c);
CUresult capture_refuse_in(CUstream s); /* the same for a call that concerns this stream only */
CUresult capture_add(CUstream s, const Work *w);
CUresult capture_alloc(CUstream s, size_t size, CUdeviceptr *ret); /* a node that allocates */
void capture_drop(Capture *c);
CUresult capture_join(CUstream s, CUevent e);   /* cuStreamWaitEvent with an event of a capture */
CUresult capture_record(CUstream s, CUevent e); /* cuEventRecord in a captured stream */
