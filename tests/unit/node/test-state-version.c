/* SPDX-License-Identifier: Apache-2.0 */

/* The state of 64c94a13 stays whole while anything of it is held, and is removed with the slices
 * otherwise. */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "node/state_version.h"
#include "scratch.h"
#include "test.h"

#define UID "6f3c9a52-0000-4000-8000-000000000001"

static char directory[64], state[96], slices[96], cgroups[96];

static const char *in(const char *folder, const char *name) {
        static char path[512];

        (void) snprintf(path, sizeof path, "%s/%s", folder, name);
        return path;
}

static void folder(const char *above, const char *name) {
        ASSERT_OK(mkdir(in(above, name), 0755));
}

static void file(const char *above, const char *name, const char *text) {
        int fd = open(in(above, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        ASSERT_TRUE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        ASSERT_OK(close(fd));
}

static bool is_there(const char *above, const char *name) {
        return access(in(above, name), F_OK) == 0;
}

static void begin(void) {
        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-state-XXXXXX");
        scratch_make(directory);
        (void) snprintf(state, sizeof state, "%s/state", directory);
        (void) snprintf(slices, sizeof slices, "%s/slices", directory);
        (void) snprintf(cgroups, sizeof cgroups, "%s/cgroups", directory);
        folder(directory, "state");
        folder(directory, "slices");
        folder(directory, "cgroups");
        folder(cgroups, "kubepods");
        file(cgroups, "cgroup.controllers", ""); /* version 2 */
}

/* What an agent of 64c94a13 leaves: with one slice, whose doorbell has another name. */
static void leave_old(void) {
        file(state, "cards.json", "{}");
        file(state, "terms.json", "{}");
        folder(state, "pods");
        file(state, "pods/" UID ".json", "{}");
        folder(state, "inside");
        file(state, "inside/libaliquot.so", "x");
        file(state, "other", "x");
        file(slices, "arbiter", "");
        folder(slices, "gpu0-2-ab");
        file(slices, "gpu0-2-ab/owner", "agent d/a/main\n");
        folder(slices, "gpu0-2-ab/0");
        file(slices, "gpu0-2-ab/0/counters", "x");
        file(slices, "gpu0-2-ab/0/bell", "");
}

static void end(void) {
        scratch_remove(directory);
}

static int settle(Fault *fault) {
        return state_version_settle(state, slices, cgroups, fault);
}

static void is_clean(void) {
        ASSERT_TRUE(is_there(state, "other") && is_there(slices, "arbiter"));
        ASSERT_TRUE(!is_there(state, "pods") && !is_there(state, "inside") && !is_there(state, "cards.json"));
        ASSERT_TRUE(!is_there(slices, "gpu0-2-ab"));
}

static void is_untouched(void) {
        ASSERT_TRUE(is_there(state, "cards.json"));
        ASSERT_TRUE(is_there(state, "pods/" UID ".json") && is_there(state, "inside/libaliquot.so"));
        ASSERT_TRUE(is_there(slices, "gpu0-2-ab/0/bell"));
}

static void a_state_of_this_version_stays(void) {
        Fault fault = FAULT_NULL;
        char old[128];

        begin();
        ASSERT_OK(settle(&fault)); /* an empty one */
        leave_old();
        (void) snprintf(old, sizeof old, "%s/pods", state);
        ASSERT_OK(rename(old, in(state, "records")));
        ASSERT_OK(settle(&fault));
        ASSERT_TRUE(is_there(state, "records/" UID ".json") && is_there(slices, "gpu0-2-ab/0/bell"));
        end();
}

static void what_is_not_held_is_removed(void) {
        Fault fault = FAULT_NULL;

        begin();
        leave_old();
        ASSERT_OK(settle(&fault));
        is_clean();
        end();
}

static void a_pod_with_processes_holds_it(void) {
        Fault fault = FAULT_NULL;

        begin();
        leave_old();
        folder(cgroups, "kubepods/pod" UID);
        file(cgroups, "kubepods/pod" UID "/cgroup.events", "populated 1\n");
        ASSERT_INT(settle(&fault), -EBUSY);
        ASSERT_CONTAINS(fault.text, UID);
        ASSERT_CONTAINS(fault.text, "another version of aliquot");
        is_untouched();
        file(cgroups, "kubepods/pod" UID "/cgroup.events", "populated 0\n");
        ASSERT_OK(settle(&fault));
        is_clean();
        end();
}

/* Without the kubelet's tree it is not known which pods live. */
static void an_unknown_pod_holds_it(void) {
        Fault fault = FAULT_NULL;

        begin();
        leave_old();
        ASSERT_OK(rmdir(in(cgroups, "kubepods")));
        ASSERT_INT(settle(&fault), -EBUSY);
        is_untouched();
        end();
}

static void a_locked_slice_holds_it(void) {
        static const char *const names[] = {"gpu0-2-ab/owner", "gpu0-2-ab/0/counters"};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
                Fault fault = FAULT_NULL;
                int fd;

                begin();
                leave_old();
                fd = open(in(slices, names[i]), O_RDWR | O_CLOEXEC);
                ASSERT_TRUE(fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0);
                ASSERT_INT(settle(&fault), -EBUSY);
                ASSERT_CONTAINS(fault.text, "slice gpu0-2-ab");
                is_untouched();
                ASSERT_OK(close(fd));
                ASSERT_OK(settle(&fault));
                is_clean();
                end();
        }
}

int main(void) {
        return TEST_MAIN(TEST(a_state_of_this_version_stays), TEST(what_is_not_held_is_removed),
                         TEST(a_pod_with_processes_holds_it), TEST(an_unknown_pod_holds_it),
                         TEST(a_locked_slice_holds_it));
}
