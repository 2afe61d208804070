/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/process_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "scratch.h"

static void paths(void) {
        const Str one = STR(""), freezer = STR("freezer");
        const Str old = STR("12:cpu,freezer:/kubepods/podx/id\n3:freezers:/no\n0::/a/b\n");

        ASSERT_STR(process_state_cgroup_path(old, freezer), STR("/kubepods/podx/id"));
        ASSERT_STR(process_state_cgroup_path(old, one), STR("/a/b"));
        ASSERT_STR(process_state_cgroup_path(STR("0::/../../kubepods-burstable.slice/x"), one),
                   STR("/kubepods-burstable.slice/x"));
        ASSERT_STR(process_state_cgroup_path(STR("0::/a/../b"), one), STR(""));
        ASSERT_STR(process_state_cgroup_path(STR("0::/a/.."), one), STR(""));
        ASSERT_STR(process_state_cgroup_path(STR("0::a"), one), STR(""));
        ASSERT_STR(process_state_cgroup_path(STR("0::/a"), freezer), STR(""));
        ASSERT_STR(process_state_cgroup_path(STR(""), one), STR(""));
}

static char home[64];

static void write_file(const char *name, const char *text) {
        char path[512];
        FILE *f;

        (void) snprintf(path, sizeof path, "%s/%s", home, name);
        for (char *at = path + strlen(home) + 1; (at = strchr(at, '/')); *at++ = '/') {
                *at = '\0';
                (void) mkdir(path, 0755);
        }
        f = fopen(path, "we");
        ASSERT_TRUE(f && fputs(text, f) >= 0);
        ASSERT_OK(fclose(f));
}

static bool is_paused(void) {
        char proc[96], root[96];

        (void) snprintf(proc, sizeof proc, "%s/proc", home);
        (void) snprintf(root, sizeof root, "%s/cgroup", home);
        return process_state_is_paused(proc, root, 7);
}

static void a_process_is_frozen_with_its_cgroup(void) {
        (void) snprintf(home, sizeof home, "/tmp/aliquot-paused-XXXXXX");
        scratch_make(home);
        ASSERT_FALSE(is_paused());
        write_file("proc/7/stat", "7 (a) S 1 1\n");
        write_file("proc/7/cgroup", "0::/../../podx/id\n");
        ASSERT_FALSE(is_paused());
        write_file("cgroup/kubepods/burstable/podx/id/cgroup.events", "populated 1\nfrozen 1\n");
        ASSERT_TRUE(is_paused());
        write_file("cgroup/kubepods/burstable/podx/id/cgroup.events", "populated 1\nfrozen 0\n");
        ASSERT_FALSE(is_paused());
        write_file("proc/7/cgroup", "4:freezer:/kubepods/podx/id\n0::/\n");
        write_file("cgroup/freezer/kubepods/podx/id/freezer.state", "FREEZING\n");
        ASSERT_FALSE(is_paused());
        write_file("cgroup/freezer/kubepods/podx/id/freezer.state", "FROZEN\n");
        ASSERT_TRUE(is_paused());
        write_file("cgroup/freezer/kubepods/podx/id/freezer.state", "THAWED\n");
        ASSERT_FALSE(is_paused());
        write_file("proc/7/stat", "7 (a) t 1 1\n");
        ASSERT_TRUE(is_paused());
        scratch_remove(home);
}

static void a_real_process_is_stopped(void) {
        pid_t pid = fork();

        if (pid == 0)
                for (;;)
                        (void) pause();
        ASSERT_FALSE(process_state_is_paused("/proc", NULL, (uint32_t) pid));
        ASSERT_OK(kill(pid, SIGSTOP));
        ASSERT_INT(waitpid(pid, NULL, WUNTRACED), pid);
        ASSERT_TRUE(process_state_is_paused("/proc", NULL, (uint32_t) pid));
        ASSERT_OK(kill(pid, SIGKILL));
        ASSERT_INT(waitpid(pid, NULL, 0), pid);
        ASSERT_FALSE(process_state_is_paused("/proc", NULL, (uint32_t) pid));
}

int main(void) {
        return TEST_MAIN(TEST(paths), TEST(a_process_is_frozen_with_its_cgroup),
                         TEST(a_real_process_is_stopped));
}
