/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/str.h"

enum { CHILD_SOCKET = STDERR_FILENO + 1 };

/* close_range() needs Linux 5.9, and hosts may be older. */
static void close_from(int first) {
        const struct dirent *entry;
        DIR *folder;

#ifdef SYS_close_range
        if (syscall(SYS_close_range, first, ~0U, 0) == 0)
                return;
#endif
        folder = opendir("/proc/self/fd");
        while (folder && (entry = readdir(folder))) {
                uint32_t fd;

                if (str_to_u32(str_from(entry->d_name), &fd) && (int) fd >= first &&
                    (int) fd != dirfd(folder))
                        /* a copy of the agent's descriptor, without data to lose */
                        (void) close((int) fd);
        }
        if (folder)
                (void) closedir(folder);
}

static int keep_only(int socket) {
        int null = open("/dev/null", O_RDWR | O_NOCTTY);

        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                return -errno;
        if (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(null, STDERR_FILENO) < 0)
                return -errno;
        if (socket != CHILD_SOCKET && dup2(socket, CHILD_SOCKET) < 0)
                return -errno;
        close_from(CHILD_SOCKET + 1);
        return 0;
}

static void reset_signals(void) {
        sigset_t none;

        for (int i = 1; i < NSIG; i++)
                (void) signal(i, SIG_DFL); /* fails for signals that cannot have a handler */
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs the child. Never returns: a failure here ends it, and the agent sees its socket closed. */
static void run(int socket, pid_t agent, const ProbeOptions *options) {
        /* A core file would contain the agent's memory and credentials. */
        static const struct rlimit no_core = {0, 0};

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != agent)
                _exit(1); /* the agent ended before the request to end with it took effect */
        reset_signals();
        (void) setsid(); /* the terminal's Ctrl-C is meant for the agent */
        (void) prctl(PR_SET_NAME, "aliquot-nvml");
        (void) setrlimit(RLIMIT_CORE, &no_core);
        if (keep_only(socket) < 0)
                _exit(1);
        _exit(probe_run(CHILD_SOCKET, options));
}

int card_child_start(const ProbeOptions *options, CardChild *ret) {
        _cleanup_close_ int ours = -1, theirs = -1;
        pid_t agent = getpid(), pid;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run(theirs, agent, options);
        *ret = (CardChild){.pid = pid, .fd = TAKE_FD(ours)};
        return 0;
}

void card_child_kill(CardChild *c) {
        if (c->fd >= 0)
                (void) close(c->fd);
        c->fd = -1;
        /* not reaped yet, so the pid cannot belong to another process */
        (void) kill(c->pid, SIGKILL);
}

bool card_child_reap(pid_t pid, int *ret_status) {
        pid_t r;
        int status;

        do
                r = waitpid(pid, &status, WNOHANG);
        while (r < 0 && errno == EINTR);
        if (r == 0)
                return false;
        *ret_status = r == pid ? status : -1;
        return true;
}
