/* SPDX-License-Identifier: Apache-2.0 */

/* Which processes are killed, and when the whole container is. The processes are real, and a proc
 * of the test's own says which container each one is of. */

#include "node/audit/process_killer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch.h"

#define UID "0a0a0a0a-0000-0000-0000-000000000001"
#define POD                                                                                                  \
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"" UID                                   \
        "\"},\"spec\":{\"nodeName\":\"n\",\"containers\":["                                                  \
        "{\"name\":\"main\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}},"                     \
        "{\"name\":\"other\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"2\"}}}]},"                  \
        "\"status\":{\"containerStatuses\":[{\"name\":\"main\",\"containerID\":\"containerd://aaa\"},"       \
        "{\"name\":\"other\",\"containerID\":\"containerd://bbb\"}]}}"

static char home[64], proc[96], cgroups[96], kill_file[192];
static Roster roster;
static ProcessKiller killer;

/* A process of that container, which ends by a signal alone. */
static pid_t process(const char *id) {
        pid_t pid = fork();

        if (pid == 0)
                for (;;)
                        (void) pause();
        ASSERT_TRUE(pid > 0);
        scratch_process(proc, (unsigned) pid, UID, id);
        return pid;
}

/* Takes it out of proc, whether it was killed or not. */
static void forget(pid_t pid) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%d", proc, pid);
        scratch_remove(path);
}

static void wait_killed(pid_t pid) {
        int status;

        ASSERT_INT(waitpid(pid, &status, 0), pid);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        forget(pid);
}

static void end_alive(pid_t pid) {
        ASSERT_INT(waitpid(pid, NULL, WNOHANG), 0);
        ASSERT_OK(kill(pid, SIGKILL));
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
        forget(pid);
}

static void begin(void) {
        (void) snprintf(home, sizeof home, "/tmp/aliquot-killer-XXXXXX");
        scratch_make(home);
        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        ASSERT_OK(mkdir(proc, 0755));
        (void) snprintf(cgroups, sizeof cgroups, "%s", home);
        ASSERT_OK(roster_init(&roster, "n"));
        ASSERT_OK(roster_pod(&roster, REFLECTOR_ADDED, STR(POD)));
        killer = (ProcessKiller){.proc = proc, .cgroups = cgroups};
}

static void end(void) {
        process_killer_done(&killer);
        roster_done(&roster);
        scratch_remove(home);
}

/* A cgroup of main, with a file in place of the kernel's. */
static void add_cgroup(void) {
        static const char *const parts[] = {"kubepods", "burstable", ("pod" UID), "aaa"};
        size_t n;
        FILE *file;

        (void) snprintf(kill_file, sizeof kill_file, "%s", home);
        for (size_t i = 0; i < ELEMENTSOF(parts); i++) {
                n = strlen(kill_file);
                (void) snprintf(kill_file + n, sizeof kill_file - n, "/%s", parts[i]);
                ASSERT_OK(mkdir(kill_file, 0755));
        }
        n = strlen(kill_file);
        (void) snprintf(kill_file + n, sizeof kill_file - n, "/cgroup.kill");
        file = fopen(kill_file, "we");
        ASSERT_TRUE(file != NULL);
        ASSERT_OK(fclose(file));
}

static bool cgroup_was_killed(void) {
        struct stat st;

        ASSERT_OK(stat(kill_file, &st));
        return st.st_size > 0;
}

/* now: seconds */
static KilledProcesses end_excess(const char *container, pid_t pid, bool ended, unsigned now) {
        const ExcessPid one = {(uint32_t) pid, ended};
        const MemoryExcess excess = {.pod = roster_find(&roster, STR(UID)),
                                     .container = container,
                                     .pids = &one,
                                     .n_pids = 1,
                                     .n_ended = ended};

        return process_killer_end_excess(&killer, &excess, now * USEC_PER_SEC);
}

static void kills_one_once(void) {
        KilledProcesses r;
        pid_t guilty, other;

        begin();
        guilty = process("aaa");
        other = process("aaa");
        r = end_excess("main", guilty, false, 100);
        ASSERT_INT(r.killed, 1);
        ASSERT_INT(r.all, false);
        for (unsigned i = 1; i < 10; i++) { /* it is a zombie: one that takes time to end */
                r = end_excess("main", guilty, false, 100 + i);
                ASSERT_INT(r.killed + r.failed, 0);
                ASSERT_INT(r.pending, 1);
        }
        wait_killed(guilty);
        end_alive(other);
        end();
}

/* The parent of those that are killed is none of them until the third time. */
static void the_third_kill_is_of_the_container(void) {
        pid_t parent, beside, child;
        KilledProcesses r;

        begin();
        add_cgroup();
        parent = process("aaa");
        beside = process("bbb");
        for (unsigned i = 0; i < 3; i++) {
                child = process("aaa");
                r = end_excess("main", child, false, 100 + 20 * i);
                ASSERT_INT(r.all, i == 2);
                ASSERT_INT(r.killed, i == 2 ? 2 : 1);
                ASSERT_INT(cgroup_was_killed(), i == 2);
                wait_killed(child);
        }
        wait_killed(parent);
        end_alive(beside);
        end();
}

static void slow_kills_do_not_end_the_container(void) {
        pid_t parent, child;
        KilledProcesses r;

        begin();
        parent = process("aaa");
        for (unsigned i = 0; i < 10; i++) {
                child = process("aaa");
                r = end_excess("main", child, false, 100 + 31 * i);
                ASSERT_INT(r.killed, 1);
                ASSERT_INT(r.all, false);
                wait_killed(child);
        }
        end_alive(parent);
        end();
}

