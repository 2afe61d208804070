/* SPDX-License-Identifier: Apache-2.0 */
#include "node/terms.h"
#include "test.h"

static void a_mode_waits_for_the_last_slice(void) {
        Terms t;

        terms_init(&t, MEMORY_UNIT_GIB);
        ASSERT_OK(terms_want(&t, STR("share"), STR(""), MEMORY_UNIT_GIB, NULL));
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        ASSERT_OK(terms_want(&t, STR("core_mem"), STR(""), MEMORY_UNIT_GIB, NULL));
        ASSERT_FALSE(terms_settle(&t, true));
        ASSERT_TRUE(terms_pending(&t));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_CORE_MEM);
        ASSERT_OK(terms_want(&t, STR(""), STR(""), MEMORY_UNIT_GIB, NULL)); /* the label is gone: it stays */
        ASSERT_FALSE(terms_pending(&t));
        ASSERT_OK(terms_want(&t, STR("default"), STR(""), MEMORY_UNIT_GIB, NULL));
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_DEFAULT);
}

/* Slices that are held in no mode come from before the state directory was lost: waiting for them would never end. */
static void no_mode_waits_for_nobody(void) {
        Terms t;

        terms_init(&t, MEMORY_UNIT_GIB);
        ASSERT_OK(terms_want(&t, STR("share"), STR(""), MEMORY_UNIT_GIB, NULL));
        ASSERT_TRUE(terms_settle(&t, true));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
}

static void the_users_unit_goes_before_the_charts(void) {
        Fault fault = FAULT_NULL;
        Terms t;

        terms_init(&t, MEMORY_UNIT_GIB);
        t.mode = SHARE_MODE_SHARE;
        ASSERT_OK(terms_want(&t, STR("share"), STR("128MiB"), MEMORY_UNIT_GIB, NULL));
        ASSERT_TRUE(t.users_unit);
        ASSERT_FALSE(terms_settle(&t, true));
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.unit.mib, 128);
        /* What we wrote ourselves is nobody's wish: the chart may change it. */
        (void) snprintf(t.said_unit, sizeof t.said_unit, "128MiB");
        ASSERT_OK(terms_want(&t, STR("share"), STR("128MiB"), MEMORY_UNIT_GIB, NULL));
        ASSERT_INT(t.wanted_unit.mib, 1024);
        ASSERT_INT(terms_want(&t, STR("share"), STR("lots"), MEMORY_UNIT_GIB, &fault), TERMS_E_UNIT);
        ASSERT_CONTAINS(fault.text, "lots");
        ASSERT_INT(t.wanted_unit.mib, 128);
}

static void terms_survive_a_restart(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Terms t, again;

        terms_init(&t, (MemoryUnit){256});
        t.mode = SHARE_MODE_CGPU;
        (void) snprintf(t.said_unit, sizeof t.said_unit, "256MiB");
        terms_write(&t, &text);
        ASSERT_OK(terms_read(buf_str(&text), &again, NULL));
        ASSERT_INT(again.mode, SHARE_MODE_CGPU);
        ASSERT_INT(again.unit.mib, 256);
        ASSERT_TEXT(again.said_unit, "256MiB");
        ASSERT_INT(terms_read(STR("{\"mode\":\"share\",\"unit\":\"0\"}"), &again, NULL), TERMS_E_MALFORMED);
        ASSERT_INT(terms_read(STR("{\"mode\":"), &again, NULL), TERMS_E_MALFORMED);
}

int main(void) {
        return TEST_MAIN(TEST(a_mode_waits_for_the_last_slice), TEST(no_mode_waits_for_nobody),
                         TEST(the_users_unit_goes_before_the_charts), TEST(terms_survive_a_restart));
}
