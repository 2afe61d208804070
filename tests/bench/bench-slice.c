/* SPDX-License-Identifier: Apache-2.0 */

/* What the slice page costs. A reservation and its release, with 1, 8 and 64 processes on one page,
 * beside the same number of atomic additions to one shared word. A refusal, beside one fstat; and
 * opening. Processes share the cores of this machine.
 *
 *     bench-slice [PAIRS] */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "slice/slice.h"
#include "slicedir/slice_files.h"

enum { UNITS = 512 };

typedef struct Shared { /* in memory of all processes */
        _Atomic uint64_t word __attribute__((aligned(64)));
        _Atomic uint32_t ready __attribute__((aligned(64)));
        _Atomic uint32_t go;
} Shared;

static Shared *shared;
static char directory[] = "/tmp/bench-slice-XXXXXX";
static uint64_t n_pairs = 1000000;

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-slice: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void make_files(void) {
        SliceSpec spec = {.limit = UINT64_C(1) << 40, .uuid = "GPU-bench", .container = "bench"};
        Fault fault = FAULT_NULL;
        int fd;

        require(mkdtemp(directory) != NULL, "mkdtemp");
        fd = open(directory, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        require(fd >= 0 && slice_files_make(fd, &spec, &fault) == 0, "cannot make the files");
        (void) close(fd);
}

static void remove_files(void) {
        char path[64];

        (void) snprintf(path, sizeof path, "%s/limits", directory);
        (void) unlink(path);
        (void) snprintf(path, sizeof path, "%s/counters", directory);
        (void) unlink(path);
        (void) snprintf(path, sizeof path, "%s/" SLICE_DOORBELL, directory);
        (void) unlink(path);
        (void) rmdir(directory);
}

/* ---- what is measured ---- */

static void reserve_and_release(SliceUser *s, uint64_t n) {
        for (uint64_t i = 0; i < n; i++) {
                require(slice_reserve(s, UNITS * SLICE_UNIT) == 0, "refused");
                slice_release(s, UNITS * SLICE_UNIT);
        }
}

/* Twice, as a reservation and a release are two. */
static void add_twice(SliceUser *s, uint64_t n) {
        for (uint64_t i = 0; i < n; i++) {
                (void) atomic_fetch_add(&shared->word, UNITS);
                (void) atomic_fetch_sub(&shared->word, UNITS);
        }
}

static void be_refused(SliceUser *s, uint64_t n) {
        require(slice_reserve(s, slice_limit(s)) == 0, "refused");
        for (uint64_t i = 0; i < n; i++)
                require(slice_reserve(s, SLICE_UNIT) == -ENOMEM, "not refused");
        slice_release(s, slice_limit(s));
}

/* Each looks for the dead, as the first refusal after a millisecond does. */
static void be_refused_and_reap(SliceUser *s, uint64_t n) {
        require(slice_reserve(s, slice_limit(s)) == 0, "refused");
        for (uint64_t i = 0; i < n; i++) {
                atomic_store(&s->last_reap, 0);
                require(slice_reserve(s, SLICE_UNIT) == -ENOMEM, "not refused");
        }
        slice_release(s, slice_limit(s));
}

static void stat_a_file(SliceUser *s, uint64_t n) {
        struct stat st;

        for (uint64_t i = 0; i < n; i++)
                require(fstat(STDIN_FILENO, &st) == 0, "fstat");
}

static void open_and_close(SliceUser *s, uint64_t n) {
        SliceUser another;

        for (uint64_t i = 0; i < n; i++) {
                require(slice_open(directory, &another) == 0, "open");
                slice_close(&another);
        }
}

/* ---- many at once ---- */

static void child(void (*what)(SliceUser *, uint64_t), uint64_t n) {
        SliceUser s;

        require(slice_open(directory, &s) == 0, "open");
        what(&s, 100); /* its pages are there now */
        (void) atomic_fetch_add(&shared->ready, 1);
        while (!atomic_load(&shared->go))
                (void) usleep(100);
        what(&s, n);
        _exit(0);
}

/* ns of machine time for one: the time that it took all, divided by what all did. */
static double measure(void (*what)(SliceUser *, uint64_t), size_t n_processes, uint64_t n) {
        uint64_t each = n / n_processes, start;
        int status;

        atomic_store(&shared->ready, 0);
        atomic_store(&shared->go, 0);
        for (size_t i = 0; i < n_processes; i++) {
                pid_t pid = fork();

                require(pid >= 0, "fork");
                if (pid == 0)
                        child(what, each);
        }
        while (atomic_load(&shared->ready) < n_processes)
                (void) usleep(1000);
        start = clock_nsec(CLOCK_MONOTONIC);
        atomic_store(&shared->go, 1);
        for (size_t i = 0; i < n_processes; i++)
                require(wait(&status) > 0 && status == 0, "a process failed");
        return (double) (clock_nsec(CLOCK_MONOTONIC) - start) / (double) (each * n_processes);
}

static void pairs(size_t n_processes) {
        double ours = measure(reserve_and_release, n_processes, n_pairs);
        double plain = measure(add_twice, n_processes, n_pairs);

        printf("%2zu processes: reserve + release %.1f ns, two atomic additions %.1f ns, ratio %.1f\n",
               n_processes, ours, plain, ours / plain);
}

int main(int argc, char **argv) {
        if (argc > 1)
                n_pairs = strtoull(argv[1], NULL, 10);
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(shared != MAP_FAILED, "mmap");
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        make_files();
        printf("%ld cores\n", sysconf(_SC_NPROCESSORS_ONLN));
        pairs(1);
        pairs(8);
        pairs(64);
        printf("fstat %.0f ns\n", measure(stat_a_file, 1, n_pairs));
        printf("refusal %.0f ns; one that looks for the dead %.0f ns\n", measure(be_refused, 1, n_pairs),
               measure(be_refused_and_reap, 1, n_pairs / 10));
        printf("open and close %.1f us\n", measure(open_and_close, 1, n_pairs / 100) / 1000);
        remove_files();
        return 0;
}
