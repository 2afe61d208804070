/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/driver_release.h"

#include "gpu/rm/release.h"
#include "test.h"

static void is(const char *version, bool known_only, const char *reason, bool refused) {
        DriverRelease r = driver_release_judge(str_from(version), known_only);

        ASSERT_TRUE((r.reason == NULL) == (reason == NULL));
        if (reason)
                ASSERT_STR(str_from(r.reason), str_from(reason));
        ASSERT_INT(r.refused, refused);
        ASSERT_INT(r.fault.text[0] != '\0', reason && reason[0] != '\0');
}

static void branches_of_the_table_are_supported(void) {
        static const char *const versions[] = {"535.54.03", "535",       "540.10",    "550.163.01",
                                               "580.95.05", "595.45.04", "595.999.99"};

        for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
                is(versions[i], false, "", false);
                is(versions[i], true, "", false);
        }
}

static void older_drivers_are_refused(void) {
        is("534.99", false, DRIVER_REASON_OLD, true);
        is("470.256.02", true, DRIVER_REASON_OLD, true);
        ASSERT_STR(str_from(driver_release_judge(STR("525.147.05"), false).fault.text),
                   STR("driver 525.147.05 is older than 535, the oldest that the library of isolated "
                       "containers understands: no container with an isolated slice starts"));
}

static void newer_drivers_are_refused_on_demand(void) {
        is("616.1", false, DRIVER_REASON_NEW, false);
        is("1000.10", true, DRIVER_REASON_NEW, true);
        ASSERT_STR(str_from(driver_release_judge(STR("620.70.06"), false).fault.text),
                   STR("driver 620.70.06 is newer than 615, the newest that is known: slices are isolated by "
                       "the numbers of that one"));
}

static void other_texts_are_no_version(void) {
        static const char *const texts[] = {"", "?", "r580", " 580.95", "99999999999.1", "0.1"};

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
                is(texts[i], true, NULL, false);
}

static void files_without_locks_are_refused(void) {
        DriverRelease r = driver_release_without_locks();

        ASSERT_STR(str_from(r.reason), STR(DRIVER_REASON_LOCKS));
        ASSERT_TRUE(r.refused);
}

int main(void) {
        return TEST_MAIN(TEST(branches_of_the_table_are_supported), TEST(older_drivers_are_refused),
                         TEST(newer_drivers_are_refused_on_demand), TEST(other_texts_are_no_version),
                         TEST(files_without_locks_are_refused));
}
