/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grid.h"
#include "test.h"

static const GridColumn columns[] = {
        {.title = "NAME", .shrink_to = 8},
        {.title = "KIND", .drop = 1},
        {.title = "BAR", .bar = true, .drop = 2},
        {.title = "N", .right = true},
};

static void check(size_t width, bool utf8, bool colour, const char *expected) {
        _cleanup_(grid_done) Grid g = {.columns = columns, .n_columns = ELEMENTSOF(columns)};
        const GridStyle style = {width, utf8, colour};
        _cleanup_buf_ Buf out = BUF_NULL;

        grid_row(&g);
        grid_text(&g, 0, STR("a-long-name-01"), GRID_PLAIN);
        grid_text(&g, 1, STR("k\x1b["), GRID_BAD);
        grid_bar(&g, 2, 1, 100);
        grid_textf(&g, 3, GRID_PLAIN, "%d", 7);
        grid_row(&g);
        grid_text(&g, 0, STR("b"), GRID_PLAIN);
        grid_bar(&g, 2, 99, 100);
        grid_textf(&g, 3, GRID_PLAIN, "%d", 42);
        ASSERT_OK(grid_print(&g, 2, &style, &out));
        ASSERT_STR(buf_str(&out), str_from(expected));
}

static void fits_the_width(void) {
        check(36, false, false,
              "NAME            KIND  BAR          N\n"
              "a-long-name-01  k?[   [#.......]   7\n"
              "b                     [#######.]  42\n");
        check(32, false, false,
              "NAME        KIND  BAR          N\n"
              "a-lo..e-01  k?[   [#.......]   7\n"
              "b                 [#######.]  42\n");
        check(24, false, false,
              "NAME      BAR          N\n"
              "a-l..-01  [#.......]   7\n"
              "b         [#######.]  42\n");
        check(14, false, false,
              "NAME         N\n"
              "a-lo..e-01   7\n"
              "b           42\n");
        check(11, false, false, "NAME      N\na-..-01   7\nb        42\n");
        check(8, false, false, "NAME\na-..01\nb\n");
}

static void keeps_long_texts_whole(void) {
        _cleanup_(grid_done) Grid g = {.columns = columns, .n_columns = ELEMENTSOF(columns)};
        const GridStyle style = {.width = 1000};
        _cleanup_buf_ Buf out = BUF_NULL;

        grid_row(&g);
        grid_textf(&g, 0, GRID_PLAIN, "%0253d (deleted)", 7);
        ASSERT_OK(grid_print(&g, 1, &style, &out));
        ASSERT_STR(((Str){out.data + out.len - 12, 12}), STR("7 (deleted)\n"));
}

static void draws_and_colours(void) {
        check(32, true, true,
              "\033[1mNAME\033[0m        \033[1mKIND\033[0m  \033[1mBAR\033[0m          \033[1mN\033[0m\n"
              "a-lo..e-01  \033[31mk?[\033[0m   "
              "\033[32m\u2588\033[0m\u2591\u2591\u2591\u2591\u2591\u2591\u2591\u2591\u2591   7\n"
              "b                 \033[32m\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\033[0m\u2591 "
              " 42\n");
}

static void leaves_out_what_is_empty(void) {
        _cleanup_(grid_done) Grid g = {.columns = columns, .n_columns = ELEMENTSOF(columns)};
        const GridStyle style = {.width = 80};
        _cleanup_buf_ Buf out = BUF_NULL;

        grid_row(&g);
        grid_text(&g, 0, STR("a"), GRID_PLAIN);
        ASSERT_OK(grid_print(&g, 1, &style, &out));
        ASSERT_STR(buf_str(&out), STR("NAME\na\n"));
}

static void folds_texts(void) {
        _cleanup_buf_ Buf out = BUF_NULL;

        grid_fold(STR("one two three aVeryLongWord\x07 x"), 9, &out);
        ASSERT_STR(buf_str(&out), STR("one two\n  three\n  aVeryLo\n  ngWord?\n  x\n"));
        buf_clear(&out);
        grid_fold(STR(""), 9, &out);
        ASSERT_STR(buf_str(&out), STR("\n"));
}

int main(void) {
        return TEST_MAIN(TEST(fits_the_width), TEST(draws_and_colours), TEST(leaves_out_what_is_empty),
                         TEST(folds_texts), TEST(keeps_long_texts_whole));
}
