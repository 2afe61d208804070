/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include "base/cleanup.h"
#include "test.h"

#define SECONDS UINT64_C(1795478400) /* 2026-11-24T00:00:00Z */

static void reads_what_it_writes(void) {
        uint64_t nsec = SECONDS * 1000000000 + 123456789;

        ASSERT_STR(str_from(timestamp_seconds(nsec).text), STR("2026-11-24T00:00:00Z"));
        ASSERT_STR(str_from(timestamp_micro(nsec).text), STR("2026-11-24T00:00:00.123456Z"));
        ASSERT_INT(timestamp_read(str_from(timestamp_seconds(nsec).text)), SECONDS);
        ASSERT_INT(timestamp_read(str_from(timestamp_micro(nsec).text)), SECONDS);
}

static void other_texts_are_no_time(void) {
        static const char *const bad[] = {
                "", "x", "2026-11-24", "2026-11-24T00:00:0", "2026-13-24T00:00:00Z", "1969-12-31T23:59:59Z"};

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ASSERT_INT(timestamp_read(str_from(bad[i])), 0);
}

/* The text has no zero behind it. */
static void reads_only_its_bytes(void) {
        static const char text[] = "2026-11-24T00:00:00Z9";

        ASSERT_INT(timestamp_read((Str){text, 20}), SECONDS);
        ASSERT_INT(timestamp_read((Str){text, 18}), 0);
}

int main(void) {
        return TEST_MAIN(TEST(reads_what_it_writes), TEST(other_texts_are_no_time),
                         TEST(reads_only_its_bytes));
}
