/* SPDX-License-Identifier: Apache-2.0 */
#include "share/resize_status.h"
#include "test.h"

static const ResizeInForce two[] = {{0, {6, 50}, {8, 60}}, {2, {4, 0}, {4, 0}}};

static void assert_written(Str refused, size_t n, const char *expected) {
        _cleanup_buf_ Buf text = BUF_NULL;
        ResizeStatus status;

        resize_status_write(refused, two, n, &text);
        ASSERT_STR(buf_str(&text), str_from(expected));
        ASSERT_OK(resize_status_read(buf_str(&text), &status));
        ASSERT_STR(status.refused, refused);
        ASSERT_INT(status.n, n);
        ASSERT_TRUE(n == 0 || memcmp(status.list, two, n * sizeof two[0]) == 0);
}

static void what_is_written_is_read(void) {
        assert_written(STR(""), 1, "in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60");
        assert_written(
                STR(""), 2,
                "in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60; container 2: gpu-mem 4 of 4");
        assert_written(
                STR("the pod is ending"), 1,
                "refused: the pod is ending; in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60");
        assert_written(STR("nothing runs"), 0, "refused: nothing runs");
        assert_written(STR(""), 0, "");
}

static void what_waits_is_read(void) {
        _cleanup_buf_ Buf with = BUF_NULL, without = BUF_NULL;
        ResizeStatus status;

        resize_status_write_waiting(STR("the disk is full"), two, 1, &with);
        ASSERT_STR(buf_str(&with),
                   STR("waits: the disk is full; in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60"));
        ASSERT_OK(resize_status_read(buf_str(&with), &status));
        ASSERT_STR(status.waits, STR("the disk is full"));
        ASSERT_TRUE(status.n == 1 && str_is_empty(status.refused));
        resize_status_write_waiting(STR("the page is leased"), two, 0, &without);
        ASSERT_STR(buf_str(&without), STR("waits: the page is leased"));
        ASSERT_OK(resize_status_read(buf_str(&without), &status));
        ASSERT_STR(status.waits, STR("the page is leased"));
        ASSERT_INT(status.n, 0);
}

/* A value of a user in the refusal never counts as a size. */
static void a_refusal_may_quote_anything(void) {
        assert_written(
                STR("annotation aliquot.dev/gpu-mem is \"in force: container 0: gpu-mem 1 of 8; \""), 1,
                "refused: annotation aliquot.dev/gpu-mem is \"in force: container 0: gpu-mem 1 of 8; \"; "
                "in force: container 0: gpu-mem 6 of 8, gpu-core 50 of 60");
}

static void other_texts_are_malformed(void) {
        static const char *const texts[] = {
                "mine",
                "in force: ",
                "in force: container 0: gpu-mem 6",
                "in force: container 0: gpu-mem 6 of 8 and more",
                "in force: container 0: gpu-mem 6 of 8; ",
                "in force: container 0: gpu-mem 99999999999 of 99999999999",
                "in force: container x: gpu-mem 6 of 8",
                "x in force: container 0: gpu-mem 6 of 8",
                "refused: in force: container 0: gpu-mem 6 of 8x",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                ResizeStatus status;

                if (resize_status_read(str_from(texts[i]), &status) != RESIZE_STATUS_E_MALFORMED)
                        TEST_FAIL_("\"%s\" is read", texts[i]);
                ASSERT_INT(status.n, 0);
        }
}

static void a_size_is_found_by_the_index(void) {
        ResizeStatus status = {.list = {two[0], two[1]}, .n = 2};

        ASSERT_INT(resize_status_find(&status, 2)->size.mem, 4);
        ASSERT_TRUE(resize_status_find(&status, 1) == NULL);
        ASSERT_TRUE(resize_status_differs(&status));
        status.list[0].size = status.list[0].limit;
        ASSERT_TRUE(!resize_status_differs(&status));
}

static void assert_fulfils(const char *mem, const char *core, bool expected) {
        const ResizeStatus status = {.list = {two[0], two[1]}, .n = 2};

        if (resize_status_fulfils(&status, str_from(mem), str_from(core)) != expected)
                TEST_FAIL_("\"%s\", \"%s\"", mem, core);
}

static void a_size_above_the_limit_is_read(void) {
        static const Str text = STR("in force: container 0: gpu-mem 12 of 8, gpu-core 70 of 60");
        ResizeStatus status;

        ASSERT_OK(resize_status_read(text, &status));
        ASSERT_INT(status.list[0].size.mem, 12);
        ASSERT_INT(status.list[0].size.core, 70);
        ASSERT_TRUE(resize_status_fulfils(&status, STR("12"), STR("70")));
        ASSERT_FALSE(resize_status_fulfils(&status, STR("13"), STR("70")));
}

/* two: 6 of 8 and 50 of 60, 4 of 4. */
static void a_wish_is_fulfilled(void) {
        assert_fulfils("{\"0\":6}", "50", true);
        assert_fulfils("{\"0\":6,\"2\":4}", "{\"0\":50}", true);
        assert_fulfils("{\"0\":6}", "", false);
        assert_fulfils("{\"0\":6,\"2\":3}", "50", false);
        assert_fulfils("", "", false);
        assert_fulfils("{\"0\":9}", "50", false);
        assert_fulfils("x", "50", false);
        ASSERT_TRUE(resize_status_fulfils(&(ResizeStatus){.n = 0}, STR(""), STR("")));
}

/* More containers than there is room for: none is shown, rather than a part. */
static void too_many_containers(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        ResizeInForce list[RESIZE_STATUS_CONTAINERS + 1];
        ResizeStatus status;

        for (uint32_t i = 0; i < ELEMENTSOF(list); i++)
                list[i] = (ResizeInForce){.index = i, .size = {1, 0}, .limit = {2, 0}};
        resize_status_write(STR(""), list, RESIZE_STATUS_CONTAINERS, &text);
        ASSERT_OK(resize_status_read(buf_str(&text), &status));
        ASSERT_INT(status.n, RESIZE_STATUS_CONTAINERS);
        buf_clear(&text);
        resize_status_write(STR(""), list, ELEMENTSOF(list), &text);
        ASSERT_INT(resize_status_read(buf_str(&text), &status), RESIZE_STATUS_E_MALFORMED);
        ASSERT_INT(status.n, 0);
}

int main(void) {
        return TEST_MAIN(TEST(what_is_written_is_read), TEST(what_waits_is_read),
                         TEST(a_refusal_may_quote_anything), TEST(other_texts_are_malformed),
                         TEST(a_size_is_found_by_the_index), TEST(a_size_above_the_limit_is_read),
                         TEST(a_wish_is_fulfilled), TEST(too_many_containers));
}
