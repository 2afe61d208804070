/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/field_managers.h"
#include "test.h"
#include "wire/annotation.h"

#define ENTRY(name, time, more)                                                                              \
        "{\"manager\":\"" name "\",\"operation\":\"Update\",\"time\":\"2026-01-02T03:04:" time "Z\"" more "}"
#define OWNS(key)                                                                                            \
        ",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:" key                                \
        "\":{}},\"f:labels\":{}},\"f:spec\":{}}"
#define POD(entries) "{\"metadata\":{\"name\":\"a\",\"managedFields\":[" entries "]},\"spec\":{}}"

enum { ALLOCATION = 1, OTHERS = 0x7fe };

static FieldManager last(const char *pod, uint32_t keys, Arena *arena) {
        FieldManager found;

        ASSERT_OK(field_managers_last(str_from(pod), keys, STR("aliquot"), arena, &found, NULL));
        return found;
}

static void owner_of_the_key_is_named(void) {
        static const char pod[] = POD(ENTRY("early", "01", OWNS(ANNOTATION_ALLOCATION)) "," ENTRY(
                "late", "03",
                OWNS(ANNOTATION_ALLOCATION)) "," ENTRY("middle", "02",
                                                       OWNS(ANNOTATION_ALLOCATION)) "," ENTRY("other", "09",
                                                                                              OWNS("example."
                                                                                                   "com/x")));
        _cleanup_arena_ Arena arena = ARENA_NULL;
        FieldManager found = last(pod, ALLOCATION, &arena);

        ASSERT_STR(found.name, STR("late"));
        ASSERT_STR(found.operation, STR("Update"));
        ASSERT_STR(found.time, STR("2026-01-02T03:04:03Z"));
        ASSERT_TRUE(found.owns);
}

static void last_writer_is_named_for_a_removed_key(void) {
        static const char pod[] = POD(ENTRY("early", "01", OWNS("x")) "," ENTRY("late", "03", "") "," ENTRY(
                "aliquot", "08", OWNS(ANNOTATION_ASSIGNED)) "," ENTRY("kubelet", "09",
                                                                      ",\"subresource\":\"status\""));
        _cleanup_arena_ Arena arena = ARENA_NULL;
        FieldManager found = last(pod, ALLOCATION, &arena);

        ASSERT_STR(found.name, STR("late"));
        ASSERT_FALSE(found.owns);
        found = last(pod, OTHERS, &arena); /* an owner is named, even the excepted one */
        ASSERT_STR(found.name, STR("aliquot"));
}

static void none_is_named_without_entries(void) {
        static const char *const pods[] = {"{}", "{\"metadata\":{}}", POD(""), POD("{}"),
                                           POD(ENTRY("", "01", ""))};
        _cleanup_arena_ Arena arena = ARENA_NULL;

        for (size_t i = 0; i < ELEMENTSOF(pods); i++)
                ASSERT_INT(last(pods[i], ALLOCATION, &arena).name.len, 0);
}

static void malformed_texts_are_refused(void) {
        static const char *const pods[] = {
                "", "{", "[]", POD("7"), POD("{\"manager\":{}}"), POD("{\"fieldsV1\":7}")};

        for (size_t i = 0; i < ELEMENTSOF(pods); i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                FieldManager found;
                Fault fault = FAULT_NULL;

                ASSERT_INT(
                        field_managers_last(str_from(pods[i]), ALLOCATION, STR(""), &arena, &found, &fault),
                        FIELD_MANAGERS_E_MALFORMED);
                ASSERT_TRUE(fault.text[0] != '\0');
        }
}

int main(void) {
        return TEST_MAIN(TEST(owner_of_the_key_is_named), TEST(last_writer_is_named_for_a_removed_key),
                         TEST(none_is_named_without_entries), TEST(malformed_texts_are_refused));
}
