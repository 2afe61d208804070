/* SPDX-License-Identifier: Apache-2.0 */
#include "base/grid.h"

#include <errno.h>
#include <stdarg.h>

#include "base/minmax.h"

enum { GAP = 2, COLUMNS_MAX = 16, BAR_MIN = 10, BAR_MAX = 40, NAME_LEAST = 6, INDENT = 2 };

void grid_done(Grid *g) {
        free(g->cells);
        arena_done(&g->arena);
        *g = (Grid){.columns = g->columns, .n_columns = g->n_columns};
}

void grid_row(Grid *g) {
        size_t size;
        GridCell *moved;

        if (g->n_rows == g->capacity && !g->broken) {
                size_t capacity = g->capacity > 0 ? 2 * g->capacity : 64;

                moved = __builtin_mul_overflow(capacity * g->n_columns, sizeof *moved, &size)
                                ? NULL
                                : realloc(g->cells, size);
                g->broken = !moved;
                g->cells = moved ? moved : g->cells;
                g->capacity = moved ? capacity : g->capacity;
        }
        if (g->broken)
                return;
        for (size_t i = 0; i < g->n_columns; i++)
                g->cells[g->n_rows * g->n_columns + i] = (GridCell){.tone = GRID_PLAIN};
        g->n_rows++;
}

static GridCell *last_row(Grid *g, size_t column) {
        return g->broken || g->n_rows == 0 ? NULL : &g->cells[(g->n_rows - 1) * g->n_columns + column];
}

static bool is_plain(char c) {
        return c >= ' ' && c <= '~';
}

void grid_text(Grid *g, size_t column, Str text, GridTone tone) {
        GridCell *cell = last_row(g, column);
        char *copy;

        if (!cell || text.len == 0)
                return;
        copy = arena_new(&g->arena, char, text.len);
        g->broken = !copy;
        if (!copy)
                return;
        for (size_t i = 0; i < text.len; i++)
                copy[i] = is_plain(text.data[i]) ? text.data[i] : '?';
        cell->text = (Str){copy, text.len};
        cell->tone = tone;
}

void grid_textf(Grid *g, size_t column, GridTone tone, const char *format, ...) {
        _cleanup_buf_ Buf text = BUF_NULL;
        va_list args;

        va_start(args, format);
        buf_vappendf(&text, format, args);
        va_end(args);
        g->broken |= text.broken;
        grid_text(g, column, buf_str(&text), tone);
}

void grid_bar(Grid *g, size_t column, uint64_t used, uint64_t total) {
        GridCell *cell = last_row(g, column);

        if (cell)
                *cell = (GridCell){.tone = used > total ? GRID_BAD : GRID_GOOD, .used = used, .total = total};
}

/* ---- widths ---- */

typedef struct Layout {
        /* columns of the terminal: of the longest text, and as printed; 0: not printed */
        size_t natural[COLUMNS_MAX], width[COLUMNS_MAX];
} Layout;

static bool has_content(const Grid *g, size_t column) {
        for (size_t row = 0; row < g->n_rows; row++) {
                const GridCell *cell = &g->cells[row * g->n_columns + column];

                if (cell->text.len > 0 || cell->total > 0 || cell->used > 0)
                        return true;
        }
        return false;
}

static void measure_columns(const Grid *g, Layout *l) {
        for (size_t i = 0; i < g->n_columns; i++) {
                size_t widest = max_size(strlen(g->columns[i].title), g->columns[i].bar ? BAR_MIN : 0);

                for (size_t row = 0; row < g->n_rows; row++)
                        widest = max_size(widest, g->cells[row * g->n_columns + i].text.len);
                l->natural[i] = has_content(g, i) ? widest : 0;
        }
}

static size_t sum_widths(const Grid *g, const Layout *l) {
        size_t total = 0;

        for (size_t i = 0; i < g->n_columns; i++)
                if (l->width[i] > 0)
                        total += l->width[i] + (total > 0 ? GAP : 0);
        return total;
}

/* Shortens columns, the left ones first, until the table fits. Returns whether it does. */
static bool shrink_columns(const Grid *g, Layout *l, size_t width) {
        for (size_t i = 0; i < g->n_columns; i++) {
                size_t total = sum_widths(g, l), least = g->columns[i].shrink_to;

                if (total <= width)
                        return true;
                if (least > 0 && l->width[i] > least)
                        l->width[i] -= min_size(total - width, l->width[i] - least);
        }
        return sum_widths(g, l) <= width;
}

/* Leaves out columns step by step. Where even the rest is too wide, the first column is shortened
 * once more, and the last ones are left out. */
static void lay_out(const Grid *g, size_t width, Layout *l) {
        size_t total;

        measure_columns(g, l);
        for (unsigned step = 0; step <= g->n_columns; step++) {
                for (size_t i = 0; i < g->n_columns; i++)
                        l->width[i] =
                                g->columns[i].drop > 0 && g->columns[i].drop <= step ? 0 : l->natural[i];
                if (shrink_columns(g, l, width))
                        break;
        }
        total = sum_widths(g, l);
        if (total > width && l->width[0] > NAME_LEAST)
                l->width[0] -= min_size(total - width, l->width[0] - NAME_LEAST);
        for (size_t i = g->n_columns; i-- > 1 && sum_widths(g, l) > width;)
                l->width[i] = 0;
        l->width[0] = min_size(l->width[0], width);
        total = sum_widths(g, l);
        for (size_t i = 0; i < g->n_columns; i++)
                if (g->columns[i].bar && l->width[i] > 0)
                        l->width[i] = min_size(l->width[i] + width - total, BAR_MAX);
}

