/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda-run.h"
#include "thorough.h"

/* An interval on the timeline is at least as long as its kernels: it is computed, not measured. */
void time_passes(void) {
        CUcontext c = begin();
        struct timespec before, after;
        CUevent from, to;
        float ms;

        OK(cuEventCreate(&from, 0));
        OK(cuEventCreate(&to, 0));
        ASSERT_INT(cuEventElapsedTime_v2(&ms, from, to), CUDA_ERROR_INVALID_HANDLE);
        (void) clock_gettime(CLOCK_MONOTONIC, &before);
        OK(cuEventRecord(from, NULL));
        launch_sleep(NULL, 150000);
        launch_sleep(NULL, 50000);
        OK(cuEventRecord(to, NULL));
        OK(cuEventSynchronize(to));
        (void) clock_gettime(CLOCK_MONOTONIC, &after);
        OK(cuEventElapsedTime_v2(&ms, from, to));
        ASSERT_TRUE(ms >= 199.9F);
        ASSERT_TRUE((after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >=
                    200000000);
        OK(cuEventQuery(to));
        OK(cuStreamQuery(NULL));
        OK(cuEventDestroy_v2(from));
        OK(cuEventDestroy_v2(to));
        end(c);
}

typedef struct Gate {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool open;
        unsigned char *byte;
} Gate;

static void pass(void *data) {
        Gate *g = data;

        (void) pthread_mutex_lock(&g->lock);
        while (!g->open)
                (void) pthread_cond_wait(&g->changed, &g->lock);
        *g->byte = 2;
        (void) pthread_mutex_unlock(&g->lock);
}

static void open_gate(Gate *g) {
        (void) pthread_mutex_lock(&g->lock);
        g->open = true;
        (void) pthread_cond_broadcast(&g->changed);
        (void) pthread_mutex_unlock(&g->lock);
}

void streams_and_events(void) {
        CUcontext c = begin();
        unsigned char byte = 0;
        Gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, &byte};
        CUstream a, b;
        CUevent done;

        OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
        OK(cuLaunchHostFunc(a, pass, &gate));
        launch_sleep(a, 1000);
        OK(cuEventRecord(done, a));
        OK(cuStreamQuery(b));
        OK(cuStreamWaitEvent(b, done, 0));
        ASSERT_INT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
        ASSERT_INT(cuEventQuery(done), CUDA_ERROR_NOT_READY);
        open_gate(&gate);
        OK(cuStreamSynchronize(b));
        ASSERT_INT(byte, 2);
        OK(cuEventQuery(done));
        OK(cuStreamDestroy_v2(a));
        OK(cuStreamDestroy_v2(b));
        ASSERT_INT(cuStreamQuery(b), CUDA_ERROR_INVALID_HANDLE);
        OK(cuEventDestroy_v2(done));
        end(c);
}

/* Stream 0 and ordinary streams wait for each other; streams without blocking wait for none. */
void the_stream_zero(void) {
        CUcontext c = begin();
        unsigned char byte = 0;
        Gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, &byte};
        CUstream ordinary, apart;
        CUdeviceptr at;

        OK(cuMemAlloc_v2(&at, 4));
        OK(cuStreamCreate(&ordinary, 0));
        OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
        OK(cuLaunchHostFunc(NULL, pass, &gate));
        OK(cuMemsetD32Async(at, 1, 1, ordinary));
        OK(cuMemsetD32Async(at, 1, 1, apart));
        ASSERT_INT(cuStreamQuery(ordinary), CUDA_ERROR_NOT_READY);
        OK(cuStreamSynchronize(apart));
        open_gate(&gate);
        OK(cuStreamSynchronize(ordinary));
        ASSERT_INT(byte, 2);
        OK(cuMemFree_v2(at));
        end(c);
}

/* Work behind a host function sees its effect; so does work of another stream behind an event of
 * this one. */
