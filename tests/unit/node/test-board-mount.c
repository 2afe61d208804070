/* SPDX-License-Identifier: Apache-2.0 */

/* Each in namespaces of its own, with a tmpfs for the host's /run. */

#include "node/board_mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mounts.h"
#include "scratch.h"
#include "slice/board.h"
#include "test.h"

static char home[64], run[128], board[160], proc[128];

/* A proc whose pid 1 sees what we see; with `blind`, something else. */
static void make_proc(bool blind) {
        char path[256];

        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        ASSERT_OK(mkdir(proc, 0755));
        (void) snprintf(path, sizeof path, "%s/1", proc);
        ASSERT_OK(mkdir(path, 0755));
        (void) snprintf(path, sizeof path, "%s/1/root", proc);
        ASSERT_OK(blind ? mkdir(path, 0755) : symlink("/", path));
}

static int in_namespaces(void (*body)(void), unsigned long propagation) {
        int status = 0;
        pid_t pid;

        (void) snprintf(home, sizeof home, "/tmp/aliquot-mount-XXXXXX");
        scratch_make(home);
        (void) snprintf(run, sizeof run, "%s/run", home);
        (void) snprintf(board, sizeof board, "%s/aliquot/slices", run);
        ASSERT_OK(mkdir(run, 0755));
        pid = fork();
        if (pid == 0) {
                if (!mounts_enter() || mount("x", run, "tmpfs", 0, "size=8m") < 0 ||
                    mount(NULL, run, NULL, propagation, NULL) < 0)
                        _exit(77);
                body();
                _exit(0);
        }
        ASSERT_TRUE(waitpid(pid, &status, 0) == pid);
        scratch_remove(home);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
                (void) printf("no namespaces here: not tried\n");
                return 0;
        }
        return status;
}

static uint64_t room(void) {
        struct statfs st;

        ASSERT_OK(statfs(board, &st));
        return (uint64_t) st.f_blocks * (uint64_t) st.f_bsize;
}

static void it_is_mounted(void) {
        Fault fault = FAULT_NULL;
        struct statfs st;
        struct stat before, after;

        make_proc(false);
        ASSERT_OK(board_mount(board, 2, proc, &fault));
        ASSERT_INT(room(), 2 << 20);
        ASSERT_OK(statfs(board, &st));
        ASSERT_INT(st.f_files, 512);
        ASSERT_OK(stat(board, &before));
        ASSERT_INT(before.st_mode & 07777, 0755);
        ASSERT_OK(board_mount(board, 2, proc, &fault)); /* an agent that starts again finds it */
        ASSERT_OK(stat(board, &after));
        ASSERT_INT(before.st_dev, after.st_dev);
}

static void one_in_use_is_left_alone(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        Board b;

        make_proc(false);
        ASSERT_OK(board_open(&b, board, true, &fault));
        ASSERT_OK(board_renew(&b, "old", BOARD_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_INT(board_mount(board, 2, proc, &fault), BOARD_MOUNT_E_LEFT);
        ASSERT_TRUE(strstr(fault.text, "1 slice is on it already"));
        ASSERT_INT(room(), 8 << 20);
        board_drop(&b, "old");
        ASSERT_OK(board_mount(board, 2, proc, &fault));
        ASSERT_INT(room(), 2 << 20);
        board_done(&b);
}

static void where_the_host_would_not_see_it(void) {
        Fault fault = FAULT_NULL;

        make_proc(true);
        ASSERT_INT(board_mount(board, 2, proc, &fault), BOARD_MOUNT_E_LEFT);
        ASSERT_TRUE(strstr(fault.text, "the host (pid 1) would not see"));
        ASSERT_INT(room(), 8 << 20);
}

static void on_a_mount_that_is_not_shared(void) {
        Fault fault = FAULT_NULL;

        make_proc(false);
        ASSERT_INT(board_mount(board, 2, proc, &fault), BOARD_MOUNT_E_LEFT);
        ASSERT_TRUE(strstr(fault.text, "mountPropagation: Bidirectional"));
        ASSERT_INT(room(), 8 << 20);
}

static void shared(void) {
        ASSERT_INT(in_namespaces(it_is_mounted, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(one_in_use_is_left_alone, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(where_the_host_would_not_see_it, MS_SHARED), 0);
}

static void not_shared(void) {
        ASSERT_INT(in_namespaces(on_a_mount_that_is_not_shared, MS_PRIVATE), 0);
}

static void what_cannot_be_made(void) {
        Fault fault = FAULT_NULL;

        ASSERT_INT(board_mount("/dev/null/x", 2, "/proc", &fault), -ENOTDIR);
}

int main(void) {
        return TEST_MAIN(TEST(shared), TEST(not_shared), TEST(what_cannot_be_made));
}
