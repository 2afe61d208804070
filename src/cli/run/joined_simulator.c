/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/joined_simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/process_stat.h"
#include "base/str.h"

enum { TEXT = 8192, TRIES = 16 };

/* Returns when the process started; 0: there is no such process, or it has ended and was not waited
 * for. */
static uint64_t start_of(long pid) {
        uint64_t start = 0;

        if (process_stat_first_thread_has_ended("/proc", (uint32_t) pid) ||
            !process_stat_start_time("/proc", (uint32_t) pid, &start))
                return 0;
        return start;
}

/* The `aliquot run` process that started the simulator, as its file records it. The file has a line
 * "PID START DEVICES", with START from start_of(), and a line with the cards. */
typedef struct Starter {
        long pid;
        char devices[512];
} Starter;

static bool read_starter(int fd, const char *cards, Starter *ret) {
        uint64_t start;
        char text[TEXT];
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        int at = 0;

        text[n > 0 ? n : 0] = '\0';
        if (sscanf(text, "%ld %" SCNu64 " %511s\n%n", &ret->pid, &start, ret->devices, &at) != 3 || at == 0)
                return false;
        text[strcspn(text + at, "\n") + (size_t) at] = '\0';
        return strcmp(text + at, cards) == 0 && start > 0 && start_of(ret->pid) == start;
}

static int enter_one(long pid, const char *name, int type) {
        _cleanup_close_ int fd = -1;
        char path[64];

        (void) snprintf(path, sizeof path, "/proc/%ld/ns/%s", pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 || setns(fd, type) < 0 ? -errno : 0;
}

/* Enters the starter's namespaces. Without root, simulator_enter() made the mount in a user
 * namespace. */
static int enter_process(long pid) {
        char here[PATH_MAX];
        int r = getcwd(here, sizeof here) ? 0 : -errno;

        if (r == 0 && geteuid() != 0)
                r = enter_one(pid, "user", CLONE_NEWUSER);
        if (r == 0)
                r = enter_one(pid, "mnt", CLONE_NEWNS);
        return r == 0 && chdir(here) < 0 ? -errno : r;
}

static int not_shared(const JoinedSimulator *j, const char *why) {
        message_write("aliquot run: shares its simulated cards with no other run: %s %s", j->path, why);
        return 0;
}

/* Says why where it returns -1. */
static int open_file(const JoinedSimulator *j) {
        int fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        const char *why = "is no file";
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                why = strerror(errno);
        else if (S_ISREG(st.st_mode) && st.st_uid != geteuid())
                why = "is another user's";
        else if (S_ISREG(st.st_mode))
                return fd;
        if (fd >= 0)
                (void) close(fd);
        return not_shared(j, why) - 1;
}

static int lock_file(int fd, int how) {
        int r;

        do
                r = flock(fd, how) < 0 ? -errno : 0;
        while (r == -EINTR);
        return r;
}

/* Whether the file was removed between open() and flock(). */
static bool is_removed(int fd) {
        struct stat st;

        return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

int joined_simulator_find(JoinedSimulator *j, const Slicedir *d, const char *cards,
                          char ret_devices[static LOCATE_PATH]) {
        *j = JOINED_SIMULATOR_NULL;
        (void) snprintf(j->path, sizeof j->path, "%s/.sim-%016llx", d->path,
                        (unsigned long long) str_hash64(str_from(cards), 0));
        if (strlen(cards) >= TEXT / 2)
                return not_shared(j, "takes no list of cards that long");
        for (int i = 0; i < TRIES; i++) {
                _cleanup_close_ int fd = open_file(j);
                Starter starter;
                int r;

                if (fd < 0)
                        return 0;
                r = lock_file(fd, LOCK_SH); /* waits for a run that is starting one */
                if (r < 0)
                        return not_shared(j, strerror(-r));
                if (!is_removed(fd) && read_starter(fd, cards, &starter)) {
                        r = enter_process(starter.pid);
                        if (r < 0) {
                                message_write("aliquot run: cannot join the simulated cards of process %ld, "
                                              "and has its own: %s",
                                              starter.pid, strerror(-r));
                                return 0;
                        }
                        (void) snprintf(ret_devices, LOCATE_PATH, "%s", starter.devices);
                        j->fd = TAKE_FD(fd);
                        return 1;
                }
                if (lock_file(fd, LOCK_EX | LOCK_NB) == 0 && !is_removed(fd)) {
                        j->fd = TAKE_FD(fd);
                        j->own = true;
                        return 0;
                }
        }
        /* for example, when the file is from a run in another PID namespace */
        return not_shared(j, "is of a run that cannot be joined");
}

void joined_simulator_publish(JoinedSimulator *j, const char *cards, const char *devices) {
        if (j->fd < 0)
                return;
        if (ftruncate(j->fd, 0) < 0 || dprintf(j->fd, "%ld %" PRIu64 " %s\n%s\n", (long) getpid(),
                                               start_of(getpid()), devices, cards) < 0)
                return; /* no other run joins */
        (void) lock_file(j->fd, LOCK_SH);
}

/* May interrupt nothing but flock(). The default action follows, and the reaper kills the
 * others. */
static void on_end(int signal_number) {
        static const char text[] = "aliquot run: ends the other commands on these simulated cards\n";
        struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

        /* neither full nor without a reader */
        if (poll(&fd, 1, 0) > 0 && fd.revents == POLLOUT)
                (void) !write(STDERR_FILENO, text, sizeof text - 1);
        (void) signal(signal_number, SIG_DFL);
        (void) raise(signal_number);
}

/* Waits for the runs that have joined. A signal that ends this run ends theirs, and that is
 * said. */
static void wait_for_others(int fd) {
        static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        sigset_t all, old;

        (void) sigfillset(&all);
        (void) sigprocmask(SIG_BLOCK, &all, &old);
        message_write("aliquot run: waits for other commands on these simulated cards; Ctrl-C ends them");
        for (size_t i = 0; i < ELEMENTSOF(ending); i++)
                if (signal(ending[i], on_end) == SIG_IGN)
                        (void) signal(ending[i], SIG_IGN);
        (void) sigprocmask(SIG_SETMASK, &old, NULL);
        (void) lock_file(fd, LOCK_EX);
        for (size_t i = 0; i < ELEMENTSOF(ending); i++)
                if (signal(ending[i], SIG_DFL) == SIG_IGN)
                        (void) signal(ending[i], SIG_IGN);
}

void joined_simulator_leave(JoinedSimulator *j) {
        /* The lock of a run that has joined ends with its process. When the last lock ends, the
         * first run kills what is left in its namespaces. */
        if (j->fd < 0 || !j->own)
                return;
        if (lock_file(j->fd, LOCK_EX | LOCK_NB) < 0)
                wait_for_others(j->fd);
        (void) unlink(j->path);
        (void) close(j->fd);
        *j = JOINED_SIMULATOR_NULL;
}
