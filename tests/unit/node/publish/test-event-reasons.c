/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/event_reasons.h"
#include "test.h"

static void a_reason_has_one_entry(void) {
        EventReasons r = {0};
        EventReason *mode = event_reasons_entry(&r, REASON_MODE_KEPT);

        ASSERT_TEXT(mode->note.text, "");
        mode->told = true;
        ASSERT_TRUE(event_reasons_entry(&r, REASON_UNIT_KEPT) != mode);
        ASSERT_TRUE(event_reasons_entry(&r, REASON_MODE_KEPT) == mode);
        ASSERT_TRUE(mode->told);
}

static void the_oldest_entry_is_replaced(void) {
        static const char *const reasons[] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                              "i", "j", "k", "l", "m", "o", "p", "q"};
        EventReasons r = {0};

        _Static_assert(ELEMENTSOF(reasons) == EVENT_REASONS_MAX, "one for each entry");
        for (size_t i = 0; i < EVENT_REASONS_MAX; i++)
                event_reasons_entry(&r, reasons[i])->told = true;
        ASSERT_FALSE(event_reasons_entry(&r, "n")->told);
        ASSERT_TRUE(event_reasons_entry(&r, "b")->told);
        ASSERT_FALSE(event_reasons_entry(&r, "a")->told);
}

int main(void) {
        return TEST_MAIN(TEST(a_reason_has_one_entry), TEST(the_oldest_entry_is_replaced));
}