void host_functions_in_order(void) {
        CUcontext c = begin();
        unsigned char byte = 1, before = 0, after = 0;
        Gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, &byte};
        CUdeviceptr at;
        CUstream s, other;
        CUevent passed;

        OK(cuMemAlloc_v2(&at, 1));
        OK(cuEventCreate(&passed, 0));
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        OK(cuMemcpyHtoDAsync_v2(at, &byte, 1, s));
        OK(cuMemcpyDtoHAsync_v2(&before, at, 1, s));
        OK(cuLaunchHostFunc(s, pass, &gate));
        OK(cuMemcpyHtoDAsync_v2(at, &byte, 1, s));
        OK(cuEventRecord(passed, s));
        OK(cuStreamWaitEvent(other, passed, 0));
        OK(cuMemcpyDtoHAsync_v2(&after, at, 1, other));
        ASSERT_INT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
        ASSERT_INT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
        ASSERT_INT(cuEventQuery(passed), CUDA_ERROR_NOT_READY);
        open_gate(&gate);
        OK(cuStreamSynchronize(other));
        ASSERT_INT(before, 1);
        ASSERT_INT(after, 2);
        OK(cuStreamDestroy_v2(s));
        OK(cuStreamDestroy_v2(other));
        OK(cuEventDestroy_v2(passed));
        OK(cuMemFree_v2(at));
        end(c);
}

void waits_for_words(void) {
        CUcontext c = begin();
        CUstream waiter, writer;
        CUdeviceptr at;

        OK(cuMemAlloc_v2(&at, 8));
        OK(cuMemsetD32_v2(at, 0, 2));
        OK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
        OK(cuStreamWaitValue32_v2(waiter, at, 5, CU_STREAM_WAIT_VALUE_GEQ));
        OK(cuMemsetD32Async(at + 4, 1, 1, waiter));
        ASSERT_INT(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
        OK(cuStreamWriteValue32_v2(writer, at, 6, 0));
        OK(cuStreamSynchronize(waiter));
        ASSERT_TRUE(holds(at + 4, 1, 1));
        ASSERT_INT(cuStreamWaitValue32_v2(waiter, at + 2, 5, 0), CUDA_ERROR_INVALID_VALUE);
        OK(cuStreamDestroy_v2(waiter));
        OK(cuStreamDestroy_v2(writer));
        OK(cuMemFree_v2(at));
        end(c);
}

void captures(void) {
        CUcontext c = begin();
        CUstream s, side;
        CUevent fork_, join;
        CUdeviceptr at, inner;
        CUgraph g;
        CUgraphExec e;
        size_t n = 0;
        uint64_t before;

        OK(cuMemAlloc_v2(&at, 8));
        OK(cuMemsetD8_v2(at, 0, 8));
        before = used();
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&fork_, 0));
        OK(cuEventCreate(&join, 0));
        OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        OK(cuMemsetD32Async(at, 0x01010101, 1, s));
        OK(cuEventRecord(fork_, s));
        OK(cuStreamWaitEvent(side, fork_, 0));
        launch_sleep(side, 10);
        OK(cuEventRecord(join, side));
        OK(cuMemAllocAsync(&inner, 4 * MIB, s));
        OK(cuMemsetD32Async(inner, 7, 1, s));
        OK(cuMemFreeAsync(inner, s));
        OK(cuStreamWaitEvent(s, join, 0));
        OK(cuMemsetD32Async(at + 4, 0x02020202, 1, s));
        OK(cuStreamEndCapture(s, &g));
        ASSERT_TRUE(holds(at, 0, 8)); /* nothing has happened */
        ASSERT_INT(used(), before);
        OK(cuGraphGetNodes(g, NULL, &n));
        ASSERT_INT(n, 6);
        OK(cuGraphInstantiateWithFlags(&e, g, 0));
        OK(cuGraphDestroy(g));
        for (int i = 0; i < 3; i++) {
                OK(cuMemsetD8_v2(at, 0, 8));
                OK(cuGraphLaunch(e, s));
                OK(cuStreamSynchronize(s));
                ASSERT_TRUE(holds(at, 1, 4) && holds(at + 4, 2, 4));
        }
        OK(cuGraphExecDestroy(e));
        OK(cuDeviceGraphMemTrim(0));
        ASSERT_INT(used(), before);
        OK(cuEventDestroy_v2(fork_));
        OK(cuEventDestroy_v2(join));
        OK(cuMemFree_v2(at));
        end(c);
}

