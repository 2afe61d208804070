/* SPDX-License-Identifier: Apache-2.0 */
#include "node/terms.h"
#include "test.h"

static void want(Terms *t, const char *label, const char *unit) {
        terms_want(t, &(TermsWish){.label = str_from(label),
                                   .unit = str_from(unit),
                                   .configured = MEMORY_UNIT_GIB,
                                   .place_while_changing = t->place_while_changing,
                                   .drain = t->drain});
}

static void begin(Terms *t, const char *label) {
        terms_init(t, MEMORY_UNIT_GIB);
        want(t, label, "");
        ASSERT_TRUE(terms_settle(t, false));
        t->offered = true;
}

static void stops(const Terms *t, const char *text) {
        _cleanup_buf_ Buf out = BUF_NULL;

        terms_write_stopping(t, &out);
        ASSERT_TEXT(out.len > 0 ? out.data : "", text);
}

static void a_mode_waits_for_the_last_slice(void) {
        Terms t;

        begin(&t, "share");
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        stops(&t, "");
        want(&t, "core_mem", "");
        ASSERT_FALSE(terms_settle(&t, true));
        ASSERT_TRUE(terms_pending(&t));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
        stops(&t, "mode share -> core_mem");
        t.place_while_changing = true;
        stops(&t, "");
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_CORE_MEM);
        want(&t, "default", "");
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.mode, SHARE_MODE_DEFAULT);
}

static void no_label_and_an_unknown_one_change_nothing(void) {
        static const char *const labels[] = {"", "core-mem", "SHARE", "share ", "unknown", "none"};
        Terms t;

        for (size_t i = 0; i < ELEMENTSOF(labels); i++) {
                begin(&t, "cgpu");
                want(&t, labels[i], "");
                ASSERT_FALSE(terms_pending(&t));
                ASSERT_FALSE(terms_settle(&t, false));
                ASSERT_INT(t.mode, SHARE_MODE_CGPU);
                terms_init(&t, MEMORY_UNIT_GIB); /* a node that never shared */
                want(&t, labels[i], "");
                ASSERT_FALSE(terms_pending(&t));
                ASSERT_INT(t.wanted_mode, SHARE_MODE_NONE);
        }
}

/* Slices that are held in no mode come from before the state directory was lost: waiting for them
 * would never end. */
static void no_mode_waits_for_no_slice(void) {
        Terms t;

        terms_init(&t, MEMORY_UNIT_GIB);
        want(&t, "share", "");
        ASSERT_TRUE(terms_settle(&t, true));
        ASSERT_INT(t.mode, SHARE_MODE_SHARE);
}

/* Likewise in a unit that no card can hold: nothing was ever offered in it. */
static void a_unit_that_was_never_offered_waits_for_no_slice(void) {
        Terms t;

        terms_init(&t, (MemoryUnit){20480});
        want(&t, "share", "20GiB");
        ASSERT_TRUE(terms_settle(&t, true));
        want(&t, "share", "");
        ASSERT_TRUE(terms_settle(&t, true));
        ASSERT_INT(t.unit.mib, 1024);
}

static void the_users_unit_goes_before_the_charts(void) {
        Terms t;

        begin(&t, "share");
        want(&t, "share", "128MiB");
        ASSERT_TRUE(t.users_unit);
        ASSERT_FALSE(terms_settle(&t, true));
        stops(&t, ""); /* refused while slices are held, and stops nothing */
        t.drain = true;
        stops(&t, "gpu-mem-unit GiB -> 128MiB");
        want(&t, "cgpu", "128MiB");
        stops(&t, "mode share -> cgpu, gpu-mem-unit GiB -> 128MiB");
        ASSERT_TRUE(terms_settle(&t, false));
        ASSERT_INT(t.unit.mib, 128);
        ASSERT_FALSE(t.offered);
        /* What this agent wrote is no user's wish: the chart may change it. */
        (void) snprintf(t.said_unit, sizeof t.said_unit, "128MiB");
        want(&t, "cgpu", "128MiB");
        ASSERT_INT(t.wanted_unit.mib, 1024);
        want(&t, "cgpu", "lots");
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
        ASSERT_FALSE(again.offered);
        ASSERT_OK(terms_read(STR("{\"mode\":\"unknown\",\"unit\":\"GiB\"}"), &again, NULL));
        ASSERT_INT(again.mode, SHARE_MODE_NONE);
        ASSERT_TRUE(again.offered);
        ASSERT_INT(terms_read(STR("{\"mode\":\"share\",\"unit\":\"0\"}"), &again, NULL), TERMS_E_MALFORMED);
        ASSERT_INT(terms_read(STR("{\"mode\":"), &again, NULL), TERMS_E_MALFORMED);
}

int main(void) {
        return TEST_MAIN(TEST(a_mode_waits_for_the_last_slice),
                         TEST(no_label_and_an_unknown_one_change_nothing), TEST(no_mode_waits_for_no_slice),
                         TEST(a_unit_that_was_never_offered_waits_for_no_slice),
                         TEST(the_users_unit_goes_before_the_charts), TEST(terms_survive_a_restart));
}
