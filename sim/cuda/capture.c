/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim/cuda/graph.h"
#include "sim/cuda/streamed.h"

static __thread int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- captures ---- */

static Capture *capture_use(Capture *c) {
        c->users++;
        return c;
}

void capture_drop(Capture *c) {
        if (--c->users > 0)
                return;
        free(c);
}

static void invalidate(Capture *c) {
        c->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

CUresult capture_refuse_in(CUstream s) {
        if (!s->capture)
                return CUDA_SUCCESS;
        invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult capture_refuse(CUcontext c) {
        CUresult r = CUDA_SUCCESS;

        if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
                return r;
        for (CUstream s = c->streams; s; s = s->next)
                if (s->capture && s->capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
                    (s->capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                     pthread_equal(s->capture->thread, pthread_self()))) {
                        invalidate(s->capture);
                        r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
                }
        return r;
}

/* ---- tips ---- */

static CUresult set_tips(CUgraphNode **tips, size_t *n_tips, const CUgraphNode *from, size_t n) {
        CUgraphNode *copy = n > 0 ? reallocarray(NULL, n, sizeof *copy) : NULL;

        if (n > 0 && !copy)
                return CUDA_ERROR_OUT_OF_MEMORY;
        if (n > 0)
                memcpy(copy, from, n * sizeof *copy);
        free(*tips);
        *tips = copy;
        *n_tips = n;
        return CUDA_SUCCESS;
}

static CUresult add_tips(CUstream s, const CUgraphNode *more, size_t n) {
        CUgraphNode *tips = reallocarray(s->tips, s->n_tips + n + 1, sizeof *tips);

        if (!tips)
                return CUDA_ERROR_OUT_OF_MEMORY;
        s->tips = tips;
        for (size_t i = 0; i < n; i++) {
                bool there = false;

                for (size_t j = 0; j < s->n_tips; j++)
                        there = there || s->tips[j] == more[i];
                if (!there)
                        s->tips[s->n_tips++] = more[i];
        }
        return CUDA_SUCCESS;
}

/* ---- work that becomes nodes ---- */

static CUresult add_node(CUstream s, CUgraphNodeParams *params) {
        CUgraphNode node;
        CUresult r;

        if (s->capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
                return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        r = node_add(s->capture->graph, s->tips, s->n_tips, params, &node);
        if (r == CUDA_SUCCESS)
                r = set_tips(&s->tips, &s->n_tips, &node, 1);
        if (r != CUDA_SUCCESS)
                invalidate(s->capture);
        return r;
}

static CUDA_MEMCPY3D describe(const Copy *c) {
        return (CUDA_MEMCPY3D){
                .srcMemoryType = c->from_card ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                .srcHost = (const void *) (uintptr_t) c->from,
                .srcDevice = c->from,
                .srcPitch = c->from_pitch != 0 ? c->from_pitch : c->width,
                .srcHeight = c->from_pitch != 0 ? c->from_slice / c->from_pitch : 1,
                .dstMemoryType = c->to_card ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                .dstHost = (void *) (uintptr_t) c->to,
                .dstDevice = c->to,
                .dstPitch = c->to_pitch != 0 ? c->to_pitch : c->width,
                .dstHeight = c->to_pitch != 0 ? c->to_slice / c->to_pitch : 1,
                .WidthInBytes = c->width,
                .Height = c->height,
                .Depth = c->depth,
        };
}

CUresult capture_add(CUstream s, const Work *w) {
        CUgraphNodeParams p = {0};

        switch (w->kind) {
        case WORK_KERNEL:
                p.type = CU_GRAPH_NODE_TYPE_KERNEL;
                p.kernel = w->kernel.params;
                break;
        case WORK_COPY:
                p.type = CU_GRAPH_NODE_TYPE_MEMCPY;
                p.memcpy.copyParams = describe(&w->copy);
                break;
        case WORK_FILL:
                p.type = CU_GRAPH_NODE_TYPE_MEMSET;
                p.memset = (CUDA_MEMSET_NODE_PARAMS){.dst = w->fill.to,
                                                     .pitch = w->fill.pitch,
                                                     .value = w->fill.value,
                                                     .elementSize = w->fill.element,
                                                     .width = w->fill.width,
                                                     .height = w->fill.height};
                break;
        case WORK_HOST:
                p.type = CU_GRAPH_NODE_TYPE_HOST;
                p.host = (CUDA_HOST_NODE_PARAMS){.fn = w->host.run, .userData = w->host.data};
                break;
        case WORK_WAIT:
                p.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
                p.event = w->event.event;
                break;
        case WORK_FREE:
                p.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
                p.free = w->address;
                break;
        default:
                return capture_refuse_in(s);
        }
        return add_node(s, &p);
}

CUresult capture_alloc(CUstream s, size_t size, CUdeviceptr *ret) {
        CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                               .alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                                                    s->context->device->ordinal}},
                                         .bytesize = size}};
        CUresult r = add_node(s, &p);

        if (r == CUDA_SUCCESS)
                *ret = p.alloc.dptr;
        return r;
}

/* ---- events that carry a capture from stream to stream ---- */

