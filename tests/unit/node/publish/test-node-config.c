/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/node_config.h"
#include "test.h"

static void want(NodeConfig *t, const char *label, const char *unit) {
        node_config_request(t, &(NodeConfigRequest){.label = str_from(label),
                                                    .unit = str_from(unit),
                                                    .configured = MEMORY_UNIT_GIB,
                                                    .place_while_changing = t->place_while_changing,
                                                    .drain = t->drain});
}

static void begin(NodeConfig *t, const char *label) {
        node_config_init(t, MEMORY_UNIT_GIB);
        want(t, label, "");
        ASSERT_TRUE(node_config_apply(t, false));
        t->offered = true;
}

static void stops(const NodeConfig *t, const char *text) {
        _cleanup_buf_ Buf out = BUF_NULL;

        node_config_write_blocking(t, &out);
        ASSERT_TEXT(out.len > 0 ? out.data : "", text);
}

static void a_mode_waits_for_the_last_slice(void) {
        NodeConfig t;

        begin(&t, "share");
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        stops(&t, "");
        want(&t, "core_mem", "");
        ASSERT_FALSE(node_config_apply(&t, true));
        ASSERT_TRUE(node_config_is_pending(&t));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        stops(&t, "mode share -> core_mem");
        t.place_while_changing = true;
        stops(&t, "");
        ASSERT_TRUE(node_config_apply(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_CORE_MEM);
        want(&t, "default", "");
        ASSERT_TRUE(node_config_apply(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_DEFAULT);
}

static void no_label_and_an_unknown_one_change_nothing(void) {
        static const char *const labels[] = {"", "core-mem", "SHARE", "share ", "unknown", "none"};
        NodeConfig t;

        for (size_t i = 0; i < ELEMENTSOF(labels); i++) {
                begin(&t, "cgpu");
                want(&t, labels[i], "");
                ASSERT_FALSE(node_config_is_pending(&t));
                ASSERT_FALSE(node_config_apply(&t, false));
                ASSERT_INT(t.mode, SHARE_MODE_CGPU);
                node_config_init(&t, MEMORY_UNIT_GIB); /* a node that never shared */
                want(&t, labels[i], "");
                ASSERT_FALSE(node_config_is_pending(&t));
                ASSERT_INT(t.wanted_mode, SHARE_MODE_NONE);
        }
}

/* Slices that are held without a mode come from before the state directory was lost. Waiting for
 * them would never end. */
static void without_a_mode_nothing_waits_for_slices(void) {
        NodeConfig t;

        node_config_init(&t, MEMORY_UNIT_GIB);
        want(&t, "share", "");
        ASSERT_TRUE(node_config_apply(&t, true));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
}

/* The same holds for a unit that no card can hold: nothing was offered in it. */
static void a_unit_that_was_never_offered_does_not_wait(void) {
        NodeConfig t;

        node_config_init(&t, (MemoryUnit){20480});
        want(&t, "share", "20GiB");
        ASSERT_TRUE(node_config_apply(&t, true));
        want(&t, "share", "");
        ASSERT_TRUE(node_config_apply(&t, true));
        ASSERT_INT(t.unit.mib, 1024);
}

static void a_users_unit_precedes_the_charts(void) {
        NodeConfig t;

        begin(&t, "share");
        want(&t, "share", "128MiB");
        ASSERT_TRUE(t.unit_by_user);
        ASSERT_FALSE(node_config_apply(&t, true));
        stops(&t, ""); /* refused while slices are held, and blocks no pod */
        t.drain = true;
        stops(&t, "gpu-mem-unit GiB -> 128MiB");
        want(&t, "cgpu", "128MiB");
        stops(&t, "mode share -> cgpu, gpu-mem-unit GiB -> 128MiB");
        ASSERT_TRUE(node_config_apply(&t, false));
        ASSERT_INT(t.unit.mib, 128);
        ASSERT_FALSE(t.offered);
        /* The unit that this agent published is no request of a user, so the chart may change
         * it. */
        (void) snprintf(t.published_unit, sizeof t.published_unit, "128MiB");
        want(&t, "cgpu", "128MiB");
        ASSERT_INT(t.wanted_unit.mib, 1024);
        want(&t, "cgpu", "lots");
        ASSERT_INT(t.wanted_unit.mib, 128);
}

/* Between the agent's patch and its return by the watch, the agent sees its text of before. */
static void a_late_text_of_the_agent_is_no_users(void) {
        NodeConfig t;

        begin(&t, "share");
        node_config_publish_unit(&t, "256MiB");
        want(&t, "share", "256MiB");
        node_config_publish_unit(&t, "128MiB");
        want(&t, "share", "256MiB");
        ASSERT_FALSE(t.unit_by_user);
        ASSERT_INT(t.wanted_unit.mib, 1024);
        want(&t, "share", "128MiB");
        want(&t, "share", "256MiB");
        ASSERT_TRUE(t.unit_by_user);
        ASSERT_INT(t.wanted_unit.mib, 256);
}

static void the_config_survives_a_restart(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        NodeConfig t, again;

        node_config_init(&t, (MemoryUnit){256});
        t.mode = SHARE_MODE_CGPU;
        (void) snprintf(t.memory_isolation, sizeof t.memory_isolation, "both");
        (void) snprintf(t.published_unit, sizeof t.published_unit, "256MiB");
        node_config_write(&t, &text);
        ASSERT_OK(node_config_read(buf_str(&text), &again, NULL));
        ASSERT_INT(again.mode, SHARE_MODE_CGPU);
        ASSERT_INT(again.unit.mib, 256);
        ASSERT_TEXT(again.published_unit, "256MiB");
        ASSERT_FALSE(again.offered);
        ASSERT_TEXT(again.memory_isolation, "both");
        ASSERT_OK(node_config_read(STR("{\"mode\":\"unknown\",\"unit\":\"GiB\"}"), &again, NULL));
        ASSERT_INT(again.mode, SHARE_MODE_NONE);
        ASSERT_FALSE(again.offered);
        ASSERT_TEXT(again.memory_isolation, "");
        ASSERT_INT(node_config_read(STR("{\"mode\":\"share\",\"unit\":\"0\"}"), &again, NULL),
                   NODE_CONFIG_E_MALFORMED);
        ASSERT_INT(node_config_read(STR("{\"mode\":"), &again, NULL), NODE_CONFIG_E_MALFORMED);
}

int main(void) {
        return TEST_MAIN(
                TEST(a_mode_waits_for_the_last_slice), TEST(no_label_and_an_unknown_one_change_nothing),
                TEST(without_a_mode_nothing_waits_for_slices),
                TEST(a_unit_that_was_never_offered_does_not_wait), TEST(a_users_unit_precedes_the_charts),
                TEST(a_late_text_of_the_agent_is_no_users), TEST(the_config_survives_a_restart));
}
