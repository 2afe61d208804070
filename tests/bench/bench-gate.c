/* SPDX-License-Identifier: Apache-2.0 */

/* What the gate costs, with 1, 8 and 64 processes on one slice: an allocation and its free, and a
 * refusal. Beside them stand the same two system calls without the gate, and an fstat. The driver
 * is a memfd with an ioctl that fails at once, and a function that reports success for it. Times
 * are CPU times of the processes, so that the number of cores does not matter.
 *
 *     bench-gate [PAIRS] */

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

#include "base/sys.h"
#include "gpu/rm/rm.h"
#include "slicedir/slice_files.h"

enum { MIB = 1 << 20, ROUNDS = 5, CLIENT = 0x1D00001 };

typedef struct Shared { /* by all processes */
        _Atomic uint32_t ready, go;
        double ns[64];
} Shared;

static Shared *shared;
static char directory[] = "/tmp/bench-gate-XXXXXX";
static uint64_t n_pairs = 200000;
static int device;
static bool params_on_heap;

long bench_driver(int fd, unsigned long request, void *argument);

/* OK for everything; a handle where one is wanted. */
long bench_driver(int fd, unsigned long request, void *argument) {
        static uint32_t next = 0x1000;
        long r = sys_call(SYS_ioctl, fd, request, argument);

        if (rm_ioctl_nr(request) == RM_ESC_ALLOC && ((RmAlloc *) argument)->new == 0)
                ((RmAlloc *) argument)->new = ++next;
        return r == -ENOTTY ? 0 : r;
}

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-gate: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void make_slice(void) {
        SliceSpec spec = {.limit = UINT64_C(1) << 40, .uuid = "GPU-bench", .container = "bench"};
        Fault fault = FAULT_NULL;
        char path[64];
        struct stat st;
        int fd;

        device = memfd_create("driver", MFD_CLOEXEC);
        require(device >= 0 && fstat(device, &st) == 0, "memfd");
        spec.ctl = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        require(mkdtemp(directory) != NULL, "mkdtemp");
        (void) snprintf(path, sizeof path, "%s/0", directory);
        require(mkdir(path, 0700) == 0, "mkdir");
        fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        require(fd >= 0 && slice_files_make(fd, &spec, &fault) == 0, "cannot make the slice");
        (void) close(fd);
        require(setenv("ALIQUOT_SLICES", directory, 1) == 0, "setenv");
}

static void remove_slice(void) {
        static const char *const names[] = {"0/limits", "0/counters", "0", ""};
        char path[64];

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                (void) snprintf(path, sizeof path, "%s/%s", directory, names[i]);
                (void) remove(path); /* a directory of /tmp stays behind: no harm */
        }
}

static double now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* cannot fail */
        return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* ---- what is measured ---- */

static uint32_t allocate(RmAlloc *a, RmMemoryParams *p, uint64_t size) {
        *p = (RmMemoryParams){.owner = 1, .size = size};
        *a = (RmAlloc){.root = CLIENT,
                       .parent = 0x80,
                       .class_ = RM_CLASS_MEMORY_LOCAL,
                       .params = (uintptr_t) p,
                       .params_size = sizeof *p};
        require(ioctl(device, RM_IOCTL(RM_ESC_ALLOC, sizeof *a), a) == 0, "alloc");
        return a->status;
}

static void pair_gate(void) {
        static RmMemoryParams params_far;
        static RmAlloc alloc_far;
        RmMemoryParams params;
        RmAlloc alloc, *a = params_on_heap ? &alloc_far : &alloc;
        RmFree f = {.root = CLIENT};

        require(allocate(a, params_on_heap ? &params_far : &params, 4 * MIB) == RM_OK, "refused");
        f.old = a->new;
        require(ioctl(device, RM_IOCTL(RM_ESC_FREE, sizeof f), &f) == 0 && f.status == RM_OK, "free");
}

static void pair_plain(void) {
        RmAlloc a = {.root = CLIENT};
        RmFree f = {.root = CLIENT};

        (void) bench_driver(device, RM_IOCTL(RM_ESC_ALLOC, sizeof a), &a); /* says OK */
        (void) bench_driver(device, RM_IOCTL(RM_ESC_FREE, sizeof f), &f);
}

