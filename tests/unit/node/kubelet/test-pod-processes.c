/* SPDX-License-Identifier: Apache-2.0 */

/* On trees of plain files with the names and contents of the kernel's. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "node/kubelet/pod_processes.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>

#define UID      "77a3218c-5bd1-4b52-9d7e-2c86d8f1a001"
#define UID_     "77a3218c_5bd1_4b52_9d7e_2c86d8f1a001"
#define OTHER    "00000000-0000-4000-8000-000000000000"
#define SYSTEMD  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define CGROUPFS "kubepods/besteffort/pod" UID

typedef struct Tree {
        char root[40];
} Tree;

static void tree_begin(Tree *t) {
        (void) snprintf(t->root, sizeof t->root, "/tmp/aliquot-cgroups-XXXXXX");
        ASSERT_TRUE(mkdtemp(t->root) != NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static void tree_end(Tree *t) {
        ASSERT_OK(nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS));
}

static void tree_dir(const Tree *t, const char *path) {
        char full[PATH_MAX];

        (void) snprintf(full, sizeof full, "%s/%s", t->root, path);
        for (char *c = full + strlen(t->root) + 1; *c; c++)
                if (*c == '/') {
                        *c = '\0';
                        ASSERT_TRUE(mkdir(full, 0700) == 0 || errno == EEXIST);
                        *c = '/';
                }
        ASSERT_TRUE(mkdir(full, 0700) == 0 || errno == EEXIST);
}

static void tree_file(const Tree *t, const char *dir, const char *name, const char *content) {
        char full[PATH_MAX];
        int fd;

        if (*dir)
                tree_dir(t, dir);
        (void) snprintf(full, sizeof full, "%s/%s%s%s", t->root, dir, *dir ? "/" : "", name);
        fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(write(fd, content, strlen(content)), strlen(content));
        ASSERT_OK(close(fd));
}

static void tree_link(const Tree *t, const char *name, const char *to) {
        char full[PATH_MAX];

        (void) snprintf(full, sizeof full, "%s/%s", t->root, name);
        ASSERT_OK(symlink(to, full));
}

static void tree_v2(const Tree *t) {
        tree_file(t, "", "cgroup.controllers", "cpu memory pids\n");
}

static PodProcesses ask(const Tree *t, const char *uid) {
        return pod_processes(t->root, str_from(uid));
}

/* ---- version 2 ---- */

static void v2_finds_populated(void) {
        static const char *const places[] = {
                SYSTEMD,
                CGROUPFS,
                "kubepods/pod" UID,
                "kubepods/burstable/pod" UID,
                "kubepods.slice/kubepods-pod" UID_ ".slice",
                "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice",
                "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
                "kubelet-kubepods-burstable-pod" UID_ ".slice",
                "kubelet/kubepods/burstable/pod" UID,
                "system.slice/docker-0123.scope/kubelet.slice/kubelet-kubepods.slice/"
                "kubelet-kubepods-pod" UID_ ".slice",
        };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                char path[PATH_MAX];
                Tree t;

                tree_begin(&t);
                tree_v2(&t);
                tree_file(&t, places[i], "cgroup.events", "populated 1\nfrozen 0\n");
                ASSERT_INT(ask(&t, UID), POD_PROCESSES_SOME);
                ASSERT_INT(ask(&t, OTHER), POD_PROCESSES_NONE);
                ASSERT_OK(pod_processes_path(t.root, str_from(UID), path, sizeof path));
                ASSERT_INT(path[0], '/');
                ASSERT_TEXT(path + 1, places[i]);
                ASSERT_INT(pod_processes_path(t.root, str_from(OTHER), path, sizeof path), -ENOENT);
                ASSERT_INT(pod_processes_path(t.root, str_from(UID), path, 8), -ENAMETOOLONG);
                tree_file(&t, places[i], "cgroup.events", "populated 0\nfrozen 0\n");
                ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
                tree_end(&t);
        }
}

static void v2_broken_events_are_unknown(void) {
        Tree t;

        tree_begin(&t);
        tree_v2(&t);
        tree_file(&t, SYSTEMD, "cgroup.events", "frozen 0\n");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_UNKNOWN);
        tree_end(&t);
}

/* ---- version 1 ---- */

static void v1_reads_the_pids_controller(void) {
        Tree t;

        tree_begin(&t);
        tree_file(&t, "pids/" CGROUPFS, "pids.current", "3\n");
        /* processes of another PID namespace are not listed */
        tree_file(&t, "pids/" CGROUPFS, "cgroup.procs", "");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_SOME);
        tree_file(&t, "pids/" CGROUPFS, "pids.current", "0\n");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
        ASSERT_INT(ask(&t, OTHER), POD_PROCESSES_NONE);
        tree_end(&t);
}