/* Each process has made another one and ended before it is killed: what is killed is none of the
 * processes that are named. */
static void a_relay_ends_with_its_container(void) {
        KilledProcesses r;
        pid_t parent, gone;

        begin();
        parent = process("aaa");
        for (unsigned i = 0; i < 3; i++) {
                gone = process("aaa");
                end_alive(gone);
                r = end_excess("main", gone, false, 100 + i);
                ASSERT_INT(r.all, i == 2);
                ASSERT_INT(r.killed, i == 2);
        }
        wait_killed(parent);
        end();
}

/* Each container has a count of its own, and a pod whose container is not known has none. */
static void containers_are_counted_apart(void) {
        pid_t parent, child;

        begin();
        parent = process("aaa");
        for (unsigned i = 0; i < 6; i++) {
                child = process(i % 3 == 0 ? "aaa" : "bbb");
                ASSERT_INT(end_excess(i % 3 == 0 ? "main" : "other", child, false, 100 + i).all, i >= 4);
                wait_killed(child);
        }
        for (unsigned i = 0; i < 6; i++) {
                child = process("unknown");
                ASSERT_INT(end_excess(NULL, child, false, 100 + i).all, false);
                wait_killed(child);
        }
        end_alive(parent);
        end();
}

/* Their memory lives on with others, which are not named. */
static void ended_processes_end_the_container(void) {
        pid_t heir, beside;
        KilledProcesses r;

        begin();
        heir = process("aaa");
        beside = process("bbb");
        r = end_excess("main", 999999999, true, 100);
        ASSERT_INT(r.killed, 1);
        ASSERT_INT(r.all, true);
        wait_killed(heir);
        end_alive(beside);
        end();
}

static void the_pid_of_another_container_is_left(void) {
        pid_t other;

        begin();
        other = process("bbb");
        for (unsigned i = 0; i < 4; i++)
                ASSERT_INT(end_excess("main", other, false, 100 + i).killed, 0);
        end_alive(other);
        end();
}

/* ---- a container that makes processes again, in a cgroup of the kernel ---- */

static bool make_kernel_cgroup(char ret[static 192]) {
        static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
        struct stat st;

        for (size_t i = 0; i < ELEMENTSOF(roots); i++) {
                (void) snprintf(ret, 192, "%s/cgroup.controllers", roots[i]);
                (void) snprintf(cgroups, sizeof cgroups, "%s", roots[0]);
                if (stat(ret, &st) != 0)
                        continue;
                (void) snprintf(ret, 192, "%s/aliquot-test-%d", roots[i], getpid());
                if (mkdir(ret, 0755) != 0)
                        return false;
                (void) snprintf(ret, 192, "%s/aliquot-test-%d/pod" UID, roots[i], getpid());
                ASSERT_OK(mkdir(ret, 0755));
                (void) snprintf(ret, 192, "%s/aliquot-test-%d/pod" UID "/aaa", roots[i], getpid());
                ASSERT_OK(mkdir(ret, 0755));
                return true;
        }
        return false;
}

static void remove_kernel_cgroup(char path[static 192]) {
        for (int i = 0; i < 3; i++) {
                while (rmdir(path) != 0) /* the last processes leave it when they are gone */
                        ASSERT_INT(errno, EBUSY);
                *strrchr(path, '/') = '\0';
        }
}

static void make_again(const char *cgroup) {
        char path[256];
        FILE *file;

        (void) snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
        file = fopen(path, "we");
        ASSERT_TRUE(file && fprintf(file, "%d", getpid()) > 0);
        ASSERT_OK(fclose(file));
        for (;;) {
                pid_t pid = fork();

                if (pid == 0)
                        for (;;)
                                (void) pause();
                (void) waitpid(pid, NULL, 0);
        }
}

/* The child that the parent has now, other than the last one. */
static pid_t wait_child(pid_t parent, pid_t last) {
        char path[64];
        pid_t child = 0;

        (void) snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
        while (child == 0 || child == last) {
                FILE *file = fopen(path, "re");

                ASSERT_TRUE(file != NULL);
                if (fscanf(file, "%d", &child) != 1)
                        child = 0;
                ASSERT_OK(fclose(file));
        }
        return child;
}

static void a_parent_that_forks_again_is_ended(void) {
        char cgroup[192];
        pid_t parent, child = 0;
        int status;

        begin();
        if (!make_kernel_cgroup(cgroup)) {
                (void) printf("skipped: no cgroup of version 2 can be made\n");
                end();
                return;
        }
        killer.proc = "/proc";
        parent = fork();
        if (parent == 0)
                make_again(cgroup);
        for (unsigned i = 0; i < 3; i++) {
                child = wait_child(parent, child);
                ASSERT_INT(end_excess("main", child, false, 100 + i).all, i == 2);
        }
        ASSERT_INT(waitpid(parent, &status, 0), parent);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        remove_kernel_cgroup(cgroup);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(kills_one_once), TEST(the_third_kill_is_of_the_container),
                         TEST(slow_kills_do_not_end_the_container), TEST(a_relay_ends_with_its_container),
                         TEST(containers_are_counted_apart), TEST(ended_processes_end_the_container),
                         TEST(the_pid_of_another_container_is_left),
                         TEST(a_parent_that_forks_again_is_ended));
}
