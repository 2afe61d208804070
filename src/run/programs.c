/* SPDX-License-Identifier: Apache-2.0 */
#include "run/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const places[] = {"",
                                     "/src",
                                     "/../lib/aliquot",
                                     "/../lib/x86_64-linux-gnu/aliquot",
                                     "/../lib/aarch64-linux-gnu/aliquot",
                                     "/../lib64/aliquot"};

static int own_directory(char *ret, size_t size, Fault *fault) {
        ssize_t n = readlink("/proc/self/exe", ret, size - 1);

        if (n <= 0)
                return fault_set(fault, PROGRAMS_E_NONE, "cannot read /proc/self/exe: %s", strerror(errno));
        ret[n] = '\0';
        *strrchr(ret, '/') = '\0';
        return 0;
}

static int find(const char *name, char *ret, size_t size, Fault *fault) {
        char own[PROGRAMS_PATH];
        int r;

        r = own_directory(own, sizeof own, fault);
        for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
                if ((size_t) snprintf(ret, size, "%s%s/%s", own, places[i], name) < size &&
                    access(ret, R_OK) == 0)
                        return 0;
        return r != 0 ? r
                      : fault_set(fault, PROGRAMS_E_NONE, "%s is neither beside %s nor in ../lib/aliquot",
                                  name, own);
}

/* ---- the simulator ---- */

static int write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* Its mount goes with the last process of the namespace, whatever becomes of us. */
static int own_namespace(Fault *fault) {
        unsigned uid = geteuid(), gid = getegid();
        char map[32];

        if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) < 0)
                return fault_set(fault, PROGRAMS_E_NONE, "no namespace for the simulated driver: %s",
                                 strerror(errno));
        if (uid != 0) {
                (void) snprintf(map, sizeof map, "%u %u 1", uid, uid);
                (void) write_file("/proc/self/setgroups", "deny");
                if (write_file("/proc/self/uid_map", map) < 0)
                        return fault_set(fault, PROGRAMS_E_NONE, "cannot map the user: %s", strerror(errno));
                (void) snprintf(map, sizeof map, "%u %u 1", gid, gid);
                (void) write_file("/proc/self/gid_map", map);
        }
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return fault_set(fault, PROGRAMS_E_NONE, "cannot make mounts private: %s", strerror(errno));
        return 0;
}

static _Noreturn void serve(const char *program, const char *cards, const char *dir, int out) {
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void) setpgid(0, 0); /* what a terminal sends is for the command */
        (void) dup2(out, STDOUT_FILENO);
        (void) execl(program, program, "--foreground", "--cards", cards, "--dir", dir, (char *) NULL);
        _exit(127);
}

/* It says when it is ready; when it ends before, it has said why. */
static int await(int fd, pid_t pid, Fault *fault) {
        char line[16] = "";
        ssize_t n;

        do
                n = read(fd, line, sizeof line - 1);
        while (n < 0 && errno == EINTR);
        if (n > 0 && strncmp(line, "ready", 5) == 0)
                return 0;
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        return fault_set(fault, PROGRAMS_E_NONE, "the simulated driver did not start");
}

static int start(const char *program, const char *cards, Programs *p, Fault *fault) {
        int pipe_[2], r;
        pid_t pid;

        if (pipe2(pipe_, O_CLOEXEC) < 0)
                return fault_set(fault, PROGRAMS_E_NONE, "no pipe: %s", strerror(errno));
        pid = fork();
        if (pid == 0)
                serve(program, cards, p->devices, pipe_[1]);
        (void) close(pipe_[1]);
        r = pid < 0 ? fault_set(fault, PROGRAMS_E_NONE, "cannot fork: %s", strerror(errno))
                    : await(pipe_[0], pid, fault);
        (void) close(pipe_[0]);
        if (r == 0)
                p->simulator = pid;
        return r;
}

static int put_first(const char *variable, const char *directory) {
        const char *old = getenv(variable);
        _cleanup_free_ char *text = NULL;

        if (asprintf(&text, "%s%s%s", directory, old && old[0] ? ":" : "", old ? old : "") < 0)
                return -1;
        return setenv(variable, text, 1);
}

static int simulate(const char *cards, Programs *p, Fault *fault) {
        char program[PROGRAMS_PATH];
        int r;

        r = find("aliquot-sim", program, sizeof program, fault);
        if (r == 0)
                r = find("sim/libnvidia-ml.so.1", p->simulated, sizeof p->simulated, fault);
        if (r == 0)
                r = own_namespace(fault);
        if (r != 0)
                return r;
        (void) snprintf(p->devices, sizeof p->devices, "/tmp/aliquot-sim-XXXXXX");
        if (!mkdtemp(p->devices)) {
                p->devices[0] = '\0';
                return fault_set(fault, PROGRAMS_E_NONE, "no directory for the simulated driver: %s",
                                 strerror(errno));
        }
        p->nvml = p->simulated;
        r = start(program, cards, p, fault);
        if (r != 0)
                return r;
        (void) snprintf(program, sizeof program, "%.*s", (int) (strrchr(p->simulated, '/') - p->simulated),
                        p->simulated);
        if (put_first("LD_LIBRARY_PATH", program) < 0 || put_first("PATH", program) < 0 ||
            setenv("ALIQUOT_SIM_DIR", p->devices, 1) < 0)
                return fault_set(fault, PROGRAMS_E_NONE, "out of memory");
        return 0;
}

int programs_find(const char *cards, Programs *ret, Fault *fault) {
        const char *dir = secure_getenv("ALIQUOT_SIM_DIR"); /* as the simulator's libraries have it */
        int r;

        *ret = PROGRAMS_NULL;
        (void) snprintf(ret->devices, sizeof ret->devices, "%s", dir && dir[0] != '\0' ? dir : "/dev");
        r = find("libaliquot.so", ret->gate, sizeof ret->gate, fault);
        return r != 0 || !cards ? r : simulate(cards, ret, fault);
}

void programs_done(Programs *p) {
        if (p->simulator > 0) {
                (void) kill(p->simulator, SIGTERM);
                (void) waitpid(p->simulator, NULL, 0);
        }
        if (p->nvml && p->devices[0])
                (void) rmdir(p->devices);
        *p = PROGRAMS_NULL;
}
