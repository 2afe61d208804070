/* SPDX-License-Identifier: Apache-2.0 */

/* own-place PROGRAM ARGUMENT...: runs a test in a place of its own, and ends as the test ends.
 *
 * The place is a new folder, which is HOME and TMPDIR; what the environment says of this machine's
 * clusters, cards and user is taken away. Afterwards the folder is removed. The test has failed if
 * it left a process or a mount there: each is named and ended.
 *
 *     meson - outer (process group of the test) - keeper (group of its own) - test - ...
 *
 * meson ends a test by signals to its process group, and the last of them is SIGKILL. The keeper is
 * in another group, so that it still removes what is left. Processes whose parent ended become its
 * children. If the keeper is killed, the test gets SIGKILL and the outer process does this work. If
 * meson is killed, the outer process gets SIGTERM. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
        GRACE = 10,   /* seconds that processes have to end by themselves after the test */
        ROOM_MIB = 64 /* with less, tests fail in ways that do not name the cause */
};

extern char **environ;

static char place[PATH_MAX];
static sigset_t signals;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        (void) fputs("own-place: ", stderr);
        (void) vfprintf(stderr, format, arguments);
        (void) fputc('\n', stderr);
        va_end(arguments);
}

static int fails(const char *what) {
        say("%s: %s", what, strerror(errno));
        return EXIT_FAILURE;
}

/* ---- time and signals ---- */

static time_t now(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec;
}

/* The next of `signals`; 0 if none came until the time. */
static int next_signal(time_t until) {
        time_t left = until - now();
        int signal = sigtimedwait(&signals, NULL, &(struct timespec){.tv_sec = left > 0 ? left : 0});

        return signal > 0 ? signal : 0;
}

/* Ends this process as the status of another says. */
static void end_as(int status) {
        if (!WIFSIGNALED(status))
                _exit(WEXITSTATUS(status));
        (void) setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        (void) signal(WTERMSIG(status), SIG_DFL);
        (void) sigprocmask(SIG_UNBLOCK, &signals, NULL);
        (void) raise(WTERMSIG(status));
        _exit(128 + WTERMSIG(status));
}

/* ---- processes ---- */

/* The parent of a process; 0: there is no such process. A zombie is none. */
static pid_t parent_of(const char *pid) {
        char path[64], text[512] = "", state;
        const char *name_end;
        int parent = 0, fd;

        (void) snprintf(path, sizeof path, "/proc/%.16s/stat", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        if (read(fd, text, sizeof text - 1) > 0 && (name_end = strrchr(text, ')')) &&
            sscanf(name_end + 1, " %c %d", &state, &parent) == 2 && state == 'Z')
                parent = 0;
        (void) close(fd);
        return parent;
}

static void name_process(pid_t pid) {
        char path[64], words[160] = "";
        ssize_t n = 0;
        int fd;

        (void) snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
                n = read(fd, words, sizeof words - 1);
                (void) close(fd);
        }
        for (ssize_t i = 0; i + 1 < n; i++)
                if (words[i] == '\0')
                        words[i] = ' ';
        say("the test left process %d: %s", pid, words);
}

/* Calls `act` for each child of this process. */
static void each_child(void (*act)(pid_t pid)) {
        DIR *proc = opendir("/proc");

        if (!proc)
                return;
        for (struct dirent *d; (d = readdir(proc));)
                if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && parent_of(d->d_name) == getpid())
                        act((pid_t) strtol(d->d_name, NULL, 10));
        (void) closedir(proc);
}

static void kill_process(pid_t pid) {
        (void) kill(pid, SIGKILL);
}

/* Buries the children that ended. False: there are no more. */
static bool bury(void) {
        pid_t pid;

        while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        return pid == 0;
}

/* Ends all descendants: those of a process that ends become children of this one. False: one
 * cannot be ended. */
static bool end_processes(void) {
        for (time_t until = now() + GRACE; bury();) {
                if (now() >= until)
                        return false;
                each_child(kill_process);
                (void) next_signal(now() + 1);
        }
        return true;
}

/* ---- mounts and files ---- */

