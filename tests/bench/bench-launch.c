/* SPDX-License-Identifier: Apache-2.0 */

/* What a launch of a libcuda.so.1 that does nothing (idle-cuda.c) costs, as CPU time per launch:
 *     - without the gate,
 *     - with the gate, in a process without slices,
 *     - in a slice without a compute limit,
 *     - in a slice with a limit, in an open window, with 1 and with 8 streams.
 *
 * Each case has a process of its own in one run. Also a dlsym() of a name that the gate does not
 * interpose.
 *
 *     bench-launch LIBRARY CUDA [LAUNCHES] */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "slicedir/slice_files.h"

enum { ROUNDS = 7 };

typedef int LaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                         unsigned bz, unsigned shared, void *stream, void **params, void **extra);

static char directory[] = "/tmp/bench-launch-XXXXXX";
static uint64_t n = 1000000;

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-launch: %s: %s\n", what, strerror(errno));
        exit(1);
}

static double now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
        return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* ---- inside ---- */

static double launches(LaunchKernel *launch, uintptr_t streams) {
        double best = 1e18;

        for (int round = 0; round < ROUNDS; round++) {
                double begin = now();

                for (uint64_t i = 0; i < n; i++)
                        (void) launch((void *) 64, 1, 1, 1, 1, 1, 1, 0, (void *) (16 * (1 + i % streams)),
                                      NULL, NULL);
                if (now() - begin < best)
                        best = now() - begin;
        }
        return best / (double) n;
}

static double questions(void *library) {
        double best = 1e18;

        for (int round = 0; round < ROUNDS; round++) {
                double begin = now();

                for (uint64_t i = 0; i < n / 10; i++)
                        require(dlsym(library, "cuStreamQuery") != NULL, "dlsym");
                if (now() - begin < best)
                        best = now() - begin;
        }
        return best / (double) n * 10;
}

static int inside(const char *cuda, const char *what) {
        void *library = dlopen(cuda, RTLD_NOW | RTLD_LOCAL);
        LaunchKernel *launch;

        require(library != NULL, cuda);
        *(void **) &launch = dlsym(library, "cuLaunchKernel");
        require(launch != NULL, "cuLaunchKernel");
        if (strcmp(what, "dlsym") == 0)
                (void) printf("%f\n", questions(library));
        else
                (void) printf("%f\n", launches(launch, strcmp(what, "streams") == 0 ? 8 : 1));
        return 0;
}

/* ---- outside ---- */

static SliceLimits *make_slice(void) {
        SliceSpec spec = {.limit = UINT64_C(1) << 40, .uuid = "GPU-bench", .container = "bench"};
        Fault fault = FAULT_NULL;
        SliceLimits *l;
        char path[64];
        int fd;

        require(mkdtemp(directory) != NULL, "mkdtemp");
        (void) snprintf(path, sizeof path, "%s/0", directory);
        require(mkdir(path, 0700) == 0, "mkdir");
        fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        require(fd >= 0 && slice_files_make(fd, &spec, &fault) == 0, "cannot make the slice");
        (void) close(fd);
        (void) snprintf(path, sizeof path, "%s/0/limits", directory);
        fd = open(path, O_RDWR | O_CLOEXEC);
        l = fd >= 0 ? mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
        require(l != MAP_FAILED, "limits");
        (void) close(fd);
        return l;
}

static void remove_slice(void) {
        static const char *const names[] = {"0/limits", "0/counters", "0/doorbell", "0", ""};
        char path[64];

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void) snprintf(path, sizeof path, "%s/%s", directory, names[i]);
                (void) remove(path); /* a directory of /tmp stays behind: no harm */
        }
}

static void beat(SliceLimits *l) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        atomic_store(&l->schedule.seen, (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec);
}

/* The answer of a process of its own, in which this program runs again. */
static double answer(char **argv, const char *what, const char *library, bool slices, SliceLimits *l) {
        char text[64] = "";
        int fds[2], status;
        ssize_t got;
        pid_t pid;

        require(pipe(fds) == 0, "pipe");
        pid = fork();
        require(pid >= 0, "fork");
        if (pid == 0) {
                (void) dup2(fds[1], 1);
                (void) unsetenv("ALIQUOT_SLICES");
                if (library)
                        (void) setenv("LD_PRELOAD", library, 1);
                if (slices)
                        (void) setenv("ALIQUOT_SLICES", directory, 1);
                (void) execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3] ? argv[3] : "1000000", what,
                             NULL);
                _exit(127);
        }
        (void) close(fds[1]);
        while (waitpid(pid, &status, WNOHANG) == 0) {
                beat(l);
                (void) usleep(20000);
        }
        got = read(fds[0], text, sizeof text - 1);
        (void) close(fds[0]);
        require(got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
        return strtod(text, NULL);
}

int main(int argc, char **argv) {
        double plain, preloaded, unlimited, limited, streams, asked, asked_through;
        SliceLimits *l;

        require(argc >= 3, "LIBRARY CUDA [LAUNCHES]");
        if (argc > 3)
                n = strtoull(argv[3], NULL, 10);
        if (argc > 4)
                return inside(argv[2], argv[4]);
        l = make_slice();
        plain = answer(argv, "one", NULL, false, l);
        asked = answer(argv, "dlsym", NULL, false, l);
        asked_through = answer(argv, "dlsym", argv[1], false, l);
        preloaded = answer(argv, "one", argv[1], false, l);
        unlimited = answer(argv, "one", argv[1], true, l);
        l->schedule.flags = SCHED_F_GATED;
        l->schedule.depth = l->schedule.closes = INT64_MAX;
        l->schedule.window = 2 | SCHED_WINDOW_OPEN;
        limited = answer(argv, "one", argv[1], true, l);
        streams = answer(argv, "streams", argv[1], true, l);
        (void) printf("launch: %.1f ns without the gate; with it %+.1f ns without slices, %+.1f without a "
                      "limit, %+.1f "
                      "limited and not throttled, %+.1f with 8 streams\n",
                      plain, preloaded - plain, unlimited - plain, limited - plain, streams - plain);
        (void) printf("dlsym: %.1f ns, %+.1f with the gate\n", asked, asked_through - asked);
        remove_slice();
        return 0;
}