CUresult capture_record(CUstream s, CUevent e) {
        CUresult r = set_tips(&e->tips, &e->n_tips, s->tips, s->n_tips);

        if (r != CUDA_SUCCESS)
                return r;
        if (e->capture)
                capture_drop(e->capture);
        e->capture = capture_use(s->capture);
        return CUDA_SUCCESS;
}

CUresult capture_join(CUstream s, CUevent e) {
        if (!e->capture->graph)
                return CUDA_ERROR_CAPTURED_EVENT; /* that capture has ended */
        if (s == s->context->legacy)
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (!s->capture) {
                s->capture = capture_use(e->capture);
                return set_tips(&s->tips, &s->n_tips, e->tips, e->n_tips);
        }
        if (s->capture != e->capture) {
                invalidate(s->capture);
                return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        }
        return add_tips(s, e->tips, e->n_tips);
}

/* ---- beginning and ending ---- */

static CUresult begin(CUstream handle, int mode) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);
        Capture *capture;

        if (r != CUDA_SUCCESS)
                return r;
        if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        if (s == c->legacy)
                return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (s->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        capture = calloc(1, sizeof *capture);
        if (!capture)
                return CUDA_ERROR_OUT_OF_MEMORY;
        *capture = (Capture){.users = 1,
                             .mode = mode,
                             .status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
                             .id = ++state.next_id,
                             .thread = pthread_self(),
                             .origin = s,
                             .graph = graph_new()};
        if (!capture->graph) {
                free(capture);
                return CUDA_ERROR_OUT_OF_MEMORY;
        }
        s->capture = capture;
        return CUDA_SUCCESS;
}

IN_STREAM(begin, cuStreamBeginCapture, cuStreamBeginCapture_ptsz, (CUstream stream),
          CU_STREAM_CAPTURE_MODE_GLOBAL)
IN_STREAM(begin, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, (CUstream stream, int mode), mode)

/* A stream that joined the capture must have come back: the first stream's last work depends on its
 * last work. */
static bool is_joined(Capture *capture, CUstream origin) {
        graph_mark(capture->graph, origin->tips, origin->n_tips);
        for (CUcontext c = state.contexts; c; c = c->next)
                for (CUstream s = c->streams; s; s = s->next)
                        for (size_t i = 0; s->capture == capture && i < s->n_tips; i++)
                                if (s->tips[i]->mark == 0)
                                        return false;
        return true;
}

static void release_streams(Capture *capture) {
        for (CUcontext c = state.contexts; c; c = c->next)
                for (CUstream s = c->streams; s; s = s->next)
                        if (s->capture == capture) {
                                s->capture = NULL;
                                free(s->tips);
                                s->tips = NULL;
                                s->n_tips = 0;
                                capture_drop(capture);
                        }
}

static CUresult end(CUstream handle, CUgraph *ret) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);
        Capture *capture;

        if (r != CUDA_SUCCESS)
                return r;
        if (!s->capture)
                return CUDA_ERROR_ILLEGAL_STATE;
        capture = capture_use(s->capture);
        if (s != capture->origin)
                r = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
        else if (capture->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
                r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        else if (!is_joined(capture, s))
                r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
        release_streams(capture);
        if (r != CUDA_SUCCESS)
                graph_drop(capture->graph);
        if (ret)
                *ret = r == CUDA_SUCCESS ? capture->graph : NULL;
        capture->graph = NULL; /* a holder of a pointer to the capture sees that it is over */
        capture_drop(capture);
        return r;
}

IN_STREAM(end, cuStreamEndCapture, cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *ret), ret)

/* ---- asking ---- */

typedef struct Info {
        int *status;
        cuuint64_t *id;
        CUgraph *graph;
        const CUgraphNode **deps;
        const CUgraphEdgeData **data;
        size_t *n;
} Info;

static CUresult get_info(CUstream handle, Info i) {
        CUcontext c;
        CUstream s;
        CUresult r = stream_enter(handle, &c, &s);

        if (r != CUDA_SUCCESS)
                return r;
        if (!i.status)
                return CUDA_ERROR_INVALID_VALUE;
        *i.status = s->capture ? s->capture->status : CU_STREAM_CAPTURE_STATUS_NONE;
        if (*i.status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
                return CUDA_SUCCESS;
        if (i.id)
                *i.id = s->capture->id;
        if (i.graph)
                *i.graph = s->capture->graph;
        if (i.deps)
                *i.deps = s->tips;
        if (i.data)
                *i.data = NULL;
        if (i.n)
                *i.n = s->n_tips;
        return CUDA_SUCCESS;
}

#define INFO(...) ((Info){__VA_ARGS__})
IN_STREAM(get_info, cuStreamIsCapturing, cuStreamIsCapturing_ptsz, (CUstream stream, int *status),
          INFO(status))
IN_STREAM(get_info, cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz,
          (CUstream stream, int *status, cuuint64_t *id), INFO(status, id))
IN_STREAM(get_info, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
          (CUstream stream, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps, size_t *n),
          INFO(status, id, graph, deps, NULL, n))
IN_STREAM(get_info, cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz,
          (CUstream stream, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **deps,
           const CUgraphEdgeData **data, size_t *n),
          INFO(status, id, graph, deps, data, n))

CUDA_API CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
        int before = thread_mode;

        if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
                return CUDA_ERROR_INVALID_VALUE;
        thread_mode = *mode;
        *mode = before;
        return CUDA_SUCCESS;
}