void captures_refuse(void) {
        CUcontext c = begin();
        CUstream s, side;
        CUevent e;
        CUdeviceptr at;
        CUgraph g;

        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
        OK(cuEventCreate(&e, 0));
        ASSERT_INT(cuStreamBeginCapture_v2(NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
        ASSERT_INT(cuMemAlloc_v2(&at, 1), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        ASSERT_INT(cuMemsetD32Async(1, 1, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        ASSERT_INT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        ASSERT_INT(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
        OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
        OK(cuMemAlloc_v2(&at, 1));
        OK(cuEventRecord(e, s));
        OK(cuStreamWaitEvent(side, e, 0));
        launch_sleep(side, 1);
        ASSERT_INT(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        OK(cuStreamSynchronize(side)); /* free again */
        OK(cuMemFree_v2(at));
        OK(cuEventDestroy_v2(e));
        end(c);
}

void graphs_with_memory(void) {
        CUcontext c = begin();
        uint64_t before = used();
        CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                            .bytesize = 10 * MIB};
        CUDA_MEMSET_NODE_PARAMS fill = {.value = 0x33, .elementSize = 1, .width = 10 * MIB, .height = 1};
        CUgraphNode a, f;
        CUgraphExec e;
        CUgraph g;

        OK(cuGraphCreate(&g, 0));
        OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &alloc));
        fill.dst = alloc.dptr;
        OK(cuGraphAddMemsetNode(&f, g, &a, 1, &fill, c));
        ASSERT_INT(used(), before); /* an address, and no memory */
        OK(cuGraphInstantiateWithFlags(&e, g, 0));
        OK(cuGraphLaunch(e, NULL));
        ASSERT_INT(used() - before, 10 * MIB);
        ASSERT_TRUE(holds(alloc.dptr, 0x33, 10 * MIB));
        ASSERT_INT(cuGraphLaunch(e, NULL), CUDA_ERROR_INVALID_VALUE); /* it lives */
        OK(cuMemFree_v2(alloc.dptr));
        ASSERT_INT(used() - before, 10 * MIB); /* kept for the next launch */
        OK(cuGraphLaunch(e, NULL));
        ASSERT_INT(used() - before, 10 * MIB);
        OK(cuMemFreeAsync(alloc.dptr, NULL));
        OK(cuDeviceGraphMemTrim(0));
        ASSERT_INT(used(), before);
        OK(cuGraphAddDependencies_v2(g, &f, &a, NULL, 1));
        ASSERT_INT(cuGraphInstantiateWithFlags(&(CUgraphExec){NULL}, g, 0),
                   CUDA_ERROR_INVALID_VALUE); /* a circle */
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
        end(c);
}

typedef struct Worker {
        pthread_t thread;
        CUcontext context;
        unsigned char mark;
} Worker;

static void *work(void *data) {
        const Worker *w = data;
        size_t step = few_or_all(4, 1); /* a quarter of the sizes, or all */
        CUstream s;

        OK(cuCtxSetCurrent(w->context));
        OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        for (size_t i = 1; i <= 100; i += step) {
                size_t size = i * 40009 % (3 * MIB) + 1;
                CUdeviceptr a, b;

                OK(cuMemAlloc_v2(&a, size));
                OK(cuMemAllocAsync(&b, size, s));
                OK(cuMemsetD8_v2(a, w->mark, size));
                OK(cuMemcpyDtoD_v2(b, a, size));
                ASSERT_TRUE(holds(b, w->mark, size));
                OK(cuMemFree_v2(a));
                OK(cuMemFreeAsync(b, s));
        }
        OK(cuStreamDestroy_v2(s));
        return NULL;
}

void threads(void) {
        enum { THREADS = 8 };
        CUcontext c = begin();
        uint64_t before = used();
        Worker workers[THREADS];

        for (size_t i = 0; i < THREADS; i++) {
                workers[i] = (Worker){.context = c, .mark = (unsigned char) (i + 1)};
                ASSERT_INT(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++)
                ASSERT_INT(pthread_join(workers[i].thread, NULL), 0);
        OK(cuCtxSynchronize());
        ASSERT_INT(used(), before);
        end(c);
}

void addresses(void) {
        /* None is served: docs/internals/simulator-cuda.md. */
        static const char *const absent[] = {"cuMulticastCreate", "cuTexObjectCreate", "cuGraphUpload",
                                             "cuMemAdvise", "cuNothing"};
        void *found = NULL, *twin = NULL;
        const char *name;
        int status;

        OK(cuGetProcAddress_v2("cuMemAlloc", &found, 13000, 0, &status));
        ASSERT_INT(status, CU_GET_PROC_ADDRESS_SUCCESS);
        ASSERT_TRUE(found == (void *) cuMemAlloc_v2);
        OK(cuGetProcAddress_v2("cuMemAlloc", &found, 2000, 0, &status));
        ASSERT_INT(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
        ASSERT_TRUE(!found);
        for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
                found = &status;
                OK(cuGetProcAddress_v2(absent[i], &found, 13000, 0, &status));
                ASSERT_INT(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
                ASSERT_TRUE(!found);
                ASSERT_INT(cuGetProcAddress_v2(absent[i], &found, 13000, 0, NULL), CUDA_ERROR_NOT_FOUND);
        }
        OK(cuGetProcAddress_v2("cuLaunchKernel", &found, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
        ASSERT_TRUE(found == (void *) cuLaunchKernel);
        OK(cuGetProcAddress_v2("cuLaunchKernel", &twin, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                               &status));
        ASSERT_TRUE(twin && twin != found);
        OK(cuGetProcAddress_v2("cuStreamGetCaptureInfo", &found, 11030, 0, &status));
        OK(cuGetProcAddress_v2("cuStreamGetCaptureInfo", &twin, 12030, 0, &status));
        ASSERT_TRUE(found && twin && found != twin); /* each version has its own form */
        OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
        ASSERT_TEXT(name, "CUDA_ERROR_OUT_OF_MEMORY");
        ASSERT_INT(cuGetErrorName((CUresult) 12345, &name), CUDA_ERROR_INVALID_VALUE);
}

/* The child has no driver, but the parent's memory stays while the child has its files. */
void after_fork(void) {
        CUcontext c = begin();
        CUdeviceptr at;
        int status;
        pid_t child;

        OK(cuMemAlloc_v2(&at, MIB));
        (void) fflush(stdout);
        child = fork();
        if (child == 0) {
                int n;

                _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                                      cuMemFree_v2(at) == CUDA_ERROR_NOT_INITIALIZED &&
                                      cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED
                              ? 0
                              : 1);
        }
        ASSERT_INT(waitpid(child, &status, 0), child);
        ASSERT_INT(status, 0);
        OK(cuMemsetD8_v2(at, 1, MIB));
        OK(cuMemFree_v2(at));
        end(c);
}

void bad_arguments(void) {
        CUcontext c = begin();
        CUfunction f = function("kernel");
        CUdeviceptr at;
        CUevent e;
        char text[16];

        OK(cuMemAlloc_v2(&at, 100));
        ASSERT_INT(cuMemcpyHtoD_v2(at, text, 101 + 412 + 1),
                   CUDA_ERROR_INVALID_VALUE); /* beyond its unit, too */
        ASSERT_INT(cuMemcpyDtoH_v2(text, 0x1000, 16), CUDA_ERROR_INVALID_VALUE);
        ASSERT_INT(cuMemFree_v2(at + 1), CUDA_ERROR_INVALID_VALUE);
        OK(cuMemFree_v2(0));
        ASSERT_INT(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
        ASSERT_INT(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
        ASSERT_INT(cuLaunchKernel((CUfunction) &c, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
                   CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(cuStreamSynchronize((CUstream) &c), CUDA_ERROR_INVALID_HANDLE);
        ASSERT_INT(cuEventCreate(&e, 0x100), CUDA_ERROR_INVALID_VALUE);
        ASSERT_INT(cuCtxCreate_v2(&c, 0, 99), CUDA_ERROR_INVALID_DEVICE);
        OK(cuMemFree_v2(at));
        end(c);
}