/* In place: \040 of mountinfo is a space. */
static void unescape(char *text) {
        char *to = text;

        for (const char *from = text; *from;) {
                if (from[0] == '\\' && from[1] && from[2] && from[3]) {
                        *to++ = (char) ((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
                        from += 4;
                } else
                        *to++ = *from++;
        }
        *to = '\0';
}

/* A file system of FUSE that an ordinary user mounted ends by this program only. */
static void unmount(const char *path) {
        pid_t pid;

        if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0 || (pid = fork()) < 0)
                return;
        if (pid == 0) {
                (void) execlp("fusermount3", "fusermount3", "-u", "-z", "-q", path, (char *) NULL);
                _exit(127);
        }
        (void) waitpid(pid, NULL, 0);
}

/* The last mount below the place, in `path`. */
static bool last_mount(char *path) {
        FILE *file = fopen("/proc/self/mountinfo", "re");
        char *line = NULL, *word;
        size_t room = 0;
        bool found = false;

        while (file && getline(&line, &room, file) > 0) {
                word = line;
                for (int i = 0; word && i < 4; i++)
                        word = strchr(word, ' ') ? strchr(word, ' ') + 1 : NULL;
                if (!word)
                        continue;
                *strchrnul(word, ' ') = '\0';
                unescape(word);
                if (strncmp(word, place, strlen(place)) == 0 && word[strlen(place)] == '/') {
                        (void) snprintf(path, PATH_MAX, "%s", word);
                        found = true;
                }
        }
        free(line);
        if (file)
                (void) fclose(file);
        return found;
}

/* True: there was none. */
static bool end_mounts(bool are_faults) {
        char path[PATH_MAX], before[PATH_MAX] = "";
        bool none = true;

        while (last_mount(path) && strcmp(path, before) != 0) {
                if (are_faults)
                        say("the test left a mount: %s", path);
                unmount(path);
                memcpy(before, path, sizeof before);
                none = false;
        }
        return none;
}

/* Removes what is in a folder, on its own file system only. */
static void empty_folder(int parent, const char *name, dev_t device) {
        struct stat st;
        DIR *folder;
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
                fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return;
        if (fstat(fd, &st) < 0 || st.st_dev != device || !(folder = fdopendir(fd))) {
                (void) close(fd);
                return;
        }
        (void) fchmod(fd, 0700);
        for (struct dirent *d; (d = readdir(folder));) {
                if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0 ||
                    unlinkat(fd, d->d_name, 0) == 0)
                        continue;
                empty_folder(fd, d->d_name, device);
                (void) unlinkat(fd, d->d_name, AT_REMOVEDIR);
        }
        (void) closedir(folder);
}

static bool remove_place(void) {
        struct stat st;

        if (lstat(place, &st) < 0)
                return errno == ENOENT;
        empty_folder(AT_FDCWD, place, st.st_dev);
        return rmdir(place) == 0;
}

/* Ends and removes all that is left. False, when it was left by a test that ended by itself. */
static bool leave(bool are_faults) {
        bool good = true;

        if (!end_processes()) {
                say("a process of the test cannot be ended");
                good = false;
        }
        good = end_mounts(are_faults) && good;
        if (!remove_place())
                say("%s cannot be removed: %s", place, strerror(errno));
        return good || !are_faults;
}

/* ---- the environment ---- */

/* No proxy stands before a server of a test. The test has no libraries of the caller before its
 * own. */
static bool set_environment(void) {
        static const char *const taken[] = {
                "ALIQUOT",          "CUDA_VISIBLE_", "DOCKER_",       "KUBECONFIG=",   "KUBERNETES_",
                "LD_LIBRARY_PATH=", "LD_PRELOAD=",   "NVIDIA_",       "POD_",          "XDG_",
#ifndef SANITIZED
                "ASAN_OPTIONS=",    "LSAN_OPTIONS=", "MSAN_OPTIONS=", "TSAN_OPTIONS=", "UBSAN_OPTIONS=",
#endif
        };
        static const char local[] = "localhost,127.0.0.1,::1";
        char name[256];

        for (size_t i = 0; environ[i];) {
                size_t k = 0, n = sizeof taken / sizeof *taken;

                while (k < n && strncmp(environ[i], taken[k], strlen(taken[k])) != 0)
                        k++;
                (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(environ[i], "="), environ[i]);
                if (k == n || unsetenv(name) < 0)
                        i++;
        }
        return setenv("HOME", place, 1) == 0 && setenv("TMPDIR", place, 1) == 0 &&
               setenv("LC_ALL", "C.UTF-8", 1) == 0 && setenv("no_proxy", local, 1) == 0 &&
               setenv("NO_PROXY", local, 1) == 0;
}

/* ---- the three processes ---- */

/* Signal of the kernel when the parent ends, also when it just did. */
static bool end_with(pid_t parent, int signal) {
        return prctl(PR_SET_PDEATHSIG, signal) == 0 && getppid() == parent;
}

