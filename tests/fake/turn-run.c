/* SPDX-License-Identifier: Apache-2.0 */

/* A program that launches kernels, and gets at the functions of libcuda in one of the ways there
 * are:
 *
 *     turn-run WAY COUNTER TASK KIND N US
 *
 * WAY     how functions are found: see ways[]; the executable turn-linked knows "linked" only
 * COUNTER a file of 16 bytes: launches that the driver took, and those that were tried
 * TASK    what is done: see tasks[]
 * KIND    which function launches: see kinds[]
 * N, US   so many launches, of a kernel that takes so long
 *
 * Words on stdout say how far it is; a line on stdin lets it go on. */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cuda/api_graph.h"
#include "sim/cuda/api_launch.h"
#include "test.h"

#define OK(call) ASSERT_INT(call, CUDA_SUCCESS)

/* name, result and parameters */
#define FUNCTIONS(X)                                                                                         \
        X(cuInit, (unsigned flags))                                                                          \
        X(cuCtxCreate_v2, (CUcontext * ret, unsigned flags, CUdevice device))                                \
        X(cuCtxDestroy_v2, (CUcontext c))                                                                    \
        X(cuCtxSetCurrent, (CUcontext c))                                                                    \
        X(cuCtxSynchronize, (void) )                                                                         \
        X(cuDevicePrimaryCtxRetain, (CUcontext * ret, CUdevice device))                                      \
        X(cuDevicePrimaryCtxRelease_v2, (CUdevice device))                                                   \
        X(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                     \
        X(cuModuleLoadData, (CUmodule * ret, const void *image))                                             \
        X(cuModuleGetFunction, (CUfunction * ret, CUmodule m, const char *name))                             \
        X(cuModuleUnload, (CUmodule m))                                                                      \
        X(cuStreamCreate, (CUstream * ret, unsigned flags))                                                  \
        X(cuLaunchHostFunc, (CUstream s, CUhostFn run, void *data))                                          \
        X(cuMemAlloc_v2, (CUdeviceptr * ret, size_t size))                                                   \
        X(cuStreamWaitValue32_v2, (CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags))            \
        X(cuStreamWriteValue32_v2, (CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags))           \
        X(cuStreamAddCallback, (CUstream s, CUstreamCallback run, void *data, unsigned flags))               \
        X(cuStreamSynchronize, (CUstream s))                                                                 \
        X(cuStreamBeginCapture_v2, (CUstream s, int mode))                                                   \
        X(cuStreamEndCapture, (CUstream s, CUgraph * ret))                                                   \
        X(cuGraphInstantiateWithFlags, (CUgraphExec * ret, CUgraph g, unsigned long long flags))             \
        X(cuFuncSetBlockShape, (CUfunction f, int x, int y, int z))                                          \
        X(cuParamSetSize, (CUfunction f, unsigned n))                                                        \
        X(cuParamSeti, (CUfunction f, int offset, unsigned value))                                           \
        X(cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,    \
                           unsigned bz, unsigned shared, CUstream s, void **params, void **extra))           \
        X(cuLaunchKernel_ptsz,                                                                               \
          (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,       \
           unsigned shared, CUstream s, void **params, void **extra))                                        \
        X(cuLaunchKernelEx, (const CUlaunchConfig *config, CUfunction f, void **params, void **extra))       \
        X(cuLaunchCooperativeKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,      \
                                      unsigned by, unsigned bz, unsigned shared, CUstream s, void **params)) \
        X(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS * list, unsigned n, unsigned flags))     \
        X(cuGraphLaunch, (CUgraphExec g, CUstream s))                                                        \
        X(cuLaunch, (CUfunction f))                                                                          \
        X(cuLaunchGrid, (CUfunction f, int width, int height))                                               \
        X(cuLaunchGridAsync, (CUfunction f, int width, int height, CUstream s))

#define MEMBER(name, parameters) CUresult(*name) parameters;
static struct { FUNCTIONS(MEMBER) } cu;

typedef CUresult GetProc1(const char *name, void **ret, int version, cuuint64_t flags);
typedef CUresult GetProc2(const char *name, void **ret, int version, cuuint64_t flags, int *status);

/* ---- ways ---- */

#ifdef LINKED

#define DECLARE(name, parameters) CUresult name parameters;
FUNCTIONS(DECLARE)
#define ADDRESS(name, parameters) cu.name = name;
static void find_all(const char *way) {
        ASSERT_TEXT(way, "linked");
        FUNCTIONS(ADDRESS)
}

