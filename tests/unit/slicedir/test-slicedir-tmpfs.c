/* SPDX-License-Identifier: Apache-2.0 */

/* Each test in namespaces of its own, with a tmpfs for the host's /run. */

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

static char home[64], run[128], slices[160], proc[128];
static bool own_tmpfs; /* as slicedir_tmpfs_mount() last returned */

/* A proc directory whose pid 1 sees what this process sees; with `blind`, something else. */
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
        (void) snprintf(slices, sizeof slices, "%s/aliquot/slices", run);
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

        ASSERT_OK(statfs(slices, &st));
        return (uint64_t) st.f_blocks * (uint64_t) st.f_bsize;
}

/* Is the mount that was tried gone? */
static bool is_bare(void) {
        char trial[192];

        (void) snprintf(trial, sizeof trial, "%s/.trial", slices);
        return access(trial, F_OK) < 0 && errno == ENOENT;
}

static void a_tmpfs_is_mounted(void) {
        Fault fault = FAULT_NULL;
        struct statfs st;
        struct stat before, after;

        make_proc(false);
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_INT(room(), 2 << 20);
        ASSERT_OK(statfs(slices, &st));
        ASSERT_INT(st.f_files, 512);
        ASSERT_TRUE(own_tmpfs && is_bare());
        ASSERT_OK(stat(slices, &before));
        ASSERT_INT(before.st_mode & 07777, 0755);
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs,
                                       &fault)); /* an agent that starts again finds the mount */
        ASSERT_OK(stat(slices, &after));
        ASSERT_INT(before.st_dev, after.st_dev);
}

static void a_directory_in_use_is_left_alone(void) {
        SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        Slicedir b;

        make_proc(false);
        ASSERT_OK(slicedir_open(&b, slices, true, &fault));
        ASSERT_OK(slicedir_update(&b, "old", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "1 slice is on it already"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(own_tmpfs && is_bare()); /* new slices can have a tmpfs all the same */
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "new", SLICEDIR_AGENT "d/q/c", &spec, 1, &fault));
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "1 slice is on it already"));
        slicedir_remove(&b, "old");
        /* All slices have a tmpfs each. */
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_TRUE(own_tmpfs);
        ASSERT_INT(room(), 8 << 20);
        slicedir_remove(&b, "new");
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_INT(room(), 2 << 20);
        slicedir_done(&b);
}

/* A root that is not readable, as for a process without CAP_SYS_PTRACE. Root can read any
 * directory, but not a loop of links. */
static void the_hosts_view_is_not_accessible(void) {
        Fault fault = FAULT_NULL;
        char path[256];

        make_proc(false);
        (void) snprintf(path, sizeof path, "%s/1/root", proc);
        ASSERT_OK(unlink(path));
        ASSERT_OK(symlink("root", path));
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "cannot look"));
        ASSERT_TRUE(strstr(fault.text, strerror(ELOOP)));
        ASSERT_FALSE(strstr(fault.text, "would not see"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!own_tmpfs && is_bare());
}

static void the_host_does_not_see_the_mount(void) {
        Fault fault = FAULT_NULL;

        make_proc(true);
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "the host (pid 1) would not see"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!own_tmpfs && is_bare());
}

/* A directory that is a mount already, and on which no slice can be mounted. */
static void slices_cannot_be_mounted(void) {
        Fault fault = FAULT_NULL;
        char above[192];

        make_proc(true);
        (void) snprintf(above, sizeof above, "%s/aliquot", run);
        ASSERT_OK(mkdir(above, 0755));
        ASSERT_OK(mkdir(slices, 0755));
        ASSERT_OK(mount("x", slices, "tmpfs", 0, "size=1m,mode=755"));
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "have no file systems of their own"));
        ASSERT_TRUE(strstr(fault.text, "the host (pid 1) would not see"));
        ASSERT_TRUE(!own_tmpfs && is_bare());
        ASSERT_INT(room(), 1 << 20);
}

/* ---- in the host's namespace ---- */

/* A process that plays the host: its mounts are shared with this process. */
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

        (void) snprintf(ours, sizeof ours, "%s/%s/0/counters", slices, slice);
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

        (void) snprintf(path, sizeof path, "%s/%s", slices, slice);
        return access(path, F_OK) == 0;
}

/* A container that has the host's root mounted besides, with all mounts that it had at that
 * time. */
