/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/reaper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* waits ten seconds at most for processes to end */
enum { ROUNDS = 1000, PAUSE_NSEC = 10 * 1000 * 1000 };

/* Whether the process is in the namespace. A zombie is in none. */
static bool is_in(const char *pid, const char *namespace_) {
        char path[64], text[64];
        ssize_t n;

        (void) snprintf(path, sizeof path, "/proc/%.20s/ns/mnt", pid);
        n = readlink(path, text, sizeof text - 1);
        text[n > 0 ? n : 0] = '\0';
        return n > 0 && strcmp(text, namespace_) == 0;
}

/* Kills the processes of the namespace, except the reaper and a runner that is alive. Returns how
 * many there were. */
static unsigned end_all(const char *namespace_, pid_t runner) {
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        unsigned n = 0;

        while (proc && (entry = readdir(proc))) {
                pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);

                if (pid <= 1 || pid == getpid() || (pid == runner && getppid() == runner) ||
                    !is_in(entry->d_name, namespace_))
                        continue;
                (void) kill(pid, SIGKILL); /* it may have ended */
                n++;
        }
        if (proc)
                (void) closedir(proc);
        return n;
}

static void end_namespace(pid_t runner) {
        char own[64];
        ssize_t n = readlink("/proc/self/ns/mnt", own, sizeof own - 1);

        if (n <= 0)
                return;
        own[n] = '\0';
        for (unsigned i = 0; i < ROUNDS && end_all(own, runner) > 0; i++)
                (void) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NSEC}, NULL);
}

/* Runs the child. It closes the runner's descriptors, so that a reader of the runner's output sees
 * its end. */
static _Noreturn void run_reaper(const char *folder, pid_t runner, int wait_for) {
        sigset_t all;
        char byte;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, NULL);
        (void) setsid(); /* succeeds: a new child leads no process group */
        if (dup2(wait_for, STDIN_FILENO) < 0)
                _exit(1);
        closefrom(STDIN_FILENO + 1);
        while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
                ;
        end_namespace(runner);
        (void) umount2(folder, MNT_DETACH); /* a server that was killed leaves its mount */
        (void) rmdir(folder);
        _exit(0);
}

int reaper_start(const char *folder, Reaper *ret, Fault *fault) {
        pid_t runner = getpid(), pid;
        int pipe_[2];

        if (pipe2(pipe_, O_CLOEXEC) < 0)
                return fault_set(fault, -errno, "no pipe: %s", strerror(errno));
        pid = fork();
        if (pid == 0) {
                (void) close(pipe_[1]); /* nothing was written */
                run_reaper(folder, runner, pipe_[0]);
        }
        (void) close(pipe_[0]); /* nothing was read */
        if (pid < 0) {
                (void) close(pipe_[1]); /* nothing was written */
                return fault_set(fault, -errno, "cannot fork: %s", strerror(errno));
        }
        *ret = (Reaper){.pid = pid, .hold = pipe_[1]};
        return 0;
}

void reaper_end(Reaper *k) {
        if (k->hold >= 0)
                (void) close(k->hold); /* nothing was written */
        while (k->pid > 0 && waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        *k = REAPER_NULL;
}
