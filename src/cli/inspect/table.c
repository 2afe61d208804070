/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/table.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

enum { PADDING = 2 };

/* Consecutive lines that have at least one tab. No column extends beyond such a block, so each
 * block is aligned by itself. A long report thus needs no more memory than its longest table. */
typedef struct Block {
        size_t n_lines;
        size_t *first; /* for each line, index of its first cell in `width`; n_lines + 1 entries */
        size_t *width; /* for each cell that a tab ends: its own width, later that of its column */
} Block;

static void block_done(Block *b) {
        free(b->first);
        free(b->width);
}

static bool has_tab(Str line) {
        return line.len > 0 && memchr(line.data, '\t', line.len);
}

static size_t count_char(Str s, char c) {
        size_t n = 0;

        for (size_t i = 0; i < s.len; i++)
                n += s.data[i] == c;
        return n;
}

static int block_measure(Block *b, Str text) {
        size_t cell = 0;

        b->n_lines = count_char(text, '\n');
        b->first = calloc(b->n_lines + 1, sizeof *b->first);
        b->width = calloc(count_char(text, '\t') + 1, sizeof *b->width);
        if (!b->first || !b->width)
                return -ENOMEM;
        for (size_t line = 0; line < b->n_lines; line++) {
                Str rest = str_split(&text, '\n');

                b->first[line] = cell;
                while (has_tab(rest))
                        b->width[cell++] = str_split(&rest, '\t').len;
        }
        b->first[b->n_lines] = cell;
        return 0;
}

static bool line_has(const Block *b, size_t line, size_t column) {
        return line < b->n_lines && b->first[line] + column < b->first[line + 1];
}

/* Gives each run of consecutive cells in this column the width of its widest cell. Returns false
 * when no line has this column. */
static bool column_settle(Block *b, size_t column) {
        bool any = false;

        for (size_t line = 0; line < b->n_lines; line++) {
                size_t end = line, widest = 0;

                for (; line_has(b, end, column); end++)
                        if (b->width[b->first[end] + column] > widest)
                                widest = b->width[b->first[end] + column];
                any |= end > line;
                for (; line < end; line++)
                        b->width[b->first[line] + column] = widest;
        }
        return any;
}

static void trim_blanks(Buf *out, size_t start) {
        while (out->len > start && out->data[out->len - 1] == ' ')
                out->len--;
}

static void plain_print(Str line, Buf *out) {
        size_t start = out->len;

        buf_append_str(out, line);
        trim_blanks(out, start);
        buf_append_char(out, '\n');
}

static void line_print(Str line, const size_t *width, Buf *out) {
        size_t start = out->len;

        while (has_tab(line)) {
                Str cell = str_split(&line, '\t');

                buf_append_str(out, cell);
                for (size_t n = *width++ + PADDING - cell.len; n > 0; n--)
                        buf_append_char(out, ' ');
        }
        buf_append_str(out, line);
        trim_blanks(out, start);
        buf_append_char(out, '\n');
}

static int block_print(Str text, Buf *out) {
        _cleanup_(block_done) Block b = {0};
        int r;

        r = block_measure(&b, text);
        if (r < 0)
                return r;
        for (size_t column = 0; column_settle(&b, column);)
                column++;
        for (size_t line = 0; line < b.n_lines; line++)
                line_print(str_split(&text, '\n'), b.width + b.first[line], out);
        return 0;
}

int table_align(Str text, Buf *out) {
        assert(text.len == 0 || text.data[text.len - 1] == '\n');

        while (text.len > 0) {
                Str block = {text.data, 0}, line = str_split(&text, '\n');
                int r;

                if (!has_tab(line)) {
                        plain_print(line, out);
                        continue;
                }
                block.len = line.len + 1;
                for (Str ahead = text; has_tab(line = str_split(&ahead, '\n')); text = ahead)
                        block.len += line.len + 1;
                r = block_print(block, out);
                if (r < 0)
                        return r;
        }
        return buf_result(out);
}

static void clean_text(Buf *text, size_t start) {
        for (size_t i = start; i < text->len; i++)
                if (text->data[i] < ' ' || text->data[i] > '~')
                        text->data[i] = '?';
}

void table_cell(Buf *text, Str cell) {
        size_t start = text->len;

        buf_append_str(text, cell);
        clean_text(text, start);
        buf_append_char(text, '\t');
}

void table_cellf(Buf *text, const char *format, ...) {
        size_t start = text->len;
        va_list args;

        va_start(args, format);
        buf_vappendf(text, format, args);
        va_end(args);
        clean_text(text, start);
        buf_append_char(text, '\t');
}

void table_line_end(Buf *text) {
        buf_append_char(text, '\n');
}

void table_line_close(Buf *text) {
        if (text->len > 0 && !text->broken && text->data[text->len - 1] == '\t')
                text->data[text->len - 1] = '\n';
}

void table_dashes(Buf *text, size_t n) {
        for (; n > 0; n--)
                buf_append_char(text, '-');
        buf_append_char(text, '\n');
}