#else

static void *library, *(*look_up)(void *, const char *);
static GetProc1 *get1;
static GetProc2 *get2;
static cuuint64_t proc_flags;

/* Something that has the same name, before it; then it is opened by its path. */
static void open_library(int flags) {
        const char *first = getenv("TURN_FIRST"), *path = getenv("TURN_CUDA");

        if (first && !dlopen(first, RTLD_NOW | flags))
                TEST_FAIL_("%s", dlerror());
        library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | flags);
        if (!library)
                TEST_FAIL_("%s", dlerror());
}

static void *of_library(const char *name) {
        return dlsym(library, name);
}

static void *of_everything(const char *name) {
        return dlsym(RTLD_DEFAULT, name);
}

static void *of_next(const char *name) {
        return dlsym(RTLD_NEXT, name);
}

/* No version is the one of a library that has none. */
static void *of_version(const char *name) {
        void *p = dlvsym(library, name, "CUDA_0");

        return p ? p : dlsym(library, name);
}

static void *of_found_dlsym(const char *name) {
        return look_up(library, name);
}

/* What cuGetProcAddress() is asked for has no suffix. */
static const char *plain(const char *name, char buffer[64]) {
        char *end;

        (void) snprintf(buffer, 64, "%s", name);
        end = strstr(buffer, "_v2");
        end = end ? end : strstr(buffer, "_ptsz");
        if (end)
                *end = '\0';
        return buffer;
}

/* cuCtxCreate has other parameters from 11.4 on. */
static int version_of(const char *name) {
        return strcmp(name, "cuCtxCreate_v2") == 0 ? 11030 : 12000;
}

static void *of_proc1(const char *name) {
        char buffer[64];
        void *p = NULL;

        (void) get1(plain(name, buffer), &p, version_of(name), strstr(name, "_ptsz") ? 2 : proc_flags);
        return p ? p : dlsym(library, name);
}

static void *of_proc2(const char *name) {
        char buffer[64];
        void *p = NULL;
        int status;

        (void) get2(plain(name, buffer), &p, version_of(name), strstr(name, "_ptsz") ? 2 : proc_flags,
                    &status);
        return p ? p : dlsym(library, name);
}

static void *(*prepare(const char *way))(const char *) {
        open_library(strcmp(way, "deepbind") == 0                              ? RTLD_DEEPBIND | RTLD_LOCAL
                     : strcmp(way, "default") == 0 || strcmp(way, "next") == 0 ? RTLD_GLOBAL
                                                                               : RTLD_LOCAL);
        if (strcmp(way, "default") == 0)
                return of_everything;
        if (strcmp(way, "next") == 0)
                return of_next;
        if (strcmp(way, "dlvsym") == 0)
                return of_version;
        if (strcmp(way, "found") == 0) { /* dlsym() itself by its name, as some loaders do it */
                void *libc = dlopen("libc.so.6", RTLD_NOW);

                *(void **) &look_up = dlsym(libc, "dlsym");
                ASSERT_TRUE(look_up != NULL);
                return of_found_dlsym;
        }
        if (strcmp(way, "proc1") == 0) {
                *(void **) &get1 = dlsym(library, "cuGetProcAddress");
                return of_proc1;
        }
        if (strncmp(way, "proc2", 5) == 0) {
                *(void **) &get2 = dlsym(library, "cuGetProcAddress_v2");
                proc_flags = strcmp(way, "proc2-ptsz") == 0 ? 2 : 0;
                return of_proc2;
        }
        if (strcmp(way, "proc-of-proc") == 0) { /* the function that finds functions, found by itself */
                int status;

                *(void **) &get2 = dlsym(library, "cuGetProcAddress_v2");
                OK(get2("cuGetProcAddress", (void **) &get2, 12000, 0, &status));
                return of_proc2;
        }
        return of_library; /* local, deepbind */
}

