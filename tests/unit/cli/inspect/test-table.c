/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/table.h"
#include "test.h"

static void check(const char *text, const char *expected) {
        _cleanup_buf_ Buf out = BUF_NULL;

        ASSERT_OK(table_align(str_from(text), &out));
        ASSERT_STR(buf_str(&out), str_from(expected));
}

static void pads_to_the_widest_cell_plus_two(void) {
        check("a\tb\tc\nlonger\tx\ty\n", "a       b  c\nlonger  x  y\n");
        check("a\tlast cells have no column\nb\tx\n", "a  last cells have no column\nb  x\n");
}

static void a_column_ends_at_a_line_without_it(void) {
        check("longer\tx\n\na\tx\n", "longer  x\n\na  x\n");
        check("longer\tx\nplain\na\tx\n", "longer  x\nplain\na  x\n");
        /* the middle line has no second column, so that it parts the widths above from those
         * below */
        check("a\twide wide\tc\nb\tx\nd\te\tf\n", "a  wide wide  c\nb  x\nd  e  f\n");
        check("a\twide wide\t\nb\tx\t\nd\te\t\n", "a  wide wide\nb  x\nd  e\n");
}

static void drops_blanks_at_line_ends(void) {
        check("a\tb\t\n", "a  b\n");
        check("a \n", "a\n");
        check("\t\t\n", "\n");
        check("a\t\tb\n", "a    b\n");
}

static void takes_empty_text(void) {
        check("", "");
        check("\n", "\n");
        check("\n\n", "\n\n");
}

static void replaces_what_would_break_a_line(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        table_cell(&text, STR("a\tb\nc\x1b[2Jd\x7f\xc3\xa9"));
        ASSERT_STR(buf_str(&text), STR("a?b?c?[2Jd???\t"));
}

static void closes_lines(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        table_cell(&text, STR("a"));
        table_line_close(&text);
        table_cellf(&text, "%d", 7);
        table_line_end(&text);
        table_dashes(&text, 3);
        ASSERT_STR(buf_str(&text), STR("a\n7\t\n---\n"));
}

/* As the list of the cards of a large node. */
static void keeps_long_texts_whole(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        table_cellf(&text, "%0300d\t", 7);
        ASSERT_INT((int) text.len, 302);
        ASSERT_STR(((Str){text.data + 299, 3}), STR("7?\t"));
}

int main(void) {
        return TEST_MAIN(TEST(pads_to_the_widest_cell_plus_two), TEST(a_column_ends_at_a_line_without_it),
                         TEST(drops_blanks_at_line_ends), TEST(takes_empty_text),
                         TEST(replaces_what_would_break_a_line), TEST(closes_lines),
                         TEST(keeps_long_texts_whole));
}
