/* SPDX-License-Identifier: Apache-2.0 */

/* Each in namespaces of its own, with a tmpfs for the host's /run. */

#include "slicedir/slicedir_tmpfs.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mounts.h"
#include "scratch.h"
#include "slicedir/slicedir.h"
#include "test.h"

static char home[64], run[128], board[160], proc[128];
static bool apart; /* as slicedir_tmpfs_mount() last said */

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

/* What was tried there is gone. */
static bool is_bare(void) {
        char trial[192];

        (void) snprintf(trial, sizeof trial, "%s/.trial", board);
        return access(trial, F_OK) < 0 && errno == ENOENT;
}

static void it_is_mounted(void) {
        Fault fault = FAULT_NULL;
        struct statfs st;
        struct stat before, after;

        make_proc(false);
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault));
        ASSERT_INT(room(), 2 << 20);
        ASSERT_OK(statfs(board, &st));
        ASSERT_INT(st.f_files, 512);
        ASSERT_TRUE(apart && is_bare());
        ASSERT_OK(stat(board, &before));
        ASSERT_INT(before.st_mode & 07777, 0755);
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart,
                                       &fault)); /* an agent that starts again finds it */
        ASSERT_OK(stat(board, &after));
        ASSERT_INT(before.st_dev, after.st_dev);
}

static void one_in_use_is_left_alone(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        Slicedir b;

        make_proc(false);
        ASSERT_OK(slicedir_open(&b, board, true, &fault));
        ASSERT_OK(slicedir_update(&b, "old", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "1 slice is on it already"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(apart && is_bare()); /* new ones can be mounted all the same */
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "new", SLICEDIR_AGENT "d/q/c", &spec, 1, &fault));
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "1 slice is on it already"));
        slicedir_remove(&b, "old");
        ASSERT_OK(
                slicedir_tmpfs_mount(board, 2, proc, &apart, &fault)); /* nothing to be afraid of any more */
        ASSERT_TRUE(apart);
        ASSERT_INT(room(), 8 << 20);
        slicedir_remove(&b, "new");
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault));
        ASSERT_INT(room(), 2 << 20);
        slicedir_done(&b);
}

/* A root that cannot be read, as for a process without CAP_SYS_PTRACE; root can read any, but not a
 * loop of links. */
static void where_it_cannot_be_looked_at(void) {
        Fault fault = FAULT_NULL;
        char path[256];

        make_proc(false);
        (void) snprintf(path, sizeof path, "%s/1/root", proc);
        ASSERT_OK(unlink(path));
        ASSERT_OK(symlink("root", path));
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "cannot look"));
        ASSERT_TRUE(strstr(fault.text, strerror(ELOOP)));
        ASSERT_FALSE(strstr(fault.text, "would not see"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!apart && is_bare());
}

static void where_the_host_would_not_see_it(void) {
        Fault fault = FAULT_NULL;

        make_proc(true);
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "the host (pid 1) would not see"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!apart && is_bare());
}

/* Mounted by somebody else, and slices could not be mounted on it. */
static void a_board_where_slices_cannot_be_mounted(void) {
        Fault fault = FAULT_NULL;
        char above[192];

        make_proc(true);
        (void) snprintf(above, sizeof above, "%s/aliquot", run);
        ASSERT_OK(mkdir(above, 0755));
        ASSERT_OK(mkdir(board, 0755));
        ASSERT_OK(mount("x", board, "tmpfs", 0, "size=1m,mode=755"));
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "have no file systems of their own"));
        ASSERT_TRUE(strstr(fault.text, "the host (pid 1) would not see"));
        ASSERT_TRUE(!apart && is_bare());
        ASSERT_INT(room(), 1 << 20);
}

/* ---- in the host's namespace ---- */

/* A process that is the host: its mounts are shared with ours. */
static pid_t start_host(void) {
        char target[64], path[256];
        int ready[2];
        pid_t pid;
        char byte;

        ASSERT_OK(pipe(ready));
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (unshare(CLONE_NEWNS) == 0 && write(ready[1], "x", 1) == 1)
                        (void) pause();
                _exit(1);
        }
        ASSERT_INT(read(ready[0], &byte, 1), 1);
        make_proc(false);
        (void) snprintf(target, sizeof target, "/proc/%d/root", (int) pid);
        (void) snprintf(path, sizeof path, "%s/1/root", proc);
        ASSERT_OK(unlink(path));
        ASSERT_OK(symlink(target, path));
        return pid;
}

