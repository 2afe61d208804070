/* SPDX-License-Identifier: Apache-2.0 */

/* One process: the figures of the card, memory by family and over the limit, contexts, threads,
 * time. */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

static size_t mib(const char *text) {
        return strtoull(text, NULL, 10) * MIB;
}

/* ---- what it is told ---- */

static void say_info(const char *place) {
        size_t free_ = 0, total = 0;

        OK(CU(cuMemGetInfo_v2)(&free_, &total));
        (void) printf("free-%s %zu\n", place, free_);
        (void) fflush(stdout);
}

CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device);

int case_agree(char **arguments) {
        size_t free_ = 0, total = 0, device = 0;
        NvmlMemory1 m = {0};
        NvmlHandle card;
        CUcontext c;

        (void) arguments;
        OK(CU(nvmlInit_v2)());
        OK(CU(nvmlDeviceGetHandleByIndex_v2)(0, &card));
        c = case_begin();
        OK(CU(cuMemGetInfo_v2)(&free_, &total));
        OK(CU(cuDeviceTotalMem_v2)(&device, 0));
        OK(CU(nvmlDeviceGetMemoryInfo)(card, &m));
        case_say("cuda-total", total);
        case_say("cuda-free", free_);
        case_say("device-total", device);
        case_say("nvml-total", m.total);
        case_say("nvml-free", m.free);
        case_say("nvml-used", m.used);
        case_mark("told");
        OK(CU(cuCtxDestroy_v2)(c));
        return 0;
}

/* ---- by family ---- */

int case_family(char **arguments) {
        static Held h;
        const Family *f = family_find(arguments[0]);
        CUcontext c = case_begin();

        h.bytes = mib(arguments[1]);
        say_info("context");
        case_mark("context");
        OK(f->take(&h));
        say_info("held");
        case_mark("held");
        f->give(&h);
        say_info("freed");
        case_mark("freed");
        OK(CU(cuCtxDestroy_v2)(c));
        case_mark("ended");
        return 0;
}

/* The allocations that fit afterwards show that the refusal took nothing. */
int case_over(char **arguments) {
        static Held h;
        const Family *f = family_find(arguments[0]);
        CUcontext c = case_begin();

        h.bytes = mib(arguments[1]);
        case_mark("context");
        case_say("error", f->take(&h));
        f->give(&h);
        case_mark("refused");
        h = (Held){.bytes = 16 * MIB};
        case_say("small", f->take(&h));
        f->give(&h);
        OK(CU(cuCtxDestroy_v2)(c));
        return 0;
}

static size_t fill_with(size_t size, size_t *pieces) {
        size_t sum = 0;
        CUdeviceptr at;
        CUresult r;

        while ((r = CU(cuMemAlloc_v2)(&at, size)) == CUDA_SUCCESS) {
                sum += size;
                ++*pieces;
        }
        case_say("error", r);
        return sum;
}

/* Up to the last byte; the argument is the largest piece. */
int case_fill(char **arguments) {
        size_t sum = 0, pieces = 0;

        (void) case_begin();
        say_info("context");
        sum += fill_with(mib(arguments[0]), &pieces);
        sum += fill_with(2 * MIB, &pieces);
        case_say("bytes", sum);
        case_say("pieces", pieces);
        say_info("full");
        case_mark("full");
        return 0; /* with everything: the driver frees it */
}

int case_hold(char **arguments) {
        static Held h;

        (void) case_begin();
        h.bytes = mib(arguments[0]);
        OK(family_find("plain")->take(&h));
        case_mark("held");
        return 0;
}

/* ---- contexts and threads ---- */

enum { CONTEXTS = 8, THREADS = 8, STEPS = 64 };

int case_contexts(char **arguments) {
        int n = (int) strtol(arguments[0], NULL, 10); /* 8 at most */
        CUcontext c[CONTEXTS];

        OK(CU(cuInit)(0));
        case_mark("0");
        for (int i = 0; i < n && i < CONTEXTS; i++) {
                char place[8];

                OK(CU(cuCtxCreate_v2)(&c[i], 0, 0));
                (void) snprintf(place, sizeof place, "%d", i + 1);
                case_mark(place);
        }
        for (int i = 0; i < n && i < CONTEXTS; i++)
                OK(CU(cuCtxDestroy_v2)(c[i]));
        case_mark("ended");
        return 0;
}

