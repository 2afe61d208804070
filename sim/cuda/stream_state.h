/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of streams and events, for stream.c and timeline.c. */

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
} Capture;

typedef struct CUstream_st {
        CUstream next;
        unsigned users;
        bool alive, running; /* running: its thread */
        CUcontext context;
        unsigned flags;
        unsigned channel;                   /* on the card's engines */
        uint64_t moment;                    /* entries of the channel up to the stream's last; 0: none */
        uint64_t followed[ENGINE_CHANNELS]; /* positions in other channels that it has waited for */
        uint64_t given, done;               /* number of queued pieces of work */
        Work *first, **last;
        pthread_cond_t more; /* its thread waits for more */
        Capture *capture;
        CUgraphNode *tips; /* dependencies of the next captured node */
        size_t n_tips;
} CUstream_st;

typedef struct CUevent_st {
        unsigned users, flags;
        CUcontext context;
        uint64_t given, done; /* times it was recorded, and how many of these are complete */
        uint64_t time;        /* ns, when it is over */
        CUcontext where;      /* with the channel of the awaited entry; NULL: it is over */
        unsigned channel;
        uint64_t moment;
        Capture *capture; /* last recorded in a stream that was being captured */
        CUgraphNode *tips;
        size_t n_tips;
} CUevent_st;