static void pair_fstat(void) {
        struct stat st;

        require(sys_call(SYS_fstat, device, &st) == 0, "fstat");
        require(sys_call(SYS_fstat, device, &st) == 0, "fstat");
        pair_plain();
}

static void refusal(void) {
        RmMemoryParams params;
        RmAlloc a;

        require(allocate(&a, &params, UINT64_C(2) << 40) == RM_ERR_NO_MEMORY, "not refused");
}

/* Of a size that the limit alone does not forbid, but what prepare() holds does: the page is
 * asked. */
static void full(void) {
        RmMemoryParams params;
        RmAlloc a;

        require(allocate(&a, &params, UINT64_C(1) << 40) == RM_ERR_NO_MEMORY, "not refused");
}

static double measure(void (*what)(void)) {
        double best = 1e18;

        for (int round = 0; round < ROUNDS; round++) {
                double begin = now();

                for (uint64_t i = 0; i < n_pairs; i++)
                        what();
                if (now() - begin < best)
                        best = now() - begin;
        }
        return best / (double) n_pairs;
}

/* ---- processes ---- */

static void prepare(void) {
        RmAlloc root = {.new = CLIENT, .class_ = RM_CLASS_ROOT_CLIENT};
        RmMemoryParams params;
        RmAlloc a, dev = {.root = CLIENT, .parent = CLIENT, .new = 0x80, .class_ = RM_CLASS_DEVICE};

        require(ioctl(device, RM_IOCTL(RM_ESC_ALLOC, sizeof root), &root) == 0, "root");
        require(ioctl(device, RM_IOCTL(RM_ESC_ALLOC, sizeof dev), &dev) == 0, "device");
        require(allocate(&a, &params, MIB) == RM_OK, "refused");
}

static double in_processes(unsigned n, void (*what)(void)) {
        double sum = 0;

        shared->ready = shared->go = 0;
        for (unsigned i = 0; i < n; i++)
                if (fork() == 0) {
                        prepare();
                        pair_gate();
                        shared->ready++;
                        while (!shared->go)
                                (void) usleep(1000); /* until all are there */
                        shared->ns[i] = measure(what);
                        _exit(0);
                }
        while (shared->ready < n) {
                require(waitpid(-1, NULL, WNOHANG) <= 0, "a process ended");
                (void) usleep(1000);
        }
        shared->go = 1;
        for (unsigned i = 0; i < n; i++)
                require(wait(NULL) > 0, "wait");
        for (unsigned i = 0; i < n; i++)
                sum += shared->ns[i];
        return sum / n;
}

static void report(unsigned n, uint64_t pairs) {
        double plain, with_fstat, gate;

        n_pairs = pairs;
        plain = in_processes(n, pair_plain);
        with_fstat = in_processes(n, pair_fstat);
        gate = in_processes(n, pair_gate);
        (void) printf(
                "%2u processes: alloc + free %6.0f ns through the gate, %6.0f without: +%.0f ns a call; "
                "an fstat takes %.0f ns, with which +%.0f would be the budget\n",
                n, gate, plain, (gate - plain) / 2, (with_fstat - plain) / 2, (with_fstat - plain) / 2 + 100);
        (void) fflush(stdout); /* before the next fork */
}

int main(int argc, char **argv) {
        if (argc > 1)
                n_pairs = strtoull(argv[1], NULL, 10);
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        require(shared != MAP_FAILED, "mmap");
        make_slice();
        report(1, n_pairs);
        report(8, n_pairs / 4);
        report(64, n_pairs / 32);
        n_pairs = 100000;
        (void) printf("refusal: %.0f ns by size, %.0f ns by the page\n", in_processes(1, refusal),
                      in_processes(1, full));
        params_on_heap = true;
        (void) printf("parameters not on the stack: alloc + free %.0f ns\n", in_processes(1, pair_gate));
        remove_slice();
        return 0;
}
