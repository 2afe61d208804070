/* SPDX-License-Identifier: Apache-2.0 */
#include "node/isolation/install.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mounts.h"
#include "scratch.h"
#include "test.h"

static char directory[64], path[96];
static int held = -1;

static void begin(void) {
        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-install-XXXXXX");
        scratch_make(directory);
        (void) snprintf(path, sizeof path, "%s/lib.so", directory);
}

static void install(const char *text) {
        _cleanup_buf_ Buf buf = BUF_NULL;
        Fault fault = FAULT_NULL;

        buf_append_str(&buf, str_from(text));
        if (held >= 0)
                ASSERT_OK(close(TAKE_FD(held)));
        ASSERT_OK(install_write(path, &buf, &held, &fault));
}

static struct stat stat_of(void) {
        struct stat st;

        ASSERT_OK(stat(path, &st));
        return st;
}

/* Containers run as other users, and an interrupted install may have left it for root alone. */
static void installed_for_all_users(void) {
        struct stat first;
        mode_t before = umask(0077);

        begin();
        install("one");
        first = stat_of();
        ASSERT_INT(first.st_mode & 07777, 0755);
        ASSERT_OK(chmod(path, 0600));
        install("one");
        ASSERT_INT(stat_of().st_mode & 07777, 0755);
        ASSERT_INT(stat_of().st_ino, first.st_ino);
        install("two");
        ASSERT_INT(stat_of().st_mode & 07777, 0755);
        ASSERT_TRUE(stat_of().st_ino != first.st_ino);
        (void) umask(before);
        scratch_remove(directory);
}

static void loadable_file_passes(void) {
        Fault fault = FAULT_NULL;

        begin();
        install("text");
        ASSERT_OK(install_check(path, held, &fault));
        scratch_remove(directory);
}

static void noexec(void) {
        Fault fault = FAULT_NULL;

        if (!mounts_enter() || mount("x", directory, "tmpfs", MS_NOEXEC, NULL) < 0)
                _exit(77);
        install("text");
        ASSERT_INT(install_check(path, held, &fault), -EPERM);
        ASSERT_CONTAINS(fault.text, "noexec");
        _exit(0);
}

static void unloadable_file_is_refused(void) {
        int status = 0;
        pid_t pid;

        begin();
        pid = fork();
        if (pid == 0)
                noexec();
        ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
                (void) printf("no namespaces here: not tried\n");
        else
                ASSERT_INT(status, 0);
        scratch_remove(directory);
}

static bool may_lease(const char *file) {
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        bool may;

        ASSERT_TRUE(fd >= 0);
        may = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
        ASSERT_TRUE(may || errno == EAGAIN);
        ASSERT_OK(close(fd));
        return may;
}

/* This process holds the lease, so an open() that waits here would wait until it is broken. */
static void leased_file_is_replaced(void) {
        char mounted[128];
        int fd;

        begin();
        install("one");
        ASSERT_TRUE(!may_lease(path));
        ASSERT_OK(close(TAKE_FD(held)));
        (void) snprintf(mounted, sizeof mounted, "%s.mounted", path);
        ASSERT_OK(link(path, mounted));
        (void) signal(SIGIO, SIG_IGN);
        fd = open(mounted, O_RDONLY | O_CLOEXEC);
        ASSERT_OK(fcntl(fd, F_SETLEASE, F_WRLCK));
        install("one");
        ASSERT_INT(fcntl(fd, F_GETLEASE), F_RDLCK); /* still leased: install did not wait for it */
        ASSERT_TRUE(!may_lease(path));
        ASSERT_OK(close(fd));
        while (may_lease(mounted)) /* until the child that waits has opened it */
                (void) usleep(1000);
        scratch_remove(directory);
}

int main(void) {
        return TEST_MAIN(TEST(leased_file_is_replaced), TEST(installed_for_all_users),
                         TEST(loadable_file_passes), TEST(unloadable_file_is_refused));
}
