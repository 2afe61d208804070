/* SPDX-License-Identifier: Apache-2.0 */

/* What the gate costs a process at its start, and what it keeps. 64 processes start at once,
 * repeatedly, with the library preloaded and without, by turns. Each opens a file that the slice's
 * page describes as the driver's, and makes a first call, at which the gate opens the slice.
 *
 * Measured from before exec until after the call: wall time, which includes the other processes,
 * and the process's own CPU time. Private memory is read from smaps afterwards.
 *
 *     bench-gate-start LIBRARY [ROUNDS] */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/rm/rm.h"
#include "slicedir/slice_files.h"

enum { CROWD = 64, ROUNDS_MAX = 1000, SHARED_FD = 100 };

typedef struct Shared { /* by all processes */
        _Atomic uint32_t ready, go;
        double begin[CROWD], wall[CROWD], cpu[CROWD], first[CROWD];
        uint64_t memory[CROWD];
} Shared;

static Shared *shared;
static char directory[] = "/tmp/bench-gate-start-XXXXXX";

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-gate-start: %s: %s\n", what, strerror(errno));
        exit(1);
}

static double now(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t); /* cannot fail */
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void map_shared(void) {
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
        require(shared != MAP_FAILED, "mmap");
}

/* ---- a process of the crowd ---- */

/* Private pages, in bytes. */
static uint64_t private_memory(void) {
        FILE *f = fopen("/proc/self/smaps_rollup", "re");
        uint64_t sum = 0;
        char line[256];

        require(f != NULL, "smaps_rollup");
        while (fgets(line, sizeof line, f))
                if (strncmp(line, "Private_Clean:", 14) == 0 || strncmp(line, "Private_Dirty:", 14) == 0)
                        sum += strtoull(line + 14, NULL, 10) * 1024;
        (void) fclose(f); /* only read from */
        return sum;
}

/* Opens the file that stands for the driver and makes a call on it. The call fails. */
static int first_call(const char *device) {
        RmAlloc a = {.new = 0x1D00001, .class_ = RM_CLASS_ROOT_CLIENT};
        int fd = open(device, O_RDWR | O_CLOEXEC);

        require(fd >= 0, device);
        (void) ioctl(fd, RM_IOCTL(RM_ESC_ALLOC, sizeof a), &a); /* ENOTTY */
        return fd;
}

static int be_one(unsigned n, const char *device) {
        double begin;

        map_shared();
        begin = now(CLOCK_MONOTONIC);
        (void) first_call(device);
        shared->first[n] = now(CLOCK_MONOTONIC) - begin;
        shared->wall[n] = now(CLOCK_MONOTONIC) - shared->begin[n];
        shared->cpu[n] = now(CLOCK_PROCESS_CPUTIME_ID);
        shared->memory[n] = private_memory();
        shared->ready++;
        while (shared->go < 2)
                (void) usleep(1000); /* all hold their rows at once */
        return 0;
}

/* ---- the crowd ---- */

static void start_one(unsigned n, const char *self, const char *library, const char *device) {
        char number[16];

        (void) snprintf(number, sizeof number, "%u", n);
        if (fork() != 0)
                return;
        if (library)
                (void) setenv("LD_PRELOAD", library, 1);
        shared->ready++;
        while (shared->go < 1)
                (void) usleep(1000);
        shared->begin[n] = now(CLOCK_MONOTONIC);
        (void) execl(self, self, "--one", number, device, (char *) NULL);
        _exit(127);
}

static void wait_for(uint32_t n) {
        while (shared->ready < n) {
                require(waitpid(-1, NULL, WNOHANG) <= 0, "a process ended");
                (void) usleep(1000);
        }
        shared->ready = 0;
}

static void crowd(unsigned n, const char *self, const char *library, const char *device) {
        int status;

        shared->ready = shared->go = 0;
        for (unsigned i = 0; i < n; i++)
                start_one(i, self, library, device);
        wait_for(n);
        shared->go = 1;
        wait_for(n);
        shared->go = 2;
        for (unsigned i = 0; i < n; i++)
                require(wait(&status) > 0 && status == 0, "a process of the crowd");
}

/* ---- figures ---- */

typedef struct Samples {
        size_t n;
        double wall[CROWD * ROUNDS_MAX], cpu[CROWD * ROUNDS_MAX], first[CROWD * ROUNDS_MAX];
        uint64_t memory;
} Samples;

