/* SPDX-License-Identifier: Apache-2.0 */

/* The arbiter of a card.
 *
 * On the virtual clock: the error of shares under caps, in points of the card's time, as the worst
 * of any second and of any ten. Beside it stands what the driver's own time slicing gives the same
 * tenants. On the real clock: the processor time of the arbiter while 1, 3 and 20 tenants always
 * want the card.
 *
 *     bench-arbiter [SECONDS [cost]]      cost: without the table */

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/arbiter/table.h"
#include "arbiter/daemon.h"
#include "base/clock.h"
#include "slice/slice.h"
#include "slicedir/slicedir.h"

static void require(bool ok, const char *what) {
        if (ok)
                return;
        (void) fprintf(stderr, "bench-arbiter: %s: %s\n", what, strerror(errno));
        exit(1);
}

/* ---- the table ---- */

typedef struct Line {
        double error_1, error_10, sum, native;
        uint64_t steps;
        unsigned over; /* cases beyond their bound */
} Line;

static void take_worst(double *into, double value) {
        if (value > *into)
                *into = value;
}

static void add_case(const TableCase *c, Line *line) {
        TableCase native = *c;
        TableResult r = table_run(c, 1), n;

        native.native = true;
        native.seconds = 12 + (uint32_t) (40 * c->kernel / SEC);
        n = table_run(&native, 1);
        take_worst(&line->error_1, r.error_1);
        take_worst(&line->error_10, r.error_10);
        take_worst(&line->native, n.mean);
        if (line->sum == 0 || r.sum < line->sum)
                line->sum = r.sum;
        if (r.steps / c->seconds > line->steps)
                line->steps = r.steps / c->seconds;
        line->over += r.error_1 > table_bound(c, 1) || r.error_10 > table_bound(c, 10);
}

static void print_table(void) {
        TableCase c;

        printf("shares under caps of 10, 30, 50, 70 and 90 %% and the rest, on the virtual clock (points)\n"
               "%9s %8s %10s %8s %8s %8s %8s %7s %9s %10s\n",
               "kernel", "tenants", "processes", "1 s", "bound", "10 s", "bound", "sum", "steps/s",
               "no gate");
        for (uint32_t k = 0; k < 6; k++)
                for (uint32_t tenants = 1; tenants <= 3; tenants++)
                        for (uint32_t processes = 1; processes <= 4; processes += 3) {
                                Line line = {0};

                                for (uint32_t cap = 0; cap < 5; cap++) {
                                        table_case(table_caps[cap], tenants, &c);
                                        c.kernel = table_kernels[k];
                                        c.n_processes = processes;
                                        add_case(&c, &line);
                                }
                                printf("%6.0f us %8u %10u %8.2f %8.2f %8.2f %8.2f %6.1f%% %9llu %10.1f%s\n",
                                       (double) c.kernel / 1e3, tenants, processes, line.error_1,
                                       table_bound(&c, 1), line.error_10, table_bound(&c, 10), line.sum,
                                       (unsigned long long) line.steps, line.native,
                                       line.over > 0 ? "  over" : "");
                        }
}

/* ---- what it costs ---- */

static char home[] = "/tmp/bench-arbiter-XXXXXX", path[64];

static void make_slices(unsigned n) {
        Fault fault = FAULT_NULL;
        Slicedir b;

        require(slicedir_open(&b, path, true, &fault) == 0, fault.text);
        for (unsigned i = 0; i < n; i++) {
                SliceSpec spec = {.limit = 1 << 20,
                                  .card_bytes = 1 << 30,
                                  .request.percent = 100 / n,
                                  .uuid = "GPU-bench",
                                  .container = "bench"};
                char id[16];

                (void) snprintf(id, sizeof id, "t%u", i);
                require(slicedir_update(&b, id, "agent bench", &spec, 1, &fault) == 0, fault.text);
        }
        slicedir_done(&b);
}

static void drop_slices(unsigned n) {
        Fault fault = FAULT_NULL;
        char id[80];
        Slicedir b;

        require(slicedir_open(&b, path, false, &fault) == 0, fault.text);
        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(id, sizeof id, "t%u", i);
                slicedir_remove(&b, id);
        }
        slicedir_done(&b);
        (void) snprintf(id, sizeof id, "%s/arbiter", path);
        (void) unlink(id);
        (void) rmdir(path);
}

