/* SPDX-License-Identifier: Apache-2.0 */
#include "slicedir/file_lease.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_FD = STDERR_FILENO + 1, MOST = 4096 };

/* Keeps `file` as FILE_FD and closes all further descriptors, because they may hold locks. */
static void keep_only(int file) {
        if (file != FILE_FD && dup2(file, FILE_FD) < 0)
                _exit(1);
#ifdef SYS_close_range
        if (syscall(SYS_close_range, FILE_FD + 1, ~0U, 0) == 0)
                return;
#endif
        for (int fd = FILE_FD + 1; fd < MOST; fd++) /* Linux before 5.9 has no close_range() */
                (void) close(fd);
}

static void wait_and_keep(int file, int flags) {
        char path[32];

        (void) prctl(PR_SET_NAME, "aliquot-waits");
        keep_only(file);
        (void) snprintf(path, sizeof path, "/proc/self/fd/%d", FILE_FD);
        while (open(path, flags | O_CLOEXEC | O_NOCTTY) < 0)
                if (errno != EINTR)
                        _exit(1);
        for (;;)
                (void) pause();
}

pid_t file_lease_wait(int file, int flags) {
        pid_t parent = getpid(), child = fork();

        if (child < 0)
                return -errno;
        if (child > 0)
                return child;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        wait_and_keep(file, flags);
        _exit(1);
}

void file_lease_wait_end(pid_t pid) {
        (void) kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
