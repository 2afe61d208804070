/* SPDX-License-Identifier: Apache-2.0 */

/* Work for the card: compute.py divides the rate of a tenant by its rate alone. The work is fixed,
 * because a kernel that waits for a clock seems to have worked while it was preempted. */

#include <stdlib.h>

#include "case.h"

enum { MULTIPROCESSORS = 16, THREADS = 256, CALIBRATION = 4000000, ROUNDS = 20, GAPS = 1 << 16 };

CUresult cuDeviceGetAttribute(int *ret, int attribute, CUdevice device);

typedef struct Work {
        CUfunction f;
        CUstream stream;
        CUgraphExec graph;
        CUdeviceptr out;
        unsigned us, iterations, blocks, batch, nodes;
} Work;

static void launch(const Work *w) {
        unsigned us = w->us, iterations = w->iterations;
        CUdeviceptr out = w->out;
        void *params[] = {&us, &iterations, &out};

        OK(CU(cuLaunchKernel)(w->f, w->blocks, 1, 1, THREADS, 1, 1, 0, w->stream, params, NULL));
}

static void begin(Work *w) {
        int n = 0;

        (void) case_begin();
        OK(CU(cuDeviceGetAttribute)(&n, MULTIPROCESSORS, 0));
        w->blocks = 2 * (unsigned) n;
        w->f = case_function("work_sleep_us");
        OK(CU(cuMemAlloc_v2)(&w->out, sizeof(float)));
        OK(CU(cuStreamCreate)(&w->stream, 0));
        launch(w); /* also loads the kernel */
        OK(CU(cuStreamSynchronize)(w->stream));
}

/* How many iterations take so many microseconds on an idle card: the best of some rounds. */
int case_rate(char **arguments) {
        Work w = {.us = 1000, .iterations = CALIBRATION};
        unsigned long long best = ~0ull, us = strtoull(arguments[0], NULL, 10);

        begin(&w);
        for (int i = 0; i < ROUNDS; i++) {
                unsigned long long from = case_now(), taken;

                launch(&w);
                OK(CU(cuStreamSynchronize)(w.stream));
                taken = case_now() - from;
                best = taken < best ? taken : best;
        }
        case_say("iterations", us * 1000 * CALIBRATION / best);
        return 0;
}

static void make_graph(Work *w) {
        CUgraph g = NULL;

        OK(CU(cuStreamBeginCapture_v2)(w->stream, 0));
        for (unsigned i = 0; i < w->nodes; i++)
                launch(w);
        OK(CU(cuStreamEndCapture)(w->stream, &g));
        OK(CU(cuGraphInstantiateWithFlags)(&w->graph, g, 0));
}

/* Returns the kernels done. */
static unsigned long long do_batch(const Work *w) {
        for (unsigned i = 0; i < w->batch; i++) {
                if (w->graph)
                        OK(CU(cuGraphLaunch)(w->graph, w->stream));
                else
                        launch(w);
        }
        OK(CU(cuStreamSynchronize)(w->stream));
        return w->graph ? (unsigned long long) w->batch * w->nodes : w->batch;
}

/* US ITERATIONS SECONDS BATCH NODES. BATCH: launches between two synchronisations. NODES: kernels
 * in a graph, or 0 for no graph. */
int case_work(char **arguments) {
        Work w = {.us = 1, .iterations = 1};
        unsigned long long length = strtoull(arguments[2], NULL, 10) * 1000000000ull;
        unsigned long long from, done = 0, longest = 0;

        begin(&w);
        w.us = (unsigned) strtoul(arguments[0], NULL, 10);
        w.iterations = (unsigned) strtoul(arguments[1], NULL, 10);
        w.batch = (unsigned) strtoul(arguments[3], NULL, 10);
        w.nodes = (unsigned) strtoul(arguments[4], NULL, 10);
        if (w.nodes > 0)
                make_graph(&w);
        case_mark("ready");
        from = case_now();
        while (case_now() - from < length) {
                unsigned long long at = case_now(), taken;

                done += do_batch(&w);
                taken = case_now() - at;
                longest = taken > longest ? taken : longest;
        }
        case_say("done", done);
        case_say("ns", case_now() - from);
        case_say("longest-ns", longest);
        return 0;
}

/* ---- the turns of the card ---- */

static int compare(const void *a, const void *b) {
        unsigned long long x = *(const unsigned long long *) a, y = *(const unsigned long long *) b;

        return x < y ? -1 : x > y;
}

static void say_spread(const char *what, const unsigned long long *pairs, size_t n, size_t which) {
        static unsigned long long sorted[GAPS];
        static const unsigned parts[] = {10, 50, 90};
        char key[32];

        for (size_t i = 0; i < n; i++)
                sorted[i] = pairs[2 * i + which];
        qsort(sorted, n, sizeof *sorted, compare);
        for (size_t i = 0; n > 0 && i < sizeof parts / sizeof *parts; i++) {
                (void) snprintf(key, sizeof key, "%s-p%u-ns", what, parts[i]);
                case_say(key, sorted[(n - 1) * parts[i] / 100]);
        }
}

/* Milliseconds. One kernel that always works: where the card's clock jumps by more than 20 us, the
 * card did something else. The first run began before the neighbour did and does not count. */
int case_gaps(char **arguments) {
        unsigned us = (unsigned) strtoul(arguments[0], NULL, 10) * 1000, most = GAPS;
        unsigned long long *out;
        void *host = NULL;
        void *params[] = {&us, &host, &most};
        CUfunction f;

        (void) case_begin();
        f = case_function("watch_sleep_us");
        OK(CU(cuMemHostAlloc)(&host, (2 * GAPS + 2) * sizeof *out, 0));
        out = host;
        out[0] = out[1] = 0;
        case_mark("ready");
        OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
        OK(CU(cuCtxSynchronize)());
        case_say("gaps", out[0]);
        case_say("clock-step-ns", out[1]);
        if (out[0] > 1) {
                say_spread("run", out + 4, (size_t) out[0] - 1, 1);
                say_spread("gap", out + 4, (size_t) out[0] - 1, 0);
        }
        return 0;
}