/* Below nohup, and as a job in the background, signals are ignored, and what a test starts would
 * ignore them, too. */
static void be_test(char **command, pid_t group, const sigset_t *before) {
        static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT};

        (void) setpgid(0, group);
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
                (void) signal(ignored[i], SIG_DFL);
        (void) sigprocmask(SIG_SETMASK, before, NULL);
        (void) execvp(command[0], command);
        _exit(fails(command[0]) == 0 ? 0 : 127);
}

/* Waits for the test, and passes signals on. `*ended_by`: the first of them, or 0. */
static int wait_for(pid_t test, int *ended_by) {
        time_t until = 0;
        int status = 0, signal;

        *ended_by = 0;
        for (;;) {
                pid_t pid = waitpid(-1, &status, WNOHANG);

                if (pid == test)
                        return status;
                if (pid > 0)
                        continue;
                signal = next_signal(now() + GRACE);
                if (signal > 0 && signal != SIGCHLD) {
                        (void) kill(test, signal);
                        *ended_by = signal;
                        until = until ? until : now() + GRACE / 2;
                }
                if (until && now() >= until)
                        (void) kill(test, SIGKILL);
        }
}

/* Those that have been told to end get the time for it. */
static bool left_processes(void) {
        for (time_t until = now() + GRACE; bury();)
                if (now() >= until || (next_signal(until) != SIGCHLD && now() >= until)) {
                        each_child(name_process);
                        return true;
                }
        return false;
}

static int keep(char **command, pid_t outer, pid_t group, const sigset_t *before) {
        int status, ended_by;
        bool good;
        pid_t self = getpid(), test;

        if (setpgid(0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return fails("the keeper");
        if (!end_with(outer, SIGTERM))
                (void) raise(SIGTERM);
        test = fork();
        if (test < 0)
                return fails("fork");
        if (test == 0) {
                if (!end_with(self, SIGKILL))
                        _exit(EXIT_FAILURE);
                be_test(command, group, before);
        }
        status = wait_for(test, &ended_by);
        good = ended_by || !left_processes();
        good = leave(!ended_by) && good;
        if (!good && WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77))
                return EXIT_FAILURE;
        end_as(status);
        return EXIT_FAILURE;
}

static int wait_for_keeper(pid_t keeper) {
        int status = 0, signal;

        for (;;) {
                pid_t pid = waitpid(keeper, &status, WNOHANG);

                if (pid != 0)
                        return status;
                signal = next_signal(now() + GRACE);
                if (signal > 0 && signal != SIGCHLD)
                        (void) kill(keeper, signal);
        }
}

/* The new folder. */
static bool make_place(void) {
        const char *parent = getenv("TMPDIR");
        struct statvfs fs;

        if (!parent || parent[0] != '/')
                parent = "/tmp";
        if (statvfs(parent, &fs) == 0 && fs.f_bavail < ((unsigned long) ROOM_MIB << 20) / fs.f_frsize) {
                say("%s has no room for %d MiB", parent, ROOM_MIB);
                return false;
        }
        (void) snprintf(place, sizeof place, "%s/t.XXXXXX", parent);
        /* Programs that the test runs as another user pass through. */
        if (!mkdtemp(place) || chmod(place, 0711) < 0) {
                say("a new folder in %s: %s", parent, strerror(errno));
                return false;
        }
        return true;
}

int main(int argc, char **argv) {
        pid_t caller = getppid(), outer = getpid(), keeper;
        sigset_t before;
        int status;

        if (argc < 2) {
                say("usage: own-place PROGRAM ARGUMENT...");
                return 2;
        }
        if (!make_place())
                return EXIT_FAILURE;
        if (!set_environment())
                return fails(place);
        (void) sigemptyset(&signals);
        for (size_t i = 0; i < 5; i++)
                (void) sigaddset(&signals, (const int[]){SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM}[i]);
        (void) sigprocmask(SIG_BLOCK, &signals, &before);
        (void) signal(SIGCHLD, SIG_DFL);
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return fails("prctl");
        if (!end_with(caller, SIGTERM))
                (void) raise(SIGTERM);
        keeper = fork();
        if (keeper < 0)
                return fails("fork");
        if (keeper == 0)
                _exit(keep(argv + 1, outer, getpgrp(), &before));
        status = wait_for_keeper(keeper);
        (void) leave(false);
        end_as(status);
}
