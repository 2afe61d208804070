/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/conditions.h"
#include "test.h"

static void the_agents_conditions_are_read(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ObjectCondition c[CONDITIONS_];

        ASSERT_OK(conditions_read(
                STR("{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},"
                    "{\"type\":\"GPUShareChangePending\",\"status\":\"False\",\"reason\":\"InForce\","
                    "\"message\":\"m\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}"),
                &arena, c, NULL));
        ASSERT_STR(c[CONDITION_CHANGE_PENDING].status, STR("False"));
        ASSERT_STR(c[CONDITION_CHANGE_PENDING].reason, STR("InForce"));
        ASSERT_STR(c[CONDITION_CHANGE_PENDING].message, STR("m"));
        ASSERT_STR(c[CONDITION_CHANGE_PENDING].since, STR("2026-01-02T03:04:05Z"));
        ASSERT_STR(c[CONDITION_MISCONFIGURED].status, STR(""));
}

static void other_texts_are_refused(void) {
        static const char *const texts[] = {"", "{", "{\"status\":{\"conditions\":{}}}",
                                            "{\"status\":{\"conditions\":[{\"type\":7}]}}"};
        ObjectCondition c[CONDITIONS_] = {{.status = STR("before")}};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Fault fault = FAULT_NULL;

                ASSERT_INT(conditions_read(str_from(texts[i]), &arena, c, &fault), CONDITIONS_E_MALFORMED);
                ASSERT_TRUE(fault.text[0] != '\0');
                ASSERT_STR(c[0].status, STR("before"));
        }
}

int main(void) {
        return TEST_MAIN(TEST(the_agents_conditions_are_read), TEST(other_texts_are_refused));
}
