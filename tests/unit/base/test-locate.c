/* SPDX-License-Identifier: Apache-2.0 */
#include "base/locate.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/simulator.h"
#include "test.h"

static void knows_where_it_is(void) {
        char own[LOCATE_PATH], small[4];
        Fault fault = FAULT_NULL;

        ASSERT_OK(locate_own_directory(own, sizeof own, &fault));
        ASSERT_INT(own[0], '/');
        ASSERT_INT(locate_own_directory(small, sizeof small, &fault), -ENAMETOOLONG);
}

static void finds_what_lies_beside_it(void) {
        char path[LOCATE_PATH], small[16];
        Fault fault = FAULT_NULL;

        ASSERT_OK(locate_file("test-base-locate", path, sizeof path, &fault));
        ASSERT_OK(access(path, X_OK));
        ASSERT_INT(locate_file("test-base-locate", small, sizeof small, &fault), -ENAMETOOLONG);
}

static void says_what_is_missing(void) {
        char path[LOCATE_PATH], own[LOCATE_PATH];
        Fault fault = FAULT_NULL;

        ASSERT_INT(locate_file("no/such.file", path, sizeof path, &fault), -ENOENT);
        ASSERT_OK(locate_own_directory(own, sizeof own, NULL));
        ASSERT_TRUE(strncmp(fault.text, "no/such.file is neither beside ", 31) == 0);
        ASSERT_TRUE(strstr(fault.text, own) != NULL);
}

static void says_what_may_not_be_read(void) {
        char own[LOCATE_PATH], path[2 * LOCATE_PATH];
        Fault fault = FAULT_NULL;
        FILE *f;

        if (geteuid() == 0)
                return; /* root may read everything */
        ASSERT_OK(locate_own_directory(own, sizeof own, NULL));
        (void) snprintf(path, sizeof path, "%s/test-beside-closed", own);
        f = fopen(path, "w");
        ASSERT_TRUE(f && fclose(f) == 0);
        ASSERT_OK(chmod(path, 0));
        ASSERT_INT(locate_file("test-beside-closed", path, sizeof path, &fault), -EACCES);
        (void) snprintf(path, sizeof path, "%s/test-beside-closed", own);
        ASSERT_OK(unlink(path));
}

static void nothing_is_stopped_that_was_not_started(void) {
        pid_t none = 0;

        ASSERT_FALSE(simulator_ended(&none));
        simulator_stop(&none);
        ASSERT_INT(none, 0);
}

int main(void) {
        return TEST_MAIN(TEST(knows_where_it_is), TEST(finds_what_lies_beside_it), TEST(says_what_is_missing),
                         TEST(says_what_may_not_be_read), TEST(nothing_is_stopped_that_was_not_started));
}