static void a_slice_that_is_mounted_twice_is_removed_later(void) {
        const SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        struct stat st, above;
        char view[128], path[256];
        Slicedir b;

        make_proc(false);
        (void) snprintf(view, sizeof view, "%s/view", home);
        ASSERT_OK(mkdir(view, 0755));
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_OK(slicedir_open(&b, slices, true, &fault));
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(slicedir_update(&b, "two", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_OK(mount(run, view, NULL, MS_BIND | MS_REC, NULL));
        ASSERT_OK(mount(NULL, view, NULL, MS_PRIVATE | MS_REC, NULL));
        ASSERT_OK(slicedir_sweep(&b, keep_none, NULL));
        ASSERT_TRUE(is_there("one") && is_there("two")); /* both are empty */
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        (void) snprintf(path, sizeof path, "%s/one", slices);
        ASSERT_OK(stat(path, &st));
        ASSERT_OK(fstat(b.fd, &above));
        ASSERT_TRUE(st.st_dev != above.st_dev);
        ASSERT_OK(slicedir_sweep(&b, keep_one, NULL));
        ASSERT_TRUE(is_there("one") && is_there("two"));
        ASSERT_OK(umount2(view, MNT_DETACH)); /* the agent's next container starts */
        ASSERT_OK(slicedir_sweep(&b, keep_one, NULL));
        ASSERT_TRUE(is_there("one") && !is_there("two"));
        slicedir_done(&b);
}

static int count_them(void *userdata, const SlicedirEntry *slice) {
        unsigned *n = userdata;

        ++*n;
        return 0;
}

/* `aliquot run` in a mount namespace that has the directory, but not the later mounts on it. */
static void invisible_slices_are_left_alone(void) {
        const SliceSpec spec = {.limit = 1 << 20, .card_bytes = 1 << 24, .uuid = "GPU-a", .container = "x"};
        Fault fault = FAULT_NULL;
        int go[2], status;
        Slicedir b;
        pid_t pid;
        char byte;

        make_proc(false);
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_OK(pipe(go));
        pid = fork();
        if (pid == 0) {
                unsigned n = 0;

                if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
                        _exit(1);
                if (write(go[1], "x", 1) != 1 || kill(getpid(), SIGSTOP) < 0)
                        _exit(1);
                if (slicedir_open(&b, slices, true, &fault) < 0 || slicedir_lock(&b, &fault) < 0)
                        _exit(1);
                _exit(slicedir_each(&b, count_them, &n) == 0 && n == 0 && is_there("one") ? 0 : 1);
        }
        ASSERT_INT(read(go[0], &byte, 1), 1);
        ASSERT_INT(waitpid(pid, &status, WUNTRACED), pid);
        ASSERT_OK(slicedir_open(&b, slices, true, &fault));
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

        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_TRUE(own_tmpfs);
        ASSERT_OK(slicedir_open(&b, slices, true, &fault));
        b.proc = proc;
        ASSERT_OK(slicedir_update(&b, "one", SLICEDIR_AGENT "d/p/c", &spec, 1, &fault));
        ASSERT_TRUE(host_sees("one"));
        (void) snprintf(there, sizeof there, "%s/1/root%s/one", proc, slices);
        ASSERT_OK(stat(there, &st));
        ASSERT_OK(fstat(b.fd, &above));
        ASSERT_TRUE(st.st_dev != above.st_dev);
        slicedir_done(&b);
        /* The agent starts again. */
        ASSERT_OK(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault));
        ASSERT_TRUE(own_tmpfs && host_sees("one"));
        ASSERT_OK(slicedir_open(&b, slices, true, &fault));
        ASSERT_OK(slicedir_sweep(&b, keep_none, NULL));
        ASSERT_TRUE(stat(there, &st) < 0 && errno == ENOENT);
        slicedir_done(&b);
        ASSERT_OK(kill(host, SIGKILL));
        ASSERT_INT(waitpid(host, NULL, 0), host);
}

static void on_a_mount_that_is_not_shared(void) {
        Fault fault = FAULT_NULL;

        make_proc(false);
        ASSERT_INT(slicedir_tmpfs_mount(slices, 2, proc, &own_tmpfs, &fault), SLICEDIR_TMPFS_E_MISSING);
        ASSERT_TRUE(strstr(fault.text, "mountPropagation: Bidirectional"));
        ASSERT_INT(room(), 8 << 20);
        ASSERT_TRUE(!own_tmpfs && is_bare());
}

static void shared(void) {
        ASSERT_INT(in_namespaces(a_tmpfs_is_mounted, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(a_directory_in_use_is_left_alone, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(the_host_does_not_see_the_mount, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(the_hosts_view_is_not_accessible, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(slices_cannot_be_mounted, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(slices_are_where_the_host_sees_them, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(a_slice_that_is_mounted_twice_is_removed_later, MS_SHARED), 0);
        ASSERT_INT(in_namespaces(invisible_slices_are_left_alone, MS_SHARED), 0);
}

static void not_shared(void) {
        ASSERT_INT(in_namespaces(on_a_mount_that_is_not_shared, MS_PRIVATE), 0);
}

static void a_path_that_cannot_be_made(void) {
        Fault fault = FAULT_NULL;

        ASSERT_INT(slicedir_tmpfs_mount("/dev/null/x", 2, "/proc", &own_tmpfs, &fault), -ENOTDIR);
}

int main(void) {
        return TEST_MAIN(TEST(shared), TEST(not_shared), TEST(a_path_that_cannot_be_made));
}