static bool host_sees(const char *slice) {
        char ours[256], theirs[512];
        struct stat here, there;

        (void) snprintf(ours, sizeof ours, "%s/%s/0/counters", board, slice);
        (void) snprintf(theirs, sizeof theirs, "%s/1/root%s", proc, ours);
        if (stat(ours, &here) < 0 || stat(theirs, &there) < 0)
                return false;
        return here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static bool keep_none(void *userdata, const char *id) {
        return false;
}

static bool keep_one(void *userdata, const char *id) {
        return strcmp(id, "one") == 0;
}

static bool is_there(const char *slice) {
        char path[256];

        (void) snprintf(path, sizeof path, "%s/%s", board, slice);
        return access(path, F_OK) == 0;
}

/* As a container that has the host's root mounted besides, with all that was there when it
 * began. */
static void what_is_mounted_twice_goes_later(void) {
        const SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        struct stat st, above;
        char view[128], path[256];
        Slicedir b;

        make_proc(false);
        (void) snprintf(view, sizeof view, "%s/view", home);
        ASSERT_OK(mkdir(view, 0755));
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault));
        ASSERT_OK(slicedir_open(&b, board, true, &fault));
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(slicedir_update(&b, "two", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(mount(run, view, NULL, MS_BIND | MS_REC, NULL));
        ASSERT_OK(mount(NULL, view, NULL, MS_PRIVATE | MS_REC, NULL));
        ASSERT_OK(slicedir_sweep(&b, keep_none, NULL));
        ASSERT_TRUE(is_there("one") && is_there("two")); /* and empty */
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        (void) snprintf(path, sizeof path, "%s/one", board);
        ASSERT_OK(stat(path, &st));
        ASSERT_OK(fstat(b.fd, &above));
        ASSERT_TRUE(st.st_dev != above.st_dev);
        ASSERT_OK(slicedir_sweep(&b, keep_one, NULL));
        ASSERT_TRUE(is_there("one") && is_there("two"));
        ASSERT_OK(umount2(view, MNT_DETACH)); /* the agent's next container */
        ASSERT_OK(slicedir_sweep(&b, keep_one, NULL));
        ASSERT_TRUE(is_there("one") && !is_there("two"));
        slicedir_done(&b);
}

static int count_them(void *userdata, const SlicedirEntry *slice) {
        unsigned *n = userdata;

        ++*n;
        return 0;
}

/* `aliquot run` in a mount namespace that has the board, and not what was mounted on it since. */
static void who_does_not_see_them_leaves_them_alone(void) {
        const SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        int go[2], status;
        Slicedir b;
        pid_t pid;
        char byte;

        make_proc(false);
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault));
        ASSERT_OK(pipe(go));
        pid = fork();
        if (pid == 0) {
                unsigned n = 0;

                if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
                        _exit(1);
                if (write(go[1], "x", 1) != 1 || kill(getpid(), SIGSTOP) < 0)
                        _exit(1);
                if (slicedir_open(&b, board, true, &fault) < 0 || slicedir_lock(&b, &fault) < 0)
                        _exit(1);
                _exit(slicedir_each(&b, count_them, &n) == 0 && n == 0 && is_there("one") ? 0 : 1);
        }
        ASSERT_INT(read(go[0], &byte, 1), 1);
        ASSERT_INT(waitpid(pid, &status, WUNTRACED), pid);
        ASSERT_OK(slicedir_open(&b, board, true, &fault));
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(kill(pid, SIGCONT));
        ASSERT_INT(waitpid(pid, &status, 0), pid);
        ASSERT_INT(status, 0);
        ASSERT_TRUE(is_there("one/0/limits"));
        slicedir_done(&b);
}

static void slices_are_where_the_host_sees_them(void) {
        const SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        pid_t host = start_host();
        Fault fault = FAULT_NULL;
        struct stat st, above;
        char there[384];
        Slicedir b;

        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault));
        ASSERT_TRUE(apart);
        ASSERT_OK(slicedir_open(&b, board, true, &fault));
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_TRUE(host_sees("one"));
        (void) snprintf(there, sizeof there, "%s/1/root%s/one", proc, board);
        ASSERT_OK(stat(there, &st));
        ASSERT_OK(fstat(b.fd, &above));
        ASSERT_TRUE(st.st_dev != above.st_dev);
        slicedir_done(&b);
        ASSERT_OK(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault)); /* an agent that starts again */
        ASSERT_TRUE(apart && host_sees("one"));
        ASSERT_OK(slicedir_open(&b, board, true, &fault));
        ASSERT_OK(slicedir_sweep(&b, keep_none, NULL));
        ASSERT_TRUE(stat(there, &st) < 0 && errno == ENOENT);
        slicedir_done(&b);
        ASSERT_OK(kill(host, SIGKILL));
        ASSERT_INT(waitpid(host, NULL, 0), host);
}

static void on_a_mount_that_is_not_shared(void) {
        Fault fault = FAULT_NULL;

        make_proc(false);
        ASSERT_INT(slicedir_tmpfs_mount(board, 2, proc, &apart, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "mountPropagation: Bidirectional"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!apart && is_bare());
}

static void shared(void) {
        ASSERT_INT(in_namespaces(it_is_mounted, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(one_in_use_is_left_alone, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(where_the_host_would_not_see_it, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(where_it_cannot_be_looked_at, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(a_board_where_slices_cannot_be_mounted, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(slices_are_where_the_host_sees_them, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(what_is_mounted_twice_goes_later, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(who_does_not_see_them_leaves_them_alone, MS_SHARED), 0);
}

static void not_shared(void) {
        ASSERT_INT(in_namespaces(on_a_mount_that_is_not_shared, MS_PRIVATE), 0);
}

static void what_cannot_be_made(void) {
        Fault fault = FAULT_NULL;

        ASSERT_INT(slicedir_tmpfs_mount("/dev/null/x", 2, "/proc", &apart, &fault), -ENOTDIR);
}

int main(void) {
        return TEST_MAIN(TEST(shared), TEST(not_shared), TEST(what_cannot_be_made));
}
