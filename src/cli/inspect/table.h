/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Columns for people. A table is first written as plain text, a tab behind each cell and a newline
 * behind each line, and aligned in one go: the report's lines of dashes are defined by the length
 * of that plain text. */

#include "base/buf.h"

/* Appends `text` to *out with its cells padded as Go's text/tabwriter does it with minwidth 0 and
 * padding 2: a column is a run of neighbouring lines that each have a tab-terminated cell at that
 * index, and is as wide as its widest cell plus 2. Blanks at the end of a line are dropped. Returns
 * 0 or -ENOMEM. */
int table_align(Str text, Buf *out);

/* One cell with its tab. Bytes outside printable ASCII, which no name in Kubernetes has but a file
 * may claim, become '?': they would break the table, or steer the terminal. */
void table_cell(Buf *text, Str cell);
void table_cellf(Buf *text, const char *format, ...) _printf_(2, 3);

/* Ends the line: behind the last cell's tab, or in its place, so that the last cell belongs to no
 * column. The dashes are counted over the one in the summary and the other in the details. */
void table_line_end(Buf *text);
void table_line_close(Buf *text);

void table_dashes(Buf *text, size_t n); /* with the newline */