typedef struct Worker {
        pthread_t thread;
        CUcontext context;
        size_t bytes;
        unsigned rounds, taken, refused;
} Worker;

static void *work(void *data) {
        Worker *w = data;
        CUdeviceptr at;

        OK(CU(cuCtxSetCurrent)(w->context));
        for (unsigned i = 0; i < w->rounds; i++) {
                CUresult r = CU(cuMemAlloc_v2)(&at, w->bytes + i % STEPS * 4096);

                if (r == CUDA_SUCCESS) {
                        w->taken++;
                        OK(CU(cuMemFree_v2)(at));
                } else if (r == CUDA_ERROR_OUT_OF_MEMORY)
                        w->refused++;
                else
                        case_fail("a thread's allocation answers %d", (int) r);
        }
        return NULL;
}

/* Eight threads allocate and free pieces of so many MiB, so many times; not all fit at once. */
int case_threads(char **arguments) {
        static Worker workers[THREADS];
        unsigned long long taken = 0, refused = 0;
        CUcontext c = case_begin();

        say_info("context");
        case_mark("context");
        for (int i = 0; i < THREADS; i++) {
                workers[i] = (Worker){.context = c,
                                      .bytes = mib(arguments[0]),
                                      .rounds = (unsigned) strtoul(arguments[1], NULL, 10)};
                OK(pthread_create(&workers[i].thread, NULL, work, &workers[i]));
        }
        for (int i = 0; i < THREADS; i++) {
                OK(pthread_join(workers[i].thread, NULL));
                taken += workers[i].taken;
                refused += workers[i].refused;
        }
        case_say("taken", taken);
        case_say("refused", refused);
        say_info("ended");
        case_mark("ended");
        return 0;
}

/* ---- time ---- */

static int compare(const void *a, const void *b) {
        unsigned long long x = *(const unsigned long long *) a, y = *(const unsigned long long *) b;

        return x < y ? -1 : x > y;
}

enum { SAMPLES = 4000 };
static unsigned long long samples[SAMPLES];

static void say_median(const char *key, size_t n) {
        qsort(samples, n, sizeof *samples, compare);
        case_say(key, samples[n / 2]);
}

static void time_memory(size_t bytes, size_t n, const char *key_take, const char *key_give) {
        static unsigned long long frees[SAMPLES];
        CUdeviceptr at = 0;

        for (size_t i = 0; i < n; i++) {
                unsigned long long begin = case_now(), middle;

                OK(CU(cuMemAlloc_v2)(&at, bytes));
                middle = case_now();
                samples[i] = middle - begin;
                OK(CU(cuMemFree_v2)(at));
                frees[i] = case_now() - middle;
        }
        say_median(key_take, n);
        memcpy(samples, frees, sizeof samples);
        say_median(key_give, n);
}

static void time_launches(size_t n) {
        unsigned us = 0;
        void *params[] = {&us};
        CUfunction f = case_function("sleep_us");

        for (size_t i = 0; i < n; i++) {
                unsigned long long begin = case_now();

                OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
                samples[i] = case_now() - begin;
                if (i % 64 == 63)
                        OK(CU(cuCtxSynchronize)());
        }
        say_median("launch-ns", n);
}

/* Medians in ns; the argument is the number of calls. */
int case_time(char **arguments) {
        size_t n = strtoull(arguments[0], NULL, 10), free_, total;
        CUcontext c = case_begin();

        n = n < 2 ? 2 : n > SAMPLES ? SAMPLES : n;
        time_memory(32 * MIB, n, "take-32MiB-ns", "give-32MiB-ns");
        time_memory(2 * MIB, n, "take-2MiB-ns", "give-2MiB-ns");
        for (size_t i = 0; i < n; i++) {
                unsigned long long begin = case_now();

                OK(CU(cuMemGetInfo_v2)(&free_, &total));
                samples[i] = case_now() - begin;
        }
        say_median("info-ns", n);
        time_launches(n);
        OK(CU(cuCtxDestroy_v2)(c));
        return 0;
}
