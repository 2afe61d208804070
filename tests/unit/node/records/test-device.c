/* SPDX-License-Identifier: Apache-2.0 */
#include "devices.h"
#include "node/records/device.h"
#include "test.h"

static void names_are_read_and_written(void) {
        static const struct {
                const char *text;
                DeviceKind kind;
                bool ours;
        } cases[] = {
                {"0-0", DEVICE_MEM, true},
                {"3-17", DEVICE_MEM, true},
                {"255-16777215", DEVICE_MEM, true},
                {"c3-17", DEVICE_CORE, true},
                {"256-0", DEVICE_MEM, false},
                {"0-16777216", DEVICE_MEM, false},
                {"c3-17", DEVICE_MEM, false},
                {"3-17", DEVICE_CORE, false},
                {"03-1", DEVICE_MEM, false},
                {"3-01", DEVICE_MEM, false},
                {"", DEVICE_MEM, false},
                {"-", DEVICE_MEM, false},
                {"3", DEVICE_MEM, false},
                {"3-", DEVICE_MEM, false},
                {"3-1-1", DEVICE_MEM, false},
                {"+3-1", DEVICE_MEM, false},
                {" 3-1", DEVICE_MEM, false},
                {"c", DEVICE_CORE, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[DEVICE_TEXT_MAX];
                DeviceId id = 42;

                if (!cases[i].ours) {
                        ASSERT_INT(device_parse(str_from(cases[i].text), cases[i].kind, &id),
                                   DEVICE_E_MALFORMED);
                        ASSERT_INT(id, 42);
                        continue;
                }
                ASSERT_OK(device_parse(str_from(cases[i].text), cases[i].kind, &id));
                device_format(id, cases[i].kind, text);
                ASSERT_TEXT(text, cases[i].text);
        }
}

static void sets_are_compared(void) {
        uint32_t card, count;
        size_t at = 0;

        SET(a, "1-3", "0-2", "1-0");
        SET(b, "0-2", "1-0", "1-3");
        SET(part, "1-0");
        SET(other, "2-0", "1-1");

        ASSERT_TRUE(device_set_eq(&a, &b));
        ASSERT_FALSE(device_set_eq(&a, &part));
        ASSERT_TRUE(device_set_covers(&a, &part));
        ASSERT_FALSE(device_set_covers(&part, &a));
        ASSERT_TRUE(device_set_touches(&a, &part));
        ASSERT_FALSE(device_set_touches(&a, &other));
        ASSERT_TRUE(device_set_next_card(&a, &at, &card, &count) && card == 0 && count == 1);
        ASSERT_TRUE(device_set_next_card(&a, &at, &card, &count) && card == 1 && count == 2);
        ASSERT_FALSE(device_set_next_card(&a, &at, &card, &count));
}

static void a_device_twice_is_refused(void) {
        Str twice[] = {STR("0-1"), STR("0-2"), STR("0-1")};
        Fault fault = FAULT_NULL;
        DeviceSet set = DEVICE_SET_NULL;

        ASSERT_INT(device_set_parse(twice, 3, DEVICE_MEM, &set, &fault), DEVICE_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "0-1");
        ASSERT_TRUE(set.ids == NULL);
}

int main(void) {
        return TEST_MAIN(TEST(names_are_read_and_written), TEST(sets_are_compared),
                         TEST(a_device_twice_is_refused));
}
