/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A table that fits a terminal: one line per row whatever the width is. In a narrow terminal some
 * columns are shortened, then left out; in a wide one the bar grows. Pure: it knows no terminal. */

#include "base/arena.h"
#include "base/buf.h"

typedef enum GridTone {
        GRID_PLAIN,
        GRID_BOLD,
        GRID_DIM,
        GRID_GOOD,
        GRID_WARN,
        GRID_BAD,
} GridTone;

typedef struct GridColumn {
        const char *title;
        bool right;         /* aligned right, for numbers */
        bool bar;           /* drawn from used and total of the cell */
        unsigned shrink_to; /* shortened in the middle down to this width; 0: never */
        /* the order in which a narrow table leaves columns out, 1 first; 0: never */
        unsigned drop;
} GridColumn;

typedef struct GridCell {
        Str text;
        GridTone tone;
        uint64_t used, total; /* of a bar: the filled part, and the whole */
} GridCell;

typedef struct GridStyle {
        size_t width; /* columns of the terminal */
        bool utf8;    /* bars of block characters; otherwise ASCII */
        bool colour;
} GridStyle;

typedef struct Grid {
        const GridColumn *columns;
        size_t n_columns;
        GridCell *cells; /* row by row */
        size_t n_rows, capacity;
        Arena arena; /* texts of the cells */
        bool broken; /* no memory; the functions below do nothing then */
} Grid;

void grid_done(Grid *g);

/* Begins a row of empty cells. A column without any content is not printed. */
void grid_row(Grid *g);

/* Set a cell of the last row. The text is copied, and bytes outside printable ASCII become '?'. */
void grid_text(Grid *g, size_t column, Str text, GridTone tone);
void grid_textf(Grid *g, size_t column, GridTone tone, const char *format, ...) _printf_(4, 5);
void grid_bar(Grid *g, size_t column, uint64_t used, uint64_t total);

/* Appends the titles and the first n_rows rows. Returns 0 or -ENOMEM. */
int grid_print(const Grid *g, size_t n_rows, const GridStyle *style, Buf *out);

/* Appends a text in lines of at most the width, broken at blanks; all lines but the first begin
 * with two blanks. */
void grid_fold(Str text, size_t width, Buf *out);

void grid_tone(GridTone tone, const GridStyle *style, Buf *out); /* GRID_PLAIN: back to normal */
