/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One piece of work of a stream, or of a node of a graph. */

#include "sim/cuda/api_graph.h"
#include "sim/cuda/api_launch.h"
#include "sim/cuda/state.h"

typedef struct Copy { /* addresses are those of the first byte; pitches in bytes */
        CUdeviceptr to, from;
        size_t width, height, depth, to_pitch, to_slice, from_pitch, from_slice;
        bool to_card, from_card; /* must be memory of a card when it is done */
} Copy;

typedef struct Fill {
        CUdeviceptr to;
        uint32_t value;
        unsigned element;            /* 1, 2 or 4 bytes */
        size_t width, height, pitch; /* width in elements */
} Fill;

typedef enum WorkKind {
        WORK_NOTHING,
        WORK_COPY,
        WORK_FILL,
        WORK_KERNEL,
        WORK_HOST,
        WORK_CALLBACK,
        WORK_RECORD,
        WORK_WAIT,  /* for an event */
        WORK_AFTER, /* the work of another stream up to then */
        WORK_WORD_WAIT,
        WORK_WORD_WRITE,
        WORK_FREE, /* of a range by its start */
        WORK_KINDS,
} WorkKind;

typedef struct Work {
        WorkKind kind;
        struct Work *next;
        union {
                Copy copy;
                Fill fill;
                struct {
                        uint64_t ns;
                        CUDA_KERNEL_NODE_PARAMS params;
                } kernel;
                struct {
                        CUhostFn run;
                        CUstreamCallback call;
                        void *data;
                } host;
                struct {
                        CUevent event;
                        uint64_t turn;
                } event;
                struct {
                        CUstream stream;
                        uint64_t done;
                } after;
                struct {
                        CUdeviceptr at;
                        uint32_t value;
                        unsigned flags;
                } word;
                CUdeviceptr address;
        };
} Work;

CUresult work_check(const Work *w); /* checks it before submission: INVALID_VALUE */
CUresult work_do(const Work *w);    /* does its effect on memory: ILLEGAL_ADDRESS */