static void find_all(const char *way) {
        void *(*find)(const char *) = prepare(way);
#define FIND(name, parameters)                                                                               \
        *(void **) &cu.name = find(#name);                                                                   \
        ASSERT_TRUE(cu.name != NULL);
        FUNCTIONS(FIND)
}

#endif

/* ---- launches ---- */

static struct Counter { _Atomic uint64_t taken, tried; } * counter;
static CUfunction kernel;
static CUgraphExec graph;
static CUstream stream;
static unsigned n, us;

static CUresult by_kernel(void) {
        void *params[] = {&us};

        return cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static CUresult by_ptsz(void) {
        void *params[] = {&us};

        return cu.cuLaunchKernel_ptsz(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static CUresult by_ex(void) {
        CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
        void *params[] = {&us};

        return cu.cuLaunchKernelEx(&config, kernel, params, NULL);
}

static CUresult by_cooperative(void) {
        void *params[] = {&us};

        return cu.cuLaunchCooperativeKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params);
}

static CUresult by_multi(void) {
        void *params[] = {&us};
        CUDA_LAUNCH_PARAMS list = {kernel, 1, 1, 1, 1, 1, 1, 0, stream, params};

        return cu.cuLaunchCooperativeKernelMultiDevice(&list, 1, 0);
}

static CUresult by_graph(void) {
        return cu.cuGraphLaunch(graph, stream);
}

static CUresult by_old(void) {
        return cu.cuLaunch(kernel);
}

static CUresult by_grid(void) {
        return cu.cuLaunchGrid(kernel, 1, 1);
}

static CUresult by_grid_async(void) {
        return cu.cuLaunchGridAsync(kernel, 1, 1, stream);
}

static const struct Kind {
        const char *name;
        CUresult (*launch)(void);
} kinds[] = {
        {"kernel", by_kernel},        {"ptsz", by_ptsz},   {"ex", by_ex},   {"cooperative", by_cooperative},
        {"multi", by_multi},          {"graph", by_graph}, {"old", by_old}, {"grid", by_grid},
        {"grid-async", by_grid_async}};
static const struct Kind *kind;

static CUresult launch(void) {
        CUresult r;

        counter->tried++;
        r = kind->launch();
        if (r == CUDA_SUCCESS)
                counter->taken++;
        return r;
}

static void say(const char *word) {
        (void) printf("%s\n", word);
        (void) fflush(stdout);
}

static void hear(void) {
        char line[16];

        if (!fgets(line, sizeof line, stdin))
                exit(0);
}

static CUcontext begin(void) {
        CUcontext c;
        CUmodule m;

        OK(cu.cuCtxCreate_v2(&c, 0, 0));
        OK(cu.cuModuleLoadData(&m, "image"));
        OK(cu.cuModuleGetFunction(&kernel, m, "sleep_us"));
        OK(cu.cuFuncSetBlockShape(kernel, 1, 1, 1));
        OK(cu.cuParamSetSize(kernel, 4));
        OK(cu.cuParamSeti(kernel, 0, us));
        OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        return c;
}

static void capture(unsigned launches) {
        void *params[] = {&us};
        CUgraph g;

        OK(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        for (unsigned i = 0; i < launches; i++)
                OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
        OK(cu.cuStreamEndCapture(stream, &g));
        OK(cu.cuGraphInstantiateWithFlags(&graph, g, 0));
}

/* ---- tasks ---- */

/* All of them, and then it has nothing to do any more, and says nothing to the driver. */
static void task_all(void) {
        (void) begin();
        capture(1);
        say("ready");
        for (unsigned i = 0; i < n; i++)
                OK(launch());
        say("launched");
        hear();
        OK(cu.cuCtxSynchronize());
        say("done");
}

/* What is captured is not held, and is not work. */
static void task_capture(void) {
        (void) begin();
        capture(n);
        say("captured");
        OK(launch());
        say("launched");
        hear();
        OK(cu.cuCtxSynchronize());
        say("done");
}

/* One thread captures one stream, in the mode that refuses most, while launches into another one
 * pass. */
static void task_beside(void) {
        void *params[] = {&us};
        CUstream captured;
        CUgraph g;

        (void) begin();
        OK(cu.cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
        say("ready");
        OK(cu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
        for (unsigned i = 0; i < n; i++) {
                OK(launch());
                OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, captured, params, NULL));
        }
        OK(cu.cuStreamEndCapture(captured, &g));
        say("launched");
        hear();
        OK(cu.cuCtxSynchronize());
        say("done");
}

/* The same, with work in the captured stream that the gate has not yet seen the end of. */
static void task_captured_with_work(void) {
        void *params[] = {&us};
        CUstream captured;
        CUgraph g;

        (void) begin();
        OK(cu.cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                for (unsigned k = 0; k < 2; k++)
                        OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, captured, params, NULL));
                OK(cu.cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
                OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, captured, params, NULL));
                (void) usleep(3000);
                for (unsigned k = 0; k < 4; k++)
                        OK(launch());
                OK(cu.cuStreamEndCapture(captured, &g));
                OK(cu.cuCtxSynchronize());
        }
        say("launched");
        hear();
        say("done");
}

static CUcontext shared;

static void *thread(void *unused) {
        OK(cu.cuCtxSetCurrent(shared));
        for (unsigned i = 0; i < n; i++)
                OK(launch());
        OK(cu.cuStreamSynchronize(CU_STREAM_PER_THREAD));
        return unused;
}

static void task_threads(void) {
        pthread_t threads[64];

        shared = begin();
        capture(1);
        say("ready");
        for (size_t i = 0; i < 64; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, thread, NULL));
        for (size_t i = 0; i < 64; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

/* The primary context is retained and given back all the time, while threads launch in it. */
static void task_retain(void) {
        pthread_t threads[8];
        CUcontext c;
        CUmodule m;

        OK(cu.cuDevicePrimaryCtxRetain(&shared, 0));
        OK(cu.cuCtxSetCurrent(shared));
        OK(cu.cuModuleLoadData(&m, "image"));
        OK(cu.cuModuleGetFunction(&kernel, m, "sleep_us"));
        OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        say("ready");
        for (size_t i = 0; i < 8; i++)
                ASSERT_OK(pthread_create(&threads[i], NULL, thread, NULL));
        while (counter->taken < 8 * (uint64_t) n) {
                OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
                OK(cu.cuDevicePrimaryCtxRelease_v2(0));
                (void) usleep(500);
        }
        for (size_t i = 0; i < 8; i++)
                ASSERT_OK(pthread_join(threads[i], NULL));
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        OK(cu.cuDevicePrimaryCtxRelease_v2(0));
        say("done");
}

/* The child of a process that has the card cannot launch, and must be told so at once. */
static void task_fork(void) {
        int status;
        pid_t pid;

        (void) begin();
        capture(1);
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                OK(launch());
                pid = fork();
                ASSERT_TRUE(pid >= 0);
                if (pid == 0)
                        _exit(kind->launch() == CUDA_ERROR_NOT_INITIALIZED ? 7 : 8);
                ASSERT_INT(waitpid(pid, &status, 0), pid);
                ASSERT_TRUE(WIFEXITED(status));
                ASSERT_INT(WEXITSTATUS(status), 7);
        }
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

/* Contexts go with work in flight; modules, too. */
static void task_destroy(void) {
        CUcontext c;

        say("ready");
        for (unsigned i = 0; i < n; i++) {
                c = begin();
                capture(1);
                for (unsigned k = 0; k < 20; k++)
                        OK(launch());
                OK(cu.cuCtxDestroy_v2(c));
        }
        OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
        OK(cu.cuDevicePrimaryCtxReset_v2(0));
        say("launched");
        hear();
        say("done");
}

/* A kernel is on the card when its context ends. */
static void task_leave(void) {
        CUcontext c;

        say("ready");
        for (unsigned i = 0; i < n; i++) {
                c = begin();
                OK(launch());
                OK(cu.cuCtxDestroy_v2(c));
        }
        say("launched");
        hear();
        say("done");
}

/* A driver that refuses to end one has ended nothing. */
static void task_refuse(void) {
        CUcontext c;
        CUmodule m;

        OK(cu.cuDevicePrimaryCtxRetain(&c, 0));
        OK(cu.cuCtxSetCurrent(c));
        OK(cu.cuModuleLoadData(&m, "image"));
        OK(cu.cuModuleGetFunction(&kernel, m, "sleep_us"));
        OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                OK(launch());
                ASSERT_TRUE(cu.cuCtxDestroy_v2(c) != CUDA_SUCCESS);
        }
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

static void let_us(void *until) {
        while (!*(_Atomic bool *) until)
                (void) usleep(100);
}

/* All that is launched waits for a word, which is written after the last launch. */
static void task_behind(void) {
        CUdeviceptr word;
        CUstream other;

        (void) begin();
        OK(cu.cuMemAlloc_v2(&word, 4));
        OK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        OK(cu.cuStreamWriteValue32_v2(other, word, 0, 0));
        OK(cu.cuStreamSynchronize(other));
        say("ready");
        for (unsigned i = 0; i < 100; i++)
                OK(by_kernel());
        OK(cu.cuCtxSynchronize());
        OK(cu.cuStreamWaitValue32_v2(stream, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
        for (unsigned i = 0; i < n; i++)
                OK(launch());
        OK(cu.cuStreamWriteValue32_v2(other, word, 1, 0));
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

/* The driver's thread is with a function of the program's that waits for the last launch; the
 * stream of the launches does not wait. */
static void task_late(void) {
        _Atomic bool all = false;
        CUstream other;

        (void) begin();
        OK(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
        say("ready");
        OK(cu.cuLaunchHostFunc(other, let_us, &all));
        for (unsigned i = 0; i < n; i++)
                OK(launch());
        all = true;
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

/* A lock that is granted in the order of requests, like an interpreter's: a thread that launches
 * without a pause does not keep it. */
static pthread_mutex_t tickets = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next_one = PTHREAD_COND_INITIALIZER;
static uint64_t drawn, served;

static void take_lock(void) {
        uint64_t mine;

        ASSERT_OK(pthread_mutex_lock(&tickets));
        mine = drawn++;
        while (served != mine)
                ASSERT_OK(pthread_cond_wait(&next_one, &tickets));
        ASSERT_OK(pthread_mutex_unlock(&tickets));
}

static void give_lock(void) {
        ASSERT_OK(pthread_mutex_lock(&tickets));
        served++;
        ASSERT_OK(pthread_cond_broadcast(&next_one));
        ASSERT_OK(pthread_mutex_unlock(&tickets));
}

static void with_lock(void *calls) {
        take_lock();
        *(uint64_t *) calls += 1;
        give_lock();
}

static void with_lock_too(CUstream s, CUresult r, void *calls) {
        ASSERT_TRUE(s != NULL);
        OK(r);
        with_lock(calls);
}

/* The thread that launches has a lock meanwhile, and functions of the host between the launches
 * want it. All of them are called, once, with what they were given. */
static void task_locked(void) {
        uint64_t calls = 0;

        (void) begin();
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                take_lock();
                OK(launch());
                if (i % 16 == 7)
                        OK(cu.cuLaunchHostFunc(stream, with_lock, &calls));
                if (i % 16 == 15)
                        OK(cu.cuStreamAddCallback(stream, with_lock_too, &calls, 0));
                give_lock();
        }
        OK(cu.cuCtxSynchronize());
        ASSERT_INT(calls, n / 8);
        say("launched");
        hear();
        say("done");
}

/* The same lock, held below three launches and a function that wants it. */
static void task_steps(void) {
        uint64_t calls = 0;

        (void) begin();
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                if (i % 3 == 0)
                        take_lock();
                OK(launch());
                if (i % 3 != 2)
                        continue;
                OK(cu.cuLaunchHostFunc(stream, with_lock, &calls));
                give_lock();
        }
        OK(cu.cuCtxSynchronize());
        ASSERT_INT(calls, n / 3);
        say("launched");
        hear();
        say("done");
}

static void takes_long(void *unused) {
        (void) unused;
        (void) usleep(3000);
}

/* Functions of the host that only take their time. */
static void task_slow(void) {
        (void) begin();
        say("ready");
        for (unsigned i = 0; i < n; i++) {
                OK(launch());
                if (i % 8 == 7)
                        OK(cu.cuLaunchHostFunc(stream, takes_long, NULL));
        }
        OK(cu.cuCtxSynchronize());
        say("launched");
        hear();
        say("done");
}

static const struct Task {
        const char *name;
        void (*run)(void);
} tasks[] = {{"all", task_all},         {"capture", task_capture}, {"beside", task_beside},
             {"threads", task_threads}, {"fork", task_fork},       {"destroy", task_destroy},
             {"retain", task_retain},   {"leave", task_leave},     {"refuse", task_refuse},
             {"behind", task_behind},   {"late", task_late},       {"captured", task_captured_with_work},
             {"locked", task_locked},   {"slow", task_slow},       {"steps", task_steps}};

int main(int argc, char **argv) {
        int fd;

        ASSERT_INT(argc, 7);
        fd = open(argv[2], O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_TRUE(counter != MAP_FAILED);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
                if (strcmp(kinds[i].name, argv[4]) == 0)
                        kind = &kinds[i];
        ASSERT_TRUE(kind != NULL);
        n = (unsigned) strtoul(argv[5], NULL, 10);
        us = (unsigned) strtoul(argv[6], NULL, 10);
        find_all(argv[1]);
        OK(cu.cuInit(0));
        for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
                if (strcmp(tasks[i].name, argv[3]) == 0) {
                        tasks[i].run();
                        return 0;
                }
        return 2;
}