static void v1_walks_other_controllers(void) {
        static const char *const names[] = {"memory", "cpu", "cpu,cpuacct", "systemd", "freezer"};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[PATH_MAX];
                Tree t;

                tree_begin(&t);
                (void) snprintf(path, sizeof path, "%s/%s", names[i], SYSTEMD);
                tree_file(&t, path, "cgroup.procs", "");
                (void) snprintf(path, sizeof path, "%s/%s/cri-containerd-1.scope", names[i], SYSTEMD);
                tree_file(&t, path, "cgroup.procs", "");
                ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
                (void) snprintf(path, sizeof path, "%s/%s/cri-containerd-1.scope/init.scope", names[i],
                                SYSTEMD);
                tree_file(&t, path, "cgroup.procs", "4711\n");
                ASSERT_INT(ask(&t, UID), POD_PROCESSES_SOME);
                tree_end(&t);
        }
}

/* A controller that the kubelet does not use is passed over. */
static void v1_tries_the_next_controller(void) {
        Tree t;

        tree_begin(&t);
        tree_dir(&t, "pids/user.slice");
        tree_file(&t, "memory/" CGROUPFS, "cgroup.procs", "1\n");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_SOME);
        tree_end(&t);
}

/* ---- what is no answer ---- */

static void no_tree_is_unknown(void) {
        Tree t;

        ASSERT_INT(pod_processes("/proc/self/absent/cgroup", STR(UID)), POD_PROCESSES_UNKNOWN);
        tree_begin(&t);
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_UNKNOWN);
        tree_v2(&t);
        tree_dir(&t, "init.scope"); /* as seen by a container with a tree of its own */
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_UNKNOWN);
        tree_dir(&t, "kubepods");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
        tree_end(&t);
}

static void a_malformed_uid_has_no_processes(void) {
        char longest[66];
        Tree t;

        tree_begin(&t);
        tree_v2(&t);
        tree_file(&t, "kubepods/pod", "cgroup.events", "populated 1\n");
        tree_file(&t, "kubepods/poda/b", "cgroup.events", "populated 1\n");
        tree_file(&t, "kubepods/poda_b", "cgroup.events", "populated 1\n");
        ASSERT_INT(ask(&t, ""), POD_PROCESSES_NONE);
        ASSERT_INT(ask(&t, "a/b"), POD_PROCESSES_NONE);
        ASSERT_INT(ask(&t, "a_b"), POD_PROCESSES_NONE);
        ASSERT_INT(ask(&t, "/../../poda_b"), POD_PROCESSES_NONE);
        memset(longest, 'a', sizeof longest);
        tree_end(&t);
        for (size_t len = 64; len <= 65; len++) {
                char path[96];

                tree_begin(&t);
                tree_v2(&t);
                (void) snprintf(path, sizeof path, "kubepods/pod%.*s", (int) len, longest);
                tree_file(&t, path, "cgroup.events", "populated 1\n");
                ASSERT_INT(pod_processes(t.root, (Str){longest, len}),
                           len <= 64 ? POD_PROCESSES_SOME : POD_PROCESSES_NONE);
                tree_end(&t);
        }
}

static void links_are_not_followed(void) {
        Tree t;

        tree_begin(&t);
        tree_v2(&t);
        tree_file(&t, "elsewhere", "cgroup.events", "populated 1\n");
        tree_dir(&t, "kubepods");
        tree_link(&t, "kubepods/pod" UID, "../elsewhere");
        tree_link(&t, "kubepods/burstable", "..");
        tree_link(&t, "loop", ".");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
        tree_end(&t);
}

/* Cgroups that users and services can make do not count. */
static void cgroups_of_users_do_not_count(void) {
        Tree t;

        tree_begin(&t);
        tree_v2(&t);
        tree_dir(&t, "kubepods");
        tree_file(&t, "user.slice/kubepods/pod" UID, "cgroup.events", "populated 1\n");
        tree_file(&t, "system.slice/evil.service/kubepods/pod" UID, "cgroup.events", "populated 1\n");
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
        tree_end(&t);
}

/* In a tree that is too large, a missing cgroup is no proof. */
static void a_tree_with_too_many_folders_is_unknown(void) {
        char path[64];
        Tree t;

        tree_begin(&t);
        tree_v2(&t);
        tree_dir(&t, "kubepods");
        for (unsigned i = 0; i < 2048; i++) {
                (void) snprintf(path, sizeof path, "d%u", i);
                tree_dir(&t, path);
                if (i == 2000)
                        ASSERT_INT(ask(&t, UID), POD_PROCESSES_NONE);
        }
        ASSERT_INT(ask(&t, UID), POD_PROCESSES_UNKNOWN);
        /* it is found by its name all the same */
        tree_file(&t, CGROUPFS, "cgroup.events", "populated 0\n");
        tree_file(&t, "kubepods/besteffort/pod" OTHER, "cgroup.events", "populated 1\n");
        ASSERT_INT(ask(&t, OTHER), POD_PROCESSES_SOME);
        tree_end(&t);
}

int main(void) {
        return TEST_MAIN(TEST(v2_finds_populated), TEST(v2_broken_events_are_unknown),
                         TEST(v1_reads_the_pids_controller), TEST(v1_walks_other_controllers),
                         TEST(v1_tries_the_next_controller), TEST(no_tree_is_unknown),
                         TEST(a_malformed_uid_has_no_processes), TEST(links_are_not_followed),
                         TEST(cgroups_of_users_do_not_count), TEST(a_tree_with_too_many_folders_is_unknown));
}
