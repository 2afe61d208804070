/* SPDX-License-Identifier: Apache-2.0 */

/* What the calls cost that libaliquot.so makes around launches, on an idle card: medians and 99th
 * percentiles in ns. */

#include <stdlib.h>
#include <string.h>

#include "case.h"

enum {
        CALLS = 1000,
        QUEUE = 4000,
        RELAXED = 2,
        FULL_NSEC = 100000,
        LONG_USEC = 20000,
        LONG_ITERATIONS = 10000000
};

CUresult cuStreamIsCapturing(CUstream s, int *ret);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);

typedef struct Bench {
        CUfunction f;
        CUstream stream, other;
        CUevent event;
        CUdeviceptr out;
} Bench;

static unsigned long long samples[CALLS];
static _Atomic unsigned long long called;

static int compare(const void *a, const void *b) {
        unsigned long long x = *(const unsigned long long *) a, y = *(const unsigned long long *) b;

        return x < y ? -1 : x > y;
}

static void say(const char *what, size_t n) {
        char key[64];

        qsort(samples, n, sizeof *samples, compare);
        (void) snprintf(key, sizeof key, "%s-p50-ns", what);
        case_say(key, samples[n / 2]);
        (void) snprintf(key, sizeof key, "%s-p99-ns", what);
        case_say(key, samples[n * 99 / 100]);
}

static void on_host(void *data) {
        (void) data;
        called = case_now();
}

static void launch(Bench *b, unsigned us, unsigned iterations) {
        void *params[] = {&us, &iterations, &b->out};

        OK(CU(cuLaunchKernel)(b->f, 1, 1, 1, 32, 1, 1, 0, b->stream, params, NULL));
}

/* ---- one call each ---- */

static void launch_short(Bench *b) {
        launch(b, 1, 1);
}

static void launch_and_wait(Bench *b) {
        launch(b, 1, 1);
        OK(CU(cuStreamSynchronize)(b->stream));
}

static void record(Bench *b) {
        OK(CU(cuEventRecord)(b->event, b->stream));
}

static void query_event(Bench *b) {
        (void) CU(cuEventQuery)(b->event);
}

static void query_stream(Bench *b) {
        (void) CU(cuStreamQuery)(b->stream);
}

static void is_capturing(Bench *b) {
        int status;

        OK(CU(cuStreamIsCapturing)(b->stream, &status));
}

static void exchange_mode(Bench *b) {
        int mode = RELAXED;

        (void) b;
        OK(CU(cuThreadExchangeStreamCaptureMode)(&mode));
}

static void wait_and_call(Bench *b) {
        OK(CU(cuEventRecord)(b->event, b->stream));
        OK(CU(cuStreamWaitEvent)(b->other, b->event, 0));
        OK(CU(cuLaunchHostFunc)(b->other, on_host, NULL));
}

/* The queue is emptied after each 50 calls, outside the time. */
static void measure(Bench *b, const char *what, size_t n, void (*call)(Bench *b)) {
        for (size_t i = 0; i < n; i++) {
                unsigned long long from = case_now();

                call(b);
                samples[i] = case_now() - from;
                if (i % 50 == 49)
                        OK(CU(cuCtxSynchronize)());
        }
        say(what, n);
}

/* ---- more than a call ---- */

/* The first call of many that waits for room in the queue. */
static void measure_queue(Bench *b) {
        unsigned long long first = 0;

        for (size_t i = 0; i < QUEUE && first == 0; i++) {
                unsigned long long from = case_now();

                launch(b, 500, 200000);
                if (i > 64 && case_now() - from > FULL_NSEC)
                        first = i;
        }
        OK(CU(cuStreamSynchronize)(b->stream));
        case_say("launch-that-waits", first);
}

static void measure_busy(Bench *b) {
        launch(b, LONG_USEC, LONG_ITERATIONS);
        record(b);
        for (size_t i = 0; i < CALLS; i++) {
                unsigned long long from = case_now();

                query_event(b);
                samples[i] = case_now() - from;
        }
        say("query-event-busy", CALLS);
        OK(CU(cuCtxSynchronize)());
}

/* From the end of a kernel, as a polling query sees it, to the host function behind it. */
static void measure_end(Bench *b) {
        enum { N = 200 };

        for (size_t i = 0; i < N; i++) {
                unsigned long long seen;

                called = 0;
                launch(b, 100, 50000);
                wait_and_call(b);
                while (CU(cuEventQuery)(b->event) != CUDA_SUCCESS)
                        ;
                seen = case_now();
                OK(CU(cuStreamSynchronize)(b->other));
                samples[i] = called > seen ? called - seen : 0;
        }
        say("end-to-host-function", N);
}

int case_latency(char **arguments) {
        Bench b;

        (void) arguments;
        (void) case_begin();
        memset(&b, 0, sizeof b);
        b.f = case_function("work_sleep_us");
        OK(CU(cuMemAlloc_v2)(&b.out, sizeof(float)));
        OK(CU(cuStreamCreate)(&b.stream, 0));
        OK(CU(cuStreamCreate)(&b.other, 1)); /* does not wait for the legacy stream */
        OK(CU(cuEventCreate)(&b.event, 0));
        for (int i = 0; i < 100; i++)
                launch_and_wait(&b);
        measure(&b, "launch", 500, launch_short);
        measure(&b, "launch-and-wait", 500, launch_and_wait);
        measure(&b, "record-event", 500, record);
        measure(&b, "query-event-over", CALLS, query_event);
        measure(&b, "query-stream-over", CALLS, query_stream);
        measure(&b, "is-capturing", CALLS, is_capturing);
        measure(&b, "exchange-capture-mode", CALLS, exchange_mode);
        measure(&b, "wait-event-and-host-function", 200, wait_and_call);
        measure_busy(&b);
        measure_end(&b);
        measure_queue(&b);
        return 0;
}