static void sleep_until(uint64_t nsec) {
        struct timespec ts = {.tv_sec = (time_t) (nsec / SEC), .tv_nsec = (long) (nsec % SEC)};

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

/* Plays a gate with a program that fills every window, on a card that the arbiter does not see run.
 * Never returns. */
static void play_gate(unsigned i) {
        char directory[96], doorbell[112];
        SliceWork *work;
        SliceUser s;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_TIMERSLACK, 1UL);
        (void) snprintf(directory, sizeof directory, "%s/t%u/0", path, i);
        (void) snprintf(doorbell, sizeof doorbell, "%s/" SLICE_DOORBELL, directory);
        require(slice_open(directory, &s) == 0, "slice_open");
        work = &s.counters->rows[s.row].work;
        atomic_store(&work->wants, clock_nsec(CLOCK_MONOTONIC));
        for (;;) {
                const SliceSchedule *schedule = &s.limits->schedule;
                uint32_t window = atomic_load(&schedule->window);
                uint64_t began = clock_nsec(CLOCK_MONOTONIC), closes;
                int fd;

                if (!(window & SCHED_WINDOW_OPEN) || atomic_load(&work->drained) == window >> 1) {
                        (void) syscall(SYS_futex, &schedule->window, FUTEX_WAIT, window, NULL, NULL, 0);
                        continue;
                }
                atomic_store(&work->began, WORK_BEGAN(began));
                while ((closes = atomic_load(&schedule->closes) + atomic_load(&schedule->rest)) >
                       clock_nsec(CLOCK_MONOTONIC)) {
                        atomic_store(&work->in_flight, (uint32_t) (closes - began));
                        sleep_until(closes);
                }
                atomic_fetch_add(&work->busy, clock_nsec(CLOCK_MONOTONIC) - began);
                atomic_store(&work->wants, clock_nsec(CLOCK_MONOTONIC));
                atomic_store(&work->drained, window >> 1);
                atomic_store(&work->in_flight, 0);
                fd = open(doorbell, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
                if (fd >= 0) {
                        (void) !write(fd, "", 1);
                        (void) close(fd);
                }
        }
}

static uint64_t windows_of(unsigned n) {
        uint64_t sum = 0;

        for (unsigned i = 0; i < n; i++) {
                char directory[96];
                SliceLimits limits;
                int fd;

                (void) snprintf(directory, sizeof directory, "%s/t%u/0", path, i);
                fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                require(fd >= 0 && slice_files_read_limits(fd, &limits) == 0, "limits");
                sum += atomic_load(&limits.schedule.window) >> 1;
                (void) close(fd);
        }
        return sum;
}

static double seconds_of(const struct rusage *u) {
        return (double) (u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
               (double) (u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

/* A process that wakes up as often and does nothing: us of the processor each. */
static double bare_wake_up(double each_second) {
        uint64_t end = clock_nsec(CLOCK_MONOTONIC) + 3 * SEC, pause = (uint64_t) ((double) SEC / each_second);
        struct rusage usage;
        pid_t pid = fork();

        if (pid == 0) {
                (void) prctl(PR_SET_TIMERSLACK, 1UL);
                for (uint64_t next = end - 3 * SEC; next < end; next += pause)
                        sleep_until(next);
                _exit(0);
        }
        require(wait4(pid, NULL, 0, &usage) == pid, "wait4");
        return 1e6 * seconds_of(&usage) / (double) (usage.ru_nvcsw > 0 ? usage.ru_nvcsw : 1);
}

static void print_cost(unsigned n, unsigned seconds) {
        pid_t gates[32], daemon;
        struct rusage usage;
        int ends[2];

        make_slices(n);
        require(pipe(ends) == 0, "pipe");
        daemon = fork();
        if (daemon == 0) {
                Fault fault = FAULT_NULL;

                (void) close(ends[1]);
                _exit(daemon_run(&(DaemonOptions){.slicedir = path, .stop = ends[0]}, &fault) != 0);
        }
        (void) close(ends[0]);
        for (unsigned i = 0; i < n; i++) {
                gates[i] = fork();
                if (gates[i] == 0) {
                        (void) close(ends[1]);
                        play_gate(i);
                }
        }
        sleep_until(clock_nsec(CLOCK_MONOTONIC) + seconds * SEC);
        (void) close(ends[1]);
        require(wait4(daemon, NULL, 0, &usage) == daemon, "wait4");
        printf("%2u tenants: %.2f %% of a core, %llu windows a second, %.2f wake-ups each, of %.1f us", n,
               100 * seconds_of(&usage) / seconds, (unsigned long long) windows_of(n) / seconds,
               (double) usage.ru_nvcsw / (double) (windows_of(n) + 1),
               1e6 * seconds_of(&usage) / (double) usage.ru_nvcsw);
        for (unsigned i = 0; i < n; i++) {
                (void) kill(gates[i], SIGKILL);
                (void) waitpid(gates[i], NULL, 0);
        }
        printf("; of one that does nothing: %.1f us\n",
               bare_wake_up((double) (usage.ru_nvcsw + 1) / (double) seconds));
        drop_slices(n);
}

int main(int argc, char **argv) {
        unsigned seconds = argc > 1 ? (unsigned) strtoul(argv[1], NULL, 10) : 5;

        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 3 || strcmp(argv[2], "cost") != 0)
                print_table();
        require(mkdtemp(home) != NULL, "mkdtemp");
        (void) snprintf(path, sizeof path, "%s/slices", home);
        printf("\nthe arbiter itself, on the real clock\n");
        for (unsigned n = 1; n <= 20; n = n == 1 ? 3 : n == 3 ? 20 : 21)
                print_cost(n, seconds > 0 ? seconds : 5);
        (void) rmdir(home);
        return 0;
}
