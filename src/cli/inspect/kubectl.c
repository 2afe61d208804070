/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/kubectl.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ; /* POSIX leaves this declaration to its users */

static int pipe_cloexec(int ret[2]) {
        if (pipe(ret) < 0)
                return -errno;
        /* This program has one thread, so no process is started between the two calls; pipe2() is
         * not portable. */
        (void) fcntl(ret[0], F_SETFD, FD_CLOEXEC);
        (void) fcntl(ret[1], F_SETFD, FD_CLOEXEC);
        return 0;
}

static int spawn(char *const *argv, int out, bool quiet, pid_t *ret) {
        posix_spawn_file_actions_t actions;
        int r;

        r = posix_spawn_file_actions_init(&actions);
        if (r != 0)
                return -r;
        r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (r == 0 && quiet)
                r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (r == 0)
                r = posix_spawnp(ret, argv[0], &actions, NULL, argv, environ);
        (void) posix_spawn_file_actions_destroy(&actions); /* frees memory only */
        return -r;
}

/* Whether a program of ours answers, which may be stopped: the API server waits for it for ever. */
static bool is_for_program(const char *path) {
        return strstr(path, "/proxy/metrics") || strstr(path, "/gpushare-scheduler/");
}

static int start(const char *const *flags, size_t n_flags, const char *path, bool quiet, Kubectl *ret,
                 Fault *fault) {
        const char *argv[KUBECTL_MAX_FLAGS + 6] = {"kubectl"};
        int ends[2], r;
        size_t n = 1;

        if (n_flags > KUBECTL_MAX_FLAGS)
                return fault_set(fault, -E2BIG, "more than %d options for kubectl", KUBECTL_MAX_FLAGS);
        if (is_for_program(path))
                argv[n++] = "--request-timeout=" KUBECTL_TIMEOUT; /* a later one in flags counts */
        for (size_t i = 0; i < n_flags; i++)
                argv[n++] = flags[i];
        argv[n++] = "get";
        argv[n++] = "--raw";
        argv[n++] = path;
        (void) snprintf(ret->command, sizeof ret->command, "kubectl get --raw %s", path);

        r = pipe_cloexec(ends);
        if (r < 0)
                return fault_set(fault, r, "pipe: %s", strerror(-r));
        /* POSIX promises not to write to argv */
        r = spawn((char *const *) argv, ends[1], quiet, &ret->pid);
        (void) close(ends[1]);
        if (r < 0) {
                (void) close(ends[0]);
                return fault_set(fault, r, r == -ENOENT ? "kubectl is not on PATH" : "kubectl: %s",
                                 strerror(-r));
        }
        ret->out = ends[0];
        return 0;
}

int kubectl_get_raw(const char *const *flags, size_t n_flags, const char *path, Kubectl *ret, Fault *fault) {
        return start(flags, n_flags, path, false, ret, fault);
}

int kubectl_try_raw(const char *const *flags, size_t n_flags, const char *path, Kubectl *ret, Fault *fault) {
        return start(flags, n_flags, path, true, ret, fault);
}

int kubectl_finish(Kubectl *k, bool give_up, Fault *fault) {
        int status;

        (void) close(k->out);
        if (give_up)
                (void) kill(k->pid, SIGTERM);
        while (waitpid(k->pid, &status, 0) < 0)
                if (errno != EINTR)
                        return fault_set(fault, -errno, "%s: %s", k->command, strerror(errno));
        if (WIFSIGNALED(status))
                return fault_set(fault, KUBECTL_E_FAILED, "%s: killed by signal %d", k->command,
                                 WTERMSIG(status));
        if (WEXITSTATUS(status) != 0)
                return fault_set(fault, KUBECTL_E_FAILED, "%s: exit status %d", k->command,
                                 WEXITSTATUS(status));
        return 0;
}
