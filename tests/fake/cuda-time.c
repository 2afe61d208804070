/* SPDX-License-Identifier: Apache-2.0 */

/* The card's own timeline, without the host's clock. Work whose times must be exact is submitted
 * behind a kernel that is still running. If the machine was too slow for that, it is tried
 * again. */

#include <poll.h>
#include <unistd.h>

#include "cuda-run.h"

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream s, void **params);
NvmlReturn nvmlDeviceGetProcessUtilization(NvmlHandle h, NvmlProcessSample *ret, unsigned *count,
                                           unsigned long long last_seen);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra);

typedef struct Span {
        CUstream s;
        CUevent head, from, to;
} Span;

static void span_init(Span *t) {
        OK(cuStreamCreate(&t->s, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&t->head, 0));
        OK(cuEventCreate(&t->from, 0));
        OK(cuEventCreate(&t->to, 0));
}

static void span_done(Span *t) {
        OK(cuStreamDestroy_v2(t->s));
        OK(cuEventDestroy_v2(t->head));
        OK(cuEventDestroy_v2(t->from));
        OK(cuEventDestroy_v2(t->to));
}

/* The time on the card of the work of give(), in microseconds. */
static double measure(Span *t, void (*give)(CUstream s, void *data), void *data) {
        unsigned head = 20000;
        bool in_time = false;
        float ms = 0;

        while (!in_time) {
                launch_sleep(t->s, head);
                OK(cuEventRecord(t->head, t->s));
                OK(cuEventRecord(t->from, t->s));
                give(t->s, data);
                OK(cuEventRecord(t->to, t->s));
                in_time = cuEventQuery(t->head) == CUDA_ERROR_NOT_READY;
                OK(cuEventSynchronize(t->to));
                head *= 2;
        }
        OK(cuEventElapsedTime_v2(&ms, t->from, t->to));
        return (double) ms * 1000;
}

static void ASSERT_NEARLY(double us, double want) {
        if (us < want - 0.01 || us > want + 0.01) /* precision of a float of milliseconds */
                TEST_FAIL_("%.3f us, expected %.3f", us, want);
}

static unsigned us = 300;
static void *params[] = {&us};

static void give_kernels(CUstream s, void *f) {
        const CUlaunchConfig config = {.gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .hStream = s};

        OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
        OK(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, s, params));
        OK(cuLaunchKernelEx(&config, f, params, NULL));
}

static void give_graph(CUstream s, void *e) {
        OK(cuGraphLaunch(e, s));
        OK(cuGraphLaunch(e, s));
}

void every_launch_takes_time(void) {
        CUcontext c = begin();
        CUfunction f = function("sleep_us");
        CUgraphExec e;
        CUgraph g;
        Span t;

        span_init(&t);
        ASSERT_NEARLY(measure(&t, give_kernels, f), 3 * us);
        OK(cuStreamBeginCapture_v2(t.s, CU_STREAM_CAPTURE_MODE_RELAXED));
        give_kernels(t.s, f);
        give_kernels(t.s, f);
        OK(cuStreamEndCapture(t.s, &g));
        OK(cuGraphInstantiateWithFlags(&e, g, 0));
        ASSERT_NEARLY(measure(&t, give_graph, e), 12 * us);
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
        span_done(&t);
        end(c);
}

enum { BYTES = 25 * 1000 * 1000 };
static CUdeviceptr on_card;
static char on_host[BYTES];

static void give_up(CUstream s, void *data) {
        OK(cuMemcpyHtoDAsync_v2(on_card, on_host, BYTES, s));
}

static void give_down(CUstream s, void *data) {
        OK(cuMemcpyDtoHAsync_v2(on_host, on_card, BYTES, s));
}

static void give_fill(CUstream s, void *data) {
        OK(cuMemsetD32Async(on_card, 1, BYTES / 4, s));
}

/* 25 GB/s to the card and from it, 1 TB/s on it. */
void copies_take_time(void) {
        CUcontext c = begin();
        Span t;

        OK(cuMemAlloc_v2(&on_card, BYTES));
        span_init(&t);
        ASSERT_NEARLY(measure(&t, give_up, NULL), 1000);
        ASSERT_NEARLY(measure(&t, give_down, NULL), 1000);
        ASSERT_NEARLY(measure(&t, give_fill, NULL), 25);
        span_done(&t);
        OK(cuMemFree_v2(on_card));
        end(c);
}

typedef struct Others {
        CUstream kernel, up;
        CUevent begin, kernel_done, up_done;
} Others;

static void give_beside(CUstream s, void *data) {
        Others *o = data;

        OK(cuEventRecord(o->begin, s));
        OK(cuStreamWaitEvent(o->kernel, o->begin, 0));
        OK(cuStreamWaitEvent(o->up, o->begin, 0));
        launch_sleep(s, 700);
        launch_sleep(o->kernel, 800);
        OK(cuMemcpyHtoDAsync_v2(on_card, on_host, BYTES, o->up));
        OK(cuEventRecord(o->kernel_done, o->kernel));
        OK(cuEventRecord(o->up_done, o->up));
        OK(cuStreamWaitEvent(s, o->kernel_done, 0));
        OK(cuStreamWaitEvent(s, o->up_done, 0));
}

