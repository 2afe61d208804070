/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/respawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "arbiter/daemon.h"
#include "arbiter/tunables.h"
#include "base/message.h"

enum { NICE = -15 };
enum { FD_STOP = STDERR_FILENO + 1, FD_REPORT, FD_MAX = 4096 };
enum { ASIDE = 16, LINE = 512 }; /* ASIDE: above the descriptors that are kept; LINE: longest line */

typedef struct RespawnPipes {
        int stop, report_fd;    /* report_fd: -1: no reports */
        uint64_t overrun_limit; /* as in DaemonOptions */
} RespawnPipes;

/* Ends this process with its parent. */
static void end_with_parent(pid_t parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
}

/* Closes inherited descriptors, locks among them, and moves the two that are kept to fixed
 * numbers. */
static void keep_descriptors(RespawnPipes *pipes) {
        int null = open("/dev/null", O_RDWR | O_NOCTTY), stop = fcntl(pipes->stop, F_DUPFD, ASIDE);
        int report_fd = pipes->report_fd >= 0 ? fcntl(pipes->report_fd, F_DUPFD, ASIDE) : -1;
        int first = report_fd >= 0 ? FD_REPORT + 1 : FD_REPORT;

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                _exit(1);
        if (stop < 0 || dup2(stop, FD_STOP) < 0 || (report_fd >= 0 && dup2(report_fd, FD_REPORT) < 0))
                _exit(1);
        pipes->stop = FD_STOP;
        pipes->report_fd = report_fd >= 0 ? FD_REPORT : -1;
#ifdef SYS_close_range
        if (syscall(SYS_close_range, first, ~0U, 0) == 0)
                return;
#endif
        for (int fd = first; fd < FD_MAX; fd++) /* before Linux 5.9 */
                (void) close(fd);
}

static void reset_signals(void) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL); /* fails for signals without a handler */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Does not block: if the reader is slow or gone the line is lost. */
static void write_line(int fd, const DaemonOverrun *k) {
        char line[LINE];
        int n = snprintf(line, sizeof line, "%s%s %llu %s %s %s\n", k->repeated ? "still-" : "",
                         k->partial ? "part" : "hung", (unsigned long long) k->nsec, k->slice, k->uuid,
                         k->container);

        if (n > 0 && (size_t) n < sizeof line)
                (void) !write(fd, line, (size_t) n);
}

static void on_overrun(void *userdata, const DaemonOverrun *k) {
        const RespawnPipes *pipes = userdata;

        if (pipes->report_fd >= 0)
                write_line(pipes->report_fd, k);
        if (k->repeated)
                return;
        message_write("aliquot: a kernel of %s (%s) on %s has run for %llu s", k->container, k->slice,
                      k->uuid, (unsigned long long) (k->nsec / 1000000000));
}

static bool is_stopped(int stop) {
        struct pollfd fd = {.fd = stop, .events = POLLIN};

        return poll(&fd, 1, RESPAWN_PAUSE_MS) > 0;
}

/* Real-time priority, because the card idles while the daemon is delayed. After MAX_RUN_US without
 * a pause the kernel ends it and the supervisor restarts it. Without the right: a nice value. */
static void raise_priority(void) {
        struct rlimit most = {.rlim_cur = MAX_RUN_US, .rlim_max = MAX_RUN_US};
        struct sched_param first = {.sched_priority = 1};

        if (setrlimit(RLIMIT_RTTIME, &most) == 0 &&
            sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0)
                return;
        (void) setpriority(PRIO_PROCESS, 0, NICE);
}

static int run_daemon(const char *slicedir, RespawnPipes *pipes) {
        DaemonOptions options = {.slicedir = slicedir,
                                 .stop = pipes->stop,
                                 .overrun_limit = pipes->overrun_limit,
                                 .on_overrun = on_overrun,
                                 .userdata = pipes};
        Fault fault = FAULT_NULL;
        int r;

        do /* waits until the first slice makes the directory */
                r = daemon_run(&options, &fault);
        while (r == DAEMON_E_MOVED || (r == -ENOENT && !is_stopped(pipes->stop)));
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                message_write("aliquot: no arbiter of compute: %s", fault.text);
        return r < 0;
}

/* Never returns. */
static void supervise_arbiter(const char *slicedir, RespawnPipes *pipes) {
        (void) prctl(PR_SET_NAME, "aliquot-keeper"); /* so that it is not taken for the agent */
        do {
                pid_t self = getpid(), child = fork();
                int status = 0;

                if (child == 0) {
                        end_with_parent(self);
                        (void) prctl(PR_SET_NAME, "aliquot-arbiter");
                        raise_priority();
                        _exit(run_daemon(slicedir, pipes));
                }
                while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                        ;
                if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
                        _exit(0);
        } while (!is_stopped(pipes->stop));
        _exit(0);
}

int respawn_daemon(const char *slicedir, int report_fd, uint64_t overrun_limit, int *ret_stop) {
        pid_t parent = getpid(), pid;
        int pipes[2];

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                RespawnPipes kept = {
                        .stop = pipes[0], .report_fd = report_fd, .overrun_limit = overrun_limit};

                end_with_parent(parent);
                keep_descriptors(&kept);
                reset_signals();
                (void) signal(SIGPIPE, SIG_IGN); /* the reader of report_fd may have ended */
                (void) setsid();                 /* Ctrl-C of a terminal is for the command only */
                supervise_arbiter(slicedir, &kept);
        }
        (void) close(pipes[0]);
        if (pid < 0) {
                (void) close(pipes[1]);
                return -errno;
        }
        *ret_stop = pipes[1];
        return pid;
}
