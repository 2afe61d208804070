/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/pid_owner_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "scratch.h"

#define POD_A "0a0a0a0a-0000-0000-0000-000000000001"
#define POD_B "0b0b0b0b-0000-0000-0000-000000000002"

static char proc[64];
static PidOwnerCache witness;

static void begin(void) {
        (void) snprintf(proc, sizeof proc, "/tmp/aliquot-witness-XXXXXX");
        scratch_make(proc);
        witness = (PidOwnerCache){.proc = proc};
}

static void end(void) {
        pid_owner_cache_done(&witness);
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

/* One census that names this pid. "NOBODY", "LIVES container", "ENDED container". */
static const char *ask(uint32_t pid) {
        static char text[160];
        ProcessOwner owner = {0};
        PidOwnerState word;

        pid_owner_cache_begin(&witness);
        word = pid_owner_cache_find(&witness, pid, &owner);
        pid_owner_cache_end(&witness);
        (void) snprintf(text, sizeof text, "%s%s",
                        word == PID_OWNER_NONE    ? "NOBODY"
                        : word == PID_OWNER_LIVES ? "LIVES "
                                                  : "ENDED ",
                        owner.container);
        return text;
}

static void nobody_named(unsigned censuses) {
        for (unsigned i = 0; i < censuses; i++) {
                pid_owner_cache_begin(&witness);
                pid_owner_cache_end(&witness);
        }
}

static void the_dead_are_remembered(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(ask(10), "LIVES aaa");
        ended(10);
        for (int i = 0; i < 100; i++) /* as long as the driver names it */
                ASSERT_TEXT(ask(10), "ENDED aaa");
        nobody_named(3); /* a driver that could not tell */
        ASSERT_TEXT(ask(10), "ENDED aaa");
        nobody_named(9);
        ASSERT_TEXT(ask(10), "NOBODY");
        ASSERT_TRUE(witness.pids == NULL);
        ASSERT_TEXT(ask(11), "NOBODY"); /* who ended before he was named */
        end();
}

static void a_pid_that_somebody_else_has_blames_nobody(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(ask(10), "LIVES aaa");
        ended(10);
        process(10, POD_B, "bbb", 900);
        ASSERT_TEXT(ask(10), "NOBODY");
        ASSERT_TEXT(ask(10), "NOBODY");
        ended(10);
        ASSERT_TEXT(ask(10), "ENDED aaa"); /* nobody has it now: it is the old one's again */
        process(10, NULL, "", 950);
        ASSERT_TEXT(ask(10), "NOBODY");
        nobody_named(1); /* what the old one left is gone */
        ended(10);
        process(10, POD_B, "bbb", 990);
        ASSERT_TEXT(ask(10), "LIVES bbb");
        end();
}

static void unless_it_is_of_the_same_container(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(ask(10), "LIVES aaa");
        ended(10);
        process(10, POD_A, "aaa", 900);
        ASSERT_TEXT(ask(10), "LIVES aaa");
        ended(10);
        process(10, POD_A, "ccc", 950); /* of the same pod is not enough */
        ASSERT_TEXT(ask(10), "NOBODY");
        end();
}

static void a_new_process_of_an_old_number(void) {
        begin();
        process(10, POD_A, "aaa", 500);
        ASSERT_TEXT(ask(10), "LIVES aaa");
        ended(10);
        nobody_named(1);
        process(10, POD_B, "bbb", 900);
        ASSERT_TEXT(ask(10), "LIVES bbb");
        end();
}

int main(void) {
        return TEST_MAIN(TEST(the_dead_are_remembered), TEST(a_pid_that_somebody_else_has_blames_nobody),
                         TEST(unless_it_is_of_the_same_container), TEST(a_new_process_of_an_old_number));
}
