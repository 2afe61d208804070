/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/pid_owner_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"

#define POD_A "0a0a0a0a-0000-0000-0000-000000000001"
#define POD_B "0b0b0b0b-0000-0000-0000-000000000002"

static char proc[64];
static PidOwnerCache cache;

static void begin(void) {
        (void) snprintf(proc, sizeof proc, "/tmp/aliquot-cache-XXXXXX");
        scratch_make(proc);
        cache = (PidOwnerCache){.proc = proc};
}

static void end(void) {
        pid_owner_cache_done(&cache);
        scratch_remove(proc);
}

static void write_file(uint32_t pid, const char *name, const char *text) {
        char path[128];
        FILE *file;

        (void) snprintf(path, sizeof path, "%s/%u/%s", proc, pid, name);
        file = fopen(path, "we");
        ASSERT_TRUE(file && fputs(text, file) >= 0);
        ASSERT_OK(fclose(file));
}

static void process(uint32_t pid, const char *uid, const char *container, unsigned start) {
        char text[256];

        (void) snprintf(text, sizeof text, "%s/%u", proc, pid);
        ASSERT_OK(mkdir(text, 0755));
        (void) snprintf(text, sizeof text, "0::/kubepods/burstable/pod%s/%s\n", uid ? uid : "", container);
        write_file(pid, "cgroup", uid ? text : "0::/system.slice/x.service\n");
        (void) snprintf(text, sizeof text, "%u (a) b) S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 %u 1 1\n",
                        pid, start);
        write_file(pid, "stat", text);
}

static void ended(uint32_t pid) {
        char path[128];

        (void) snprintf(path, sizeof path, "%s/%u", proc, pid);
        scratch_remove(path);
}

/* One census that names this pid. Returns "NONE", "LIVES container" or "ENDED container". */
static const char *owner_of(uint32_t pid) {
        static char text[160];
        ProcessOwner owner = {0};
        PidOwnerState state;

        pid_owner_cache_begin(&cache);
        state = pid_owner_cache_find(&cache, pid, &owner);
        pid_owner_cache_end(&cache);
        (void) snprintf(text, sizeof text, "%s%s",
                        state == PID_OWNER_NONE    ? "NONE"
                        : state == PID_OWNER_LIVES ? "LIVES "
                                                   : "ENDED ",
                        owner.container);
        return text;
}

static void skip_censuses(unsigned censuses) {
        for (unsigned i = 0; i < censuses; i++) {
                pid_owner_cache_begin(&cache);
                pid_owner_cache_end(&cache);
        }
}

static void owner_of_an_ended_process_is_kept(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(owner_of(10), "LIVES aaa");
        ended(10);
        for (int i = 0; i < 100; i++) /* while the driver names it */
                ASSERT_TEXT(owner_of(10), "ENDED aaa");
        skip_censuses(3); /* a driver that fails to list it for a while */
        ASSERT_TEXT(owner_of(10), "ENDED aaa");
        skip_censuses(9);
        ASSERT_TEXT(owner_of(10), "NONE");
        ASSERT_TRUE(cache.pids == NULL);
        ASSERT_TEXT(owner_of(11), "NONE"); /* it ended before a census named it */
        end();
}

static void reused_pid_has_no_owner(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(owner_of(10), "LIVES aaa");
        ended(10);
        process(10, POD_B, "bbb", 900);
        ASSERT_TEXT(owner_of(10), "NONE");
        ASSERT_TEXT(owner_of(10), "NONE");
        ended(10);
        ASSERT_TEXT(owner_of(10), "ENDED aaa"); /* the pid is free: the memory is the old process's */
        process(10, NULL, "", 950);
        ASSERT_TEXT(owner_of(10), "NONE");
        skip_censuses(1); /* the memory of the old process is freed */
        ended(10);
        process(10, POD_B, "bbb", 990);
        ASSERT_TEXT(owner_of(10), "LIVES bbb");
        end();
}

static void reused_pid_of_the_same_container_has_an_owner(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(owner_of(10), "LIVES aaa");
        ended(10);
        process(10, POD_A, "aaa", 900);
        ASSERT_TEXT(owner_of(10), "LIVES aaa");
        ended(10);
        process(10, POD_A, "ccc", 950); /* the same pod is not enough */
        ASSERT_TEXT(owner_of(10), "NONE");
        end();
}

static void pid_is_new_after_a_census_without_it(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(owner_of(10), "LIVES aaa");
        ended(10);
        skip_censuses(1);
        process(10, POD_B, "bbb", 900);
        ASSERT_TEXT(owner_of(10), "LIVES bbb");
        end();
}

int main(void) {
        return TEST_MAIN(TEST(owner_of_an_ended_process_is_kept), TEST(reused_pid_has_no_owner),
                         TEST(reused_pid_of_the_same_container_has_an_owner),
                         TEST(pid_is_new_after_a_census_without_it));
}