/* Kernels of two streams run one after the other, a copy beside them. */
void streams_share_the_card(void) {
        CUcontext c = begin();
        Others o;
        Span t;

        OK(cuMemAlloc_v2(&on_card, BYTES));
        OK(cuStreamCreate(&o.kernel, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&o.up, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&o.begin, CU_EVENT_DISABLE_TIMING));
        OK(cuEventCreate(&o.kernel_done, 0));
        OK(cuEventCreate(&o.up_done, 0));
        span_init(&t);
        ASSERT_NEARLY(measure(&t, give_beside, &o), 1500);
        span_done(&t);
        OK(cuEventDestroy_v2(o.begin));
        OK(cuEventDestroy_v2(o.kernel_done));
        OK(cuEventDestroy_v2(o.up_done));
        OK(cuStreamDestroy_v2(o.kernel));
        OK(cuStreamDestroy_v2(o.up));
        OK(cuMemFree_v2(on_card));
        end(c);
}

/* More than a ring holds: the launches wait, and all is done in the end. The events are older than
 * their slots. */
void a_ring_is_full(void) {
        enum { KERNELS = 5000 };
        CUcontext c = begin();
        CUfunction f = function("kernel");
        CUevent first, last;
        CUstream s;
        float ms;

        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&first, 0));
        OK(cuEventCreate(&last, 0));
        OK(cuEventRecord(first, s));
        for (unsigned i = 0; i < KERNELS; i++)
                OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
        OK(cuEventRecord(last, s));
        OK(cuEventQuery(first));
        OK(cuEventSynchronize(last));
        OK(cuEventElapsedTime_v2(&ms, first, last));
        ASSERT_TRUE(ms >= KERNELS * 0.005F - 0.01F);
        OK(cuEventDestroy_v2(first));
        OK(cuEventDestroy_v2(last));
        OK(cuStreamDestroy_v2(s));
        end(c);
}

/* ---- a program that always has work ---- */

enum { PENDING = 400 };

typedef struct Busy {
        CUstream s;
        CUfunction f;
        unsigned us, given, done;
        double elapsed; /* ms of the card, from the end of the first kernel to that of the last complete one */
        void *params[1];
        CUevent events[PENDING]; /* of the kernels under way, in their order */
} Busy;

static CUevent event_of(Busy *b, unsigned i) {
        return b->events[i % PENDING];
}

static void feed(Busy *b) {
        float ms;

        for (; b->done < b->given && cuEventQuery(event_of(b, b->done)) == CUDA_SUCCESS; b->done++) {
                if (b->done == 0)
                        continue;
                OK(cuEventElapsedTime_v2(&ms, event_of(b, b->done - 1), event_of(b, b->done)));
                b->elapsed += (double) ms;
        }
        while (b->given - b->done < PENDING - 1) { /* its time will be asked for */
                OK(cuLaunchKernel(b->f, 1, 1, 1, 1, 1, 1, 0, b->s, b->params, NULL));
                OK(cuEventRecord(event_of(b, b->given++), b->s));
        }
        (void) usleep(200);
}

/* The card's time for the next n kernels or a few more, beside the time that passes. */
static double share(Busy *b, unsigned n) {
        unsigned first;
        double before;

        for (first = b->done; b->done == first;)
                feed(b);
        first = b->done;
        before = b->elapsed;
        while (b->done - first < n)
                feed(b);
        return (b->done - first) * b->us / 1000.0 / (b->elapsed - before);
}

static bool has_line(void) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

        return poll(&in, 1, 0) > 0;
}

/* Percent of the card that this process had in the last window, by NVML. */
static unsigned usage(void) {
        NvmlProcessSample list[16];
        unsigned n = 16;
        NvmlHandle h;

        ASSERT_INT(nvmlDeviceGetHandleByIndex_v2(0, &h), NVML_SUCCESS);
        ASSERT_INT(nvmlDeviceGetProcessUtilization(h, list, &n, 0), NVML_SUCCESS);
        for (unsigned i = 0; i < n; i++)
                if (list[i].pid == (unsigned) getpid())
                        return list[i].sm;
        return 0;
}

int saturate(unsigned kernel_us, unsigned n) {
        static Busy b;
        char line[16];
        CUcontext c;

        OK(cuCtxCreate_v2(&c, 0, 0));
        b = (Busy){.us = kernel_us, .f = function("sleep_us")};
        b.params[0] = &b.us;
        OK(cuStreamCreate(&b.s, CU_STREAM_NON_BLOCKING));
        for (unsigned i = 0; i < PENDING; i++)
                OK(cuEventCreate(&b.events[i], 0));
        while (b.done == 0)
                feed(&b);
        (void) puts("running");
        (void) fflush(stdout);
        for (;;) {
                feed(&b);
                if (!has_line())
                        continue;
                if (read(STDIN_FILENO, line, sizeof line) <= 0)
                        return 0;
                if (line[0] == 'u')
                        (void) printf("%u\n", usage());
                else
                        (void) printf("%.4f\n", share(&b, n));
                (void) fflush(stdout);
        }
}
