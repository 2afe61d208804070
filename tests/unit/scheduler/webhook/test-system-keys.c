/* SPDX-License-Identifier: Apache-2.0 */

/* What test-review.c does not see: pods without a name yet, and the longest names. */

#include "scheduler/webhook/system_keys.h"
#include "test.h"

#define WARNING(pod)                                                                                         \
        "pod " pod ": annotation aliquot.dev/gpu-mem resizes a running pod, and a new pod has the size of "  \
        "its limits; it was removed"

static void a_pod_without_a_name_has_the_beginning_of_it(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        SystemKeys keys;

        ASSERT_OK(system_keys_read(STR("{\"metadata\":{\"namespace\":\"default\",\"generateName\":\"web-\","
                                       "\"annotations\":{\"aliquot.dev/gpu-mem\":\"6\"}}}"),
                                   &arena, &keys, NULL));
        ASSERT_INT(system_keys_of_new(&keys), 1U << SYSTEM_KEYS_RESIZE_MEM);
        system_keys_warn(&keys, SYSTEM_KEYS_RESIZE_MEM, &text);
        ASSERT_STR(buf_str(&text), STR(WARNING("default/web-")));
}

/* The rule stands within what the API server leaves of a warning. */
static void a_warning_is_short(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        SystemKeys keys = {0};
        char name[253];

        memset(name, 'n', sizeof name);
        keys.namespace_ = (Str){name, 63};
        keys.name = (Str){name, sizeof name};
        system_keys_warn(&keys, SYSTEM_KEYS_RESIZE_CORE, &text);
        ASSERT_TRUE(text.len <= 256);
        ASSERT_CONTAINS(text.data, "limits; it was removed");
}

/* A pod with it counts in a unit of the policy. The keys of a resize are users' to change. */
static void the_mark_of_a_policy_is_not_for_users(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        SystemKeys old = {0}, now;

        ASSERT_OK(system_keys_read(STR("{\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"annotations\":{"
                                       "\"aliquot.dev/resource-policy\":\"web/0\","
                                       "\"aliquot.dev/gpu-mem\":\"6\"}}}"),
                                   &arena, &now, NULL));
        ASSERT_INT(system_keys_of_new(&now), 1U << SYSTEM_KEYS_POLICY | 1U << SYSTEM_KEYS_RESIZE_MEM);
        system_keys_write_removal(1U << SYSTEM_KEYS_POLICY, &text);
        ASSERT_TEXT(text.data, "{\"op\":\"remove\",\"path\":\"/metadata/annotations/"
                               "aliquot.dev~1resource-policy\"}");
        buf_clear(&text);
        system_keys_warn(&now, SYSTEM_KEYS_POLICY, &text);
        ASSERT_TEXT(text.data,
                    "annotation aliquot.dev/resource-policy is set by the scheduler; it was removed");
        buf_clear(&text);
        ASSERT_INT(system_keys_changed(&old, &now), 1U << SYSTEM_KEYS_POLICY);
        system_keys_refuse(&old, &now, 1U << SYSTEM_KEYS_POLICY, STR("eve"), &text);
        ASSERT_CONTAINS(text.data, "pod d/p: annotation aliquot.dev/resource-policy is \"\", must not become "
                                   "\"web/0\"");
}

int main(void) {
        return TEST_MAIN(TEST(a_pod_without_a_name_has_the_beginning_of_it), TEST(a_warning_is_short),
                         TEST(the_mark_of_a_policy_is_not_for_users));
}