/* ---- lines ---- */

static void repeat_text(Buf *out, size_t n, const char *text) {
        for (; n > 0; n--)
                buf_append_str(out, str_from(text));
}

void grid_tone(GridTone tone, const GridStyle *style, Buf *out) {
        /* "Select graphic rendition" of ECMA-48 */
        static const char *const codes[] = {
                [GRID_PLAIN] = "\033[0m", [GRID_BOLD] = "\033[1m",  [GRID_DIM] = "\033[2m",
                [GRID_GOOD] = "\033[32m", [GRID_WARN] = "\033[33m", [GRID_BAD] = "\033[31m"};

        if (style->colour)
                buf_append_str(out, str_from(codes[tone]));
}

static void begin_tone(GridTone tone, const GridStyle *style, Buf *out) {
        if (tone != GRID_PLAIN)
                grid_tone(tone, style, out);
}

static void end_tone(GridTone tone, const GridStyle *style, Buf *out) {
        if (tone != GRID_PLAIN)
                grid_tone(GRID_PLAIN, style, out);
}

/* The filled blocks of a bar: at least one where anything is used, all only where everything is. */
static size_t filled_blocks(uint64_t used, uint64_t total, size_t width) {
        size_t n;

        if (used >= total)
                return used > 0 ? width : 0;
        n = (size_t) ((unsigned __int128) used * width / total);
        return used > 0 ? max_size(n, 1) : 0;
}

static void print_bar(const GridCell *cell, size_t width, const GridStyle *style, Buf *out) {
        size_t inner = style->utf8 ? width : width - 2, full = filled_blocks(cell->used, cell->total, inner);

        if (cell->total == 0 && cell->used == 0) {
                repeat_text(out, width, " ");
                return;
        }
        repeat_text(out, !style->utf8, "[");
        begin_tone(full > 0 ? cell->tone : GRID_PLAIN, style, out);
        repeat_text(out, full, style->utf8 ? "\u2588" : "#");
        end_tone(full > 0 ? cell->tone : GRID_PLAIN, style, out);
        repeat_text(out, inner - full, style->utf8 ? "\u2591" : ".");
        repeat_text(out, !style->utf8, "]");
}

/* Cuts the middle out of a text that is too wide: names of neighbouring rows rarely differ
 * there. */
static void print_short(Str text, size_t width, Buf *out) {
        size_t head, tail;

        if (text.len <= width || width < 4) {
                buf_append(out, text.data, min_size(text.len, width));
                return;
        }
        head = (width - 2) / 2;
        tail = width - 2 - head;
        buf_append(out, text.data, head);
        buf_append_str(out, STR(".."));
        buf_append(out, text.data + text.len - tail, tail);
}

static void print_cell(const GridColumn *c, const GridCell *cell, size_t width, const GridStyle *style,
                       Buf *out) {
        size_t blanks = width - min_size(cell->text.len, width);

        repeat_text(out, c->right ? blanks : 0, " ");
        begin_tone(cell->tone, style, out);
        print_short(cell->text, width, out);
        end_tone(cell->tone, style, out);
        repeat_text(out, c->right ? 0 : blanks, " ");
}

static void print_line(const Grid *g, const Layout *l, const GridCell *cells, const GridStyle *style,
                       Buf *out) {
        size_t start = out->len;

        for (size_t i = 0; i < g->n_columns; i++) {
                if (l->width[i] == 0)
                        continue;
                repeat_text(out, out->len > start ? GAP : 0, " ");
                if (g->columns[i].bar && cells[i].text.len == 0)
                        print_bar(&cells[i], l->width[i], style, out);
                else
                        print_cell(&g->columns[i], &cells[i], l->width[i], style, out);
        }
        while (out->len > start && out->data[out->len - 1] == ' ')
                out->len--;
        buf_append_char(out, '\n');
}

int grid_print(const Grid *g, size_t n_rows, const GridStyle *style, Buf *out) {
        GridCell titles[COLUMNS_MAX] = {{.tone = GRID_PLAIN}};
        Layout l = {.natural = {0}};

        if (g->broken)
                return -ENOMEM;
        lay_out(g, style->width, &l);
        for (size_t i = 0; i < g->n_columns; i++)
                titles[i] = (GridCell){.text = str_from(g->columns[i].title), .tone = GRID_BOLD};
        print_line(g, &l, titles, style, out);
        for (size_t row = 0; row < n_rows && row < g->n_rows; row++)
                print_line(g, &l, &g->cells[row * g->n_columns], style, out);
        return buf_result(out);
}

void grid_fold(Str text, size_t width, Buf *out) {
        size_t column = 0;
        bool first = true;

        width = max_size(width, INDENT + 1);
        while (text.len > 0) {
                Str word = str_split(&text, ' ');

                if (column > 0 && column + 1 + word.len > width) {
                        repeat_text(out, 1, "\n  ");
                        column = INDENT;
                        first = true;
                }
                if (!first) {
                        buf_append_char(out, ' ');
                        column++;
                }
                first = false;
                for (size_t i = 0; i < word.len; i++, column++) {
                        if (column == width) {
                                repeat_text(out, 1, "\n  ");
                                column = INDENT;
                        }
                        buf_append_char(out, is_plain(word.data[i]) ? word.data[i] : '?');
                }
        }
        buf_append_char(out, '\n');
}
