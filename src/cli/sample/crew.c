/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sample/crew.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/sample/work.h"

static int work(const CrewOrder *o, unsigned long *ret_blocks) {
        Cuda cuda;
        Work w;
        int r;

        r = cuda_open(&cuda);
        if (r == 0 && o->mib > 0)
                r = cuda_allocate(&cuda, o->mib);
        if (r == 0 && o->mib > 0)
                r = cuda_print_memory(&cuda);
        if (r == 0)
                r = work_init(&w, &cuda, o->kernel_us);
        return r == 0 ? work_run(&w, o->seconds, ret_blocks) : r;
}

/* Runs in a child. CUDA does not survive fork(), so each process opens it by itself, and sends its
 * result through the pipe in one write. All processes end with their parent. */
static void run_worker(const CrewOrder *o, pid_t parent, int out) {
        unsigned long blocks = 0;
        int r;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        r = work(o, &blocks);
        (void) fflush(stdout);
        if (r == 0 && write(out, &blocks, sizeof blocks) != (ssize_t) sizeof blocks)
                r = 1;
        _exit(r == 0 ? 0 : 1);
}

static int end_of_one(void) {
        int status;

        return wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

static double now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

int crew_run(const CrewOrder *order) {
        unsigned long blocks, all = 0;
        double start = now();
        pid_t self = getpid();
        unsigned n = 0;
        int ends[2], r = 0;

        if (pipe(ends) < 0) {
                perror("aliquot-sample");
                return 1;
        }
        /* so that lines of several processes are not mixed */
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        for (; n < order->processes; n++) {
                pid_t pid = fork();

                if (pid == 0)
                        run_worker(order, self, ends[1]);
                if (pid < 0) {
                        perror("aliquot-sample");
                        r = 1;
                        break;
                }
        }
        (void) close(ends[1]); /* this process wrote nothing */
        while (read(ends[0], &blocks, sizeof blocks) == (ssize_t) sizeof blocks)
                all += blocks;
        (void) close(ends[0]); /* only read from */
        while (n-- > 0)
                r |= end_of_one();
        if (r == 0)
                (void) printf("done %lu blocks in %.1f s\n", all, now() - start);
        return r;
}
