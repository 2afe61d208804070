/* SPDX-License-Identifier: Apache-2.0 */
#include "base/simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/locate.h"

/* ---- namespaces ---- */

int simulator_check(Fault *fault) {
        _cleanup_close_ int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

        return fd < 0 ? fault_set(fault, -errno, "no FUSE: /dev/fuse: %s", strerror(errno)) : 0;
}

static int write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int map_ids(unsigned uid, unsigned gid) {
        char map[32];
        int r;

        /* where this fails, writing gid_map below fails too and is reported */
        (void) write_file("/proc/self/setgroups", "deny");
        (void) snprintf(map, sizeof map, "%u %u 1", uid, uid);
        r = write_file("/proc/self/uid_map", map);
        (void) snprintf(map, sizeof map, "%u %u 1", gid, gid);
        return r < 0 ? r : write_file("/proc/self/gid_map", map);
}

int simulator_enter(Fault *fault) {
        unsigned uid = geteuid(), gid = getegid();
        int r;

        if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
                return fault_set(fault, -errno, "no namespace for the simulated driver: %s", strerror(errno));
        r = uid == 0 ? 0 : map_ids(uid, gid);
        if (r < 0)
                return fault_set(fault, r, "cannot map the user: %s", strerror(-r));
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return fault_set(fault, -errno, "cannot make mounts private: %s", strerror(errno));
        return 0;
}

/* ---- the server ---- */

/* A process without root has its capabilities only in its user namespace and loses them at exec.
 * The simulator needs them: it mounts, and it reads the memory of its callers. */
static void keep_capabilities(void) {
        static const int wanted[] = {CAP_SYS_ADMIN, CAP_SYS_PTRACE};
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        if (geteuid() == 0 || syscall(SYS_capget, &header, data) < 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
                data[0].inheritable |= data[0].permitted & 1U << wanted[i];
        if (syscall(SYS_capset, &header, data) < 0)
                return; /* the simulator will report that it cannot mount */
        for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
                /* the simulator will report it */
                (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, wanted[i], 0, 0);
}

static _Noreturn void become_program(const char *program, const SimulatorSpec *spec, pid_t parent, int out) {
        char *argv[] = {(char *) program,
                        (char *) "--foreground",
                        (char *) "--cards",
                        (char *) spec->cards,
                        (char *) "--dir",
                        (char *) spec->devices,
                        spec->name ? (char *) "--name" : NULL,
                        (char *) spec->name,
                        NULL};

        if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
                _exit(127);
        (void) setpgid(0, 0); /* signals of the terminal are meant for the command */
        keep_capabilities();
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(127);
        (void) execv(program, argv);
        (void) fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
        _exit(127);
}

static bool is_ready(const char *text) {
        return strncmp(text, "ready\n", 6) == 0 || strstr(text, "\nready\n") != NULL;
}

/* Waits until the simulator reports that it is mounted. If it exits first, it or the loader has
 * printed why. */
static int await_mount(int fd, pid_t *pid, Fault *fault) {
        char text[512] = "";
        size_t n = 0;
        ssize_t r;

        do {
                r = read(fd, text + n, sizeof text - 1 - n);
                n += r > 0 ? (size_t) r : 0;
                text[n] = '\0';
                if (is_ready(text))
                        return 0;
        } while ((r > 0 && n < sizeof text - 1) || (r < 0 && errno == EINTR));
        text[strcspn(text, "\n")] = '\0';
        simulator_stop(pid);
        return fault_set(fault, -EPERM, "the simulated driver did not start%s%s", text[0] ? ": " : "", text);
}

int simulator_start(const SimulatorSpec *spec, pid_t *ret, Fault *fault) {
        char program[LOCATE_PATH];
        pid_t self = getpid(), pid;
        int pipe_[2], r;

        r = locate_file("aliquot-sim", program, sizeof program, fault);
        if (r < 0)
                return r;
        if (pipe2(pipe_, O_CLOEXEC) < 0)
                return fault_set(fault, -errno, "no pipe: %s", strerror(errno));
        pid = fork();
        if (pid == 0)
                become_program(program, spec, self, pipe_[1]);
        r = pid < 0 ? fault_set(fault, -errno, "cannot fork: %s", strerror(errno)) : 0;
        (void) close(pipe_[1]); /* nothing was written */
        if (r == 0)
                r = await_mount(pipe_[0], &pid, fault);
        (void) close(pipe_[0]); /* only read from */
        if (r == 0)
                *ret = pid;
        return r;
}

bool simulator_ended(pid_t *pid) {
        if (*pid <= 0 || waitpid(*pid, NULL, WNOHANG) == 0)
                return false;
        *pid = 0;
        return true;
}

void simulator_stop(pid_t *pid) {
        if (*pid <= 0)
                return;
        (void) kill(*pid, SIGKILL);
        while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
                ;
        *pid = 0;
}
