/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sample/work.h"

#include <stdio.h>
#include <time.h>

enum {
        BLOCK_US = 100000,
        THREADS = 256,
        GROUPS_PER_PROCESSOR = 8, /* 2,048 threads, as many as a multiprocessor has room for */
        MULTIPROCESSORS = 16,     /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
        TRIAL_RATE = 20000,       /* iterations of the loop in a trial launch */
};

/* The kernel reads the clock, so that the driver's compiler does not remove the loop. The simulated
 * card knows this kernel by its name, and takes its first parameter as its length in
 * microseconds. */
static const char image[] = ".version 6.4\n.target sm_50\n.address_size 64\n"
                            ".visible .entry aliquot_sleep_us(.param .u32 us, .param .u32 rate)\n"
                            "{\n"
                            ".reg .pred %p;\n"
                            ".reg .u32 %r<6>;\n"
                            "ld.param.u32 %r1, [us];\n"
                            "ld.param.u32 %r2, [rate];\n"
                            "mul.lo.u32 %r3, %r1, %r2;\n"
                            "mov.u32 %r4, 0;\n"
                            "NEXT: setp.ge.u32 %p, %r4, %r3;\n"
                            "@%p bra DONE;\n"
                            "mov.u32 %r5, %clock;\n"
                            "add.u32 %r4, %r4, 1;\n"
                            "bra NEXT;\n"
                            "DONE: ret;\n"
                            "}\n";

static long long now_us(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (long long) t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int launch(const Work *w, unsigned us, unsigned rate) {
        void *parameters[] = {&us, &rate};

        return cuda_check(
                w->cuda, "cuLaunchKernel",
                w->cuda->launch(w->kernel, w->groups, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
}

/* Measures one launch by the card's own clock. */
static int measure(const Work *w, float *ret_ms) {
        const Cuda *c = w->cuda;
        void *events[2];
        int r = 0;

        for (size_t i = 0; i < 2 && r == 0; i++)
                r = c->event(&events[i], 0);
        if (r == 0)
                r = c->record(events[0], NULL);
        if (r == 0)
                r = launch(w, 1, TRIAL_RATE);
        if (r == 0)
                r = c->record(events[1], NULL);
        if (r == 0)
                r = c->synchronize();
        if (r == 0)
                r = c->elapsed(ret_ms, events[0], events[1]);
        return cuda_check(c, "a trial of the card's speed", r);
}

/* Sets the rate by the quickest of several launches: other programs may use the card meanwhile, and
 * it may start at a low clock rate. */
static int find_rate(Work *w) {
        float best = 0, ms = 0;

        for (int i = 0; i < 20; i++) {
                int r = measure(w, &ms);

                if (r != 0)
                        return r;
                if (ms > 0 && (best <= 0 || ms < best))
                        best = ms;
        }
        w->rate = best > 0 ? (unsigned) (TRIAL_RATE / (best * 1000)) : 1;
        if (w->rate == 0)
                w->rate = 1;
        return 0;
}

int work_init(Work *w, const Cuda *cuda, unsigned kernel_us) {
        int processors = 1, r;
        void *module;

        *w = (Work){.cuda = cuda, .kernel_us = kernel_us};
        r = cuda_check(cuda, "cuModuleLoadData", cuda->load(&module, image));
        if (r == 0)
                r = cuda_check(cuda, "cuModuleGetFunction",
                               cuda->function(&w->kernel, module, "aliquot_sleep_us"));
        if (r == 0)
                r = cuda_check(cuda, "cuDeviceGetAttribute",
                               cuda->attribute(&processors, MULTIPROCESSORS, 0));
        w->groups = (unsigned) processors * GROUPS_PER_PROCESSOR;
        return r == 0 ? find_rate(w) : r;
}

static int do_block(const Work *w, unsigned kernels) {
        int r = 0;

        for (unsigned i = 0; i < kernels && r == 0; i++)
                r = launch(w, w->kernel_us, w->rate);
        return r == 0 ? cuda_check(w->cuda, "cuCtxSynchronize", w->cuda->synchronize()) : r;
}

int work_run(const Work *w, double seconds, unsigned long *ret) {
        unsigned kernels = w->kernel_us < BLOCK_US ? BLOCK_US / w->kernel_us : 1;
        long long start = now_us(), length = (long long) (seconds * 1e6), last = start;
        int r = 0;

        *ret = 0;
        while (r == 0 && last - start < length) {
                long long end;

                r = do_block(w, kernels);
                end = now_us();
                if (r == 0)
                        (void) printf("block %lu: %u kernels of %u us in %lld ms\n", ++*ret, kernels,
                                      w->kernel_us, (end - last) / 1000);
                last = end;
        }
        return r;
}