static Samples with, without;

static void collect(Samples *s, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                s->wall[s->n] = shared->wall[i];
                s->cpu[s->n] = shared->cpu[i];
                s->first[s->n++] = shared->first[i];
                s->memory = shared->memory[i];
        }
}

static int by_size(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return x < y ? -1 : x > y;
}

static double at(const double *sorted, size_t n, double part) {
        return sorted[(size_t) (part * (double) (n - 1))];
}

static void line(const char *what, double *gate, double *plain, size_t n) {
        qsort(gate, n, sizeof *gate, by_size);
        qsort(plain, n, sizeof *plain, by_size);
        (void) printf("  %-22s p50 %7.0f us, %7.0f without, x %.2f;  p99 %7.0f us, %7.0f without, x %.2f\n",
                      what, at(gate, n, 0.5), at(plain, n, 0.5), at(gate, n, 0.5) / at(plain, n, 0.5),
                      at(gate, n, 0.99), at(plain, n, 0.99), at(gate, n, 0.99) / at(plain, n, 0.99));
}

static void report(unsigned n, unsigned rounds, const char *self, const char *library, const char *device) {
        with.n = without.n = 0;
        for (unsigned i = 0; i < rounds; i++) {
                crowd(n, self, library, device);
                collect(&with, n);
                crowd(n, self, NULL, device);
                collect(&without, n);
        }
        (void) printf("%u process%s at once, %u rounds of each:\n", n, n == 1 ? "" : "es", rounds);
        line("exec to first call", with.wall, without.wall, with.n);
        line("CPU time of that", with.cpu, without.cpu, with.n);
        line("the first call itself", with.first, without.first, with.n);
        (void) printf("  private memory         %llu KiB, %llu without: %lld KiB more\n",
                      (unsigned long long) with.memory / 1024, (unsigned long long) without.memory / 1024,
                      ((long long) with.memory - (long long) without.memory) / 1024);
        (void) fflush(stdout); /* before the next fork */
}

static void make_slice(char device[static 64]) {
        SliceSpec spec = {.limit = UINT64_C(1) << 40, .uuid = "GPU-bench", .container = "bench"};
        Fault fault = FAULT_NULL;
        char path[64];
        struct stat st;
        int fd;

        require(mkdtemp(directory) != NULL, "mkdtemp");
        (void) snprintf(device, 64, "%s/driver", directory);
        fd = open(device, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        require(fd >= 0 && fstat(fd, &st) == 0, device);
        (void) close(fd); /* empty */
        spec.ctl = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        (void) snprintf(path, sizeof path, "%s/0", directory);
        require(mkdir(path, 0700) == 0, "mkdir");
        fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        require(fd >= 0 && slice_files_make(fd, &spec, &fault) == 0, "cannot make the slice");
        (void) close(fd);
        require(setenv("ALIQUOT_SLICES", directory, 1) == 0, "setenv");
}

static void remove_slice(void) {
        static const char *const names[] = {"0/limits", "0/counters", "0", "driver", ""};
        char path[64];

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void) snprintf(path, sizeof path, "%s/%s", directory, names[i]);
                (void) remove(path); /* a directory of /tmp stays behind: no harm */
        }
}

int main(int argc, char **argv) {
        unsigned rounds = argc > 2 ? (unsigned) strtoul(argv[2], NULL, 10) : 40;
        char device[64];
        int fd;

        if (argc == 4 && strcmp(argv[1], "--one") == 0)
                return be_one((unsigned) strtoul(argv[2], NULL, 10), argv[3]);
        if (argc < 2 || rounds == 0 || rounds > ROUNDS_MAX / CROWD * CROWD) {
                (void) fprintf(stderr, "usage: bench-gate-start LIBRARY [ROUNDS]\n");
                return 2;
        }
        fd = memfd_create("shared", 0);
        require(fd >= 0 && ftruncate(fd, sizeof(Shared)) == 0 && dup2(fd, SHARED_FD) == SHARED_FD, "memfd");
        (void) close(fd);
        map_shared();
        make_slice(device);
        report(1, rounds, argv[0], argv[1], device);
        report(CROWD, rounds, argv[0], argv[1], device);
        remove_slice();
        return 0;
}
