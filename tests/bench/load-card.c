/* SPDX-License-Identifier: Apache-2.0 */

/* A program that wants the card always, or from time to time, by launches of one kind; for
 * bench-shares.py, on a simulated card:
 *
 *     load-card KIND KERNEL_US                         without end
 *     load-card KIND KERNEL_US REQUEST_US REST_US N    N requests, each followed by a pause;
 *                                                      prints the us until each was done
 *
 * KIND: stream, streams (4 by turns), graph (of 20 kernels), cooperative, varied (by turns one of 5
 * us and one of KERNEL_US, each waited for). Ends with 1 and a line on stderr when CUDA returns an
 * error. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEC  UINT64_C(1000000000)
#define USEC UINT64_C(1000)

enum { STREAMS = 4, NODES = 20, BLOCK_US = 100000, SHORT_US = 5, SHORTS = 400 };

#define FUNCTIONS(X)                                                                                         \
        X(cuInit, (unsigned) )                                                                               \
        X(cuDevicePrimaryCtxRetain, (void **, int) )                                                         \
        X(cuCtxSetCurrent, (void *) )                                                                        \
        X(cuCtxSynchronize, (void) )                                                                         \
        X(cuModuleLoadData, (void **, const void *) )                                                        \
        X(cuModuleGetFunction, (void **, void *, const char *) )                                             \
        X(cuStreamCreate, (void **, unsigned) )                                                              \
        X(cuStreamBeginCapture_v2, (void *, int) )                                                           \
        X(cuStreamEndCapture, (void *, void **) )                                                            \
        X(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long) )                               \
        X(cuGraphLaunch, (void *, void *) )                                                                  \
        X(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
                           void *, void **, void **) )                                                       \
        X(cuLaunchCooperativeKernel,                                                                         \
          (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **) )

#define POINTER(name, types) static int(*name) types;
FUNCTIONS(POINTER)

static void *function, *streams[STREAMS], *graph;
static unsigned kernel_us, turn;

static void require(int r, const char *what) {
        if (r == 0)
                return;
        (void) fprintf(stderr, "load-card: %s: %d\n", what, r);
        exit(1);
}

static void find_all(void) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *found;

        require(library == NULL, "no libcuda");
#define FIND(name, types)                                                                                    \
        found = dlsym(library, #name);                                                                       \
        require(found == NULL, #name);                                                                       \
        memcpy(&name, &found, sizeof found);
        FUNCTIONS(FIND)
}

static void *next_stream(void) {
        return streams[turn++ % STREAMS];
}

/* Each of these launches so many us of work, and returns how many. */
static unsigned launch_in(void *stream) {
        void *parameters[] = {&kernel_us};

        require(cuLaunchKernel(function, 64, 1, 1, 64, 1, 1, 0, stream, parameters, NULL), "cuLaunchKernel");
        return kernel_us;
}

static unsigned by_stream(void) {
        return launch_in(streams[0]);
}

static unsigned by_streams(void) {
        return launch_in(next_stream());
}

static unsigned by_cooperative(void) {
        void *parameters[] = {&kernel_us};

        require(cuLaunchCooperativeKernel(function, 64, 1, 1, 64, 1, 1, 0, streams[0], parameters),
                "cuLaunchCooperativeKernel");
        return kernel_us;
}

static void make_graph(void) {
        void *captured;

        require(cuStreamBeginCapture_v2(streams[0], 0), "cuStreamBeginCapture");
        for (unsigned i = 0; i < NODES; i++)
                (void) launch_in(streams[0]);
        require(cuStreamEndCapture(streams[0], &captured), "cuStreamEndCapture");
        require(cuGraphInstantiateWithFlags(&graph, captured, 0), "cuGraphInstantiateWithFlags");
}

static unsigned by_graph(void) {
        if (!graph)
                make_graph();
        require(cuGraphLaunch(graph, streams[0]), "cuGraphLaunch");
        return NODES * kernel_us;
}

/* The same function and size, now short, now long; at first short for a while. */
static unsigned by_varied(void) {
        unsigned us = kernel_us, n = turn++ == 0 ? SHORTS : 1;

        kernel_us = SHORT_US;
        for (unsigned i = 0; i < n; i++) {
                (void) launch_in(streams[0]);
                require(cuCtxSynchronize(), "cuCtxSynchronize");
        }
        kernel_us = us;
        (void) launch_in(streams[0]);
        require(cuCtxSynchronize(), "cuCtxSynchronize");
        return us;
}

static const struct {
        const char *name;
        unsigned (*launch)(void);
} kinds[] = {{"stream", by_stream},
             {"streams", by_streams},
             {"graph", by_graph},
             {"cooperative", by_cooperative},
             {"varied", by_varied}};

static void open_card(void) {
        static const char image[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
                                    ".visible .entry aliquot_sleep_us(.param .u32 us)\n{\nret;\n}\n";
        void *context, *module;

        find_all();
        require(cuInit(0), "cuInit");
        require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
        require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        require(cuModuleLoadData(&module, image), "cuModuleLoadData");
        require(cuModuleGetFunction(&function, module, "aliquot_sleep_us"), "cuModuleGetFunction");
        for (unsigned i = 0; i < STREAMS; i++)
                require(cuStreamCreate(&streams[i], 1), "cuStreamCreate");
}

static uint64_t now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * SEC + (uint64_t) t.tv_nsec;
}

static void do_work(unsigned (*launch)(void), unsigned us) {
        for (unsigned done = 0; done < us;)
                done += launch();
        require(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void do_requests(unsigned (*launch)(void), unsigned us, unsigned rest_us, unsigned n) {
        struct timespec rest = {.tv_sec = rest_us / 1000000, .tv_nsec = rest_us % 1000000 * 1000};

        for (unsigned i = 0; i < n; i++) {
                uint64_t begin = now();

                do_work(launch, us);
                (void) printf("%llu\n", (unsigned long long) ((now() - begin) / USEC));
                (void) fflush(stdout);
                (void) nanosleep(&rest, NULL);
        }
}

static unsigned number(const char *text) {
        return (unsigned) strtoul(text, NULL, 10);
}

int main(int argc, char **argv) {
        unsigned (*launch)(void) = NULL;

        for (size_t i = 0; argc > 2 && i < sizeof kinds / sizeof *kinds; i++)
                if (strcmp(kinds[i].name, argv[1]) == 0)
                        launch = kinds[i].launch;
        if (!launch || (argc != 3 && argc != 6)) {
                (void) fprintf(stderr, "usage: load-card KIND KERNEL_US [REQUEST_US REST_US N]\n");
                return 2;
        }
        kernel_us = number(argv[2]);
        open_card();
        if (argc == 6)
                do_requests(launch, number(argv[3]), number(argv[4]), number(argv[5]));
        else
                for (;;) /* until the process is killed */
                        do_work(launch, BLOCK_US);
        return 0;
}
