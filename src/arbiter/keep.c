/* SPDX-License-Identifier: Apache-2.0 */

/* The desk in processes of its own: one that does nothing but begin it again, and the one that is
 * it. */

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

#include "arbiter/desk.h"

enum { PAUSE = 100 };                   /* ms */
enum { NICE = -15, RUN_MOST = 200000 }; /* us without a pause */
enum { KEPT_STOP = STDERR_FILENO + 1, KEPT_TELL, MOST = 4096 };
enum { ASIDE = 16, LINE = 512 }; /* above all that is kept; as long as a line can be */

typedef struct Ends {
        int stop, tell;    /* tell: -1 when nobody listens */
        uint64_t patience; /* as in DeskOptions */
} Ends;

static void follow(pid_t parent) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
}

/* What else the caller has open is not ours to keep: locks are among it. */
static void keep_only(Ends *ends) {
        int null = open("/dev/null", O_RDWR | O_NOCTTY), stop = fcntl(ends->stop, F_DUPFD, ASIDE);
        int tell = ends->tell >= 0 ? fcntl(ends->tell, F_DUPFD, ASIDE) : -1;
        int first = tell >= 0 ? KEPT_TELL + 1 : KEPT_TELL;

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                _exit(1);
        if (stop < 0 || dup2(stop, KEPT_STOP) < 0 || (tell >= 0 && dup2(tell, KEPT_TELL) < 0))
                _exit(1);
        ends->stop = KEPT_STOP;
        ends->tell = tell >= 0 ? KEPT_TELL : -1;
#ifdef SYS_close_range
        if (syscall(SYS_close_range, first, ~0U, 0) == 0)
                return;
#endif
        for (int fd = first; fd < MOST; fd++) /* before Linux 5.9 */
                (void) close(fd);
}

static void reset_signals(void) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL); /* refused for some, which never have another handler */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Nobody waits for a reader who is slow, or gone: the line is lost, standard error has it. */
static void tell_of(int fd, const DeskKernel *k) {
        char line[LINE];
        int n = snprintf(line, sizeof line, "%s%s %llu %s %s %s\n", k->again ? "still-" : "",
                         k->part ? "part" : "hung", (unsigned long long) k->nsec, k->slice, k->uuid,
                         k->container);

        if (n > 0 && (size_t) n < sizeof line)
                (void) !write(fd, line, (size_t) n);
}

static void on_hung(void *userdata, const DeskKernel *k) {
        const Ends *ends = userdata;

        if (ends->tell >= 0)
                tell_of(ends->tell, k);
        if (k->again)
                return;
        (void) fprintf(stderr, "aliquot: a kernel of %s (%s) on %s has run for %llu s\n", k->container,
                       k->slice, k->uuid, (unsigned long long) (k->nsec / 1000000000));
}

static bool is_stopped(int stop) {
        struct pollfd fd = {.fd = stop, .events = POLLIN};

        return poll(&fd, 1, PAUSE) > 0;
}

/* The card waits for it, and it has little to do: it goes before programs. Should it ever not stop,
 * it is ended and begun again. Who may not is one among others. */
static void go_first(void) {
        struct rlimit most = {.rlim_cur = RUN_MOST, .rlim_max = RUN_MOST};
        struct sched_param first = {.sched_priority = 1};

        if (setrlimit(RLIMIT_RTTIME, &most) == 0 &&
            sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0)
                return;
        (void) setpriority(PRIO_PROCESS, 0, NICE);
}

static int work(const char *board, Ends *ends) {
        DeskOptions options = {.board = board,
                               .stop = ends->stop,
                               .patience = ends->patience,
                               .hung = on_hung,
                               .userdata = ends};
        Fault fault = FAULT_NULL;
        int r;

        do /* until somebody makes the board, which is whoever makes the first slice */
                r = desk_run(&options, &fault);
        while (r == DESK_E_MOVED || (r == -ENOENT && !is_stopped(ends->stop)));
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                (void) fprintf(stderr, "aliquot: no arbiter of compute: %s\n", fault.text);
        return r < 0;
}

/* Never returns. */
static void keep(const char *board, Ends *ends) {
        (void) prctl(PR_SET_NAME, "aliquot-keeper"); /* for people, who look for the agent itself */
        do {
                pid_t self = getpid(), child = fork();
                int status = 0;

                if (child == 0) {
                        follow(self);
                        (void) prctl(PR_SET_NAME, "aliquot-arbiter");
                        go_first();
                        _exit(work(board, ends));
                }
                while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
                        ;
                if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
                        _exit(0);
        } while (!is_stopped(ends->stop));
        _exit(0);
}

int desk_start(const char *board, int *ret_stop) {
        return desk_start_telling(board, -1, 0, ret_stop);
}

int desk_start_telling(const char *board, int tell, uint64_t patience, int *ret_stop) {
        pid_t parent = getpid(), pid;
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                Ends kept = {.stop = ends[0], .tell = tell, .patience = patience};

                follow(parent);
                keep_only(&kept);
                reset_signals();
                (void) signal(SIGPIPE, SIG_IGN); /* whoever is told may be gone */
                (void) setsid();                 /* a terminal's Ctrl-C is the command's */
                keep(board, &kept);
        }
        (void) close(ends[0]);
        if (pid < 0) {
                (void) close(ends[1]);
                return -errno;
        }
        *ret_stop = ends[1];
        return pid;
}
