/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Columns for people. A table is first written as plain text, with a tab after each cell and a
 * newline after each line, and then aligned as a whole. The length of that plain text sets the
 * report's lines of dashes. */

#include "base/buf.h"

/* Appends `text` to *out, its cells padded as by Go's text/tabwriter with minwidth 0 and padding 2.
 * A column is a run of neighbouring lines that have a tab-terminated cell at that index. It is as
 * wide as its widest cell plus 2. Blanks at the end of a line are dropped. Returns 0 or -ENOMEM. */
int table_align(Str text, Buf *out);

/* Writes one cell with its tab. Bytes outside printable ASCII become '?', because they would break
 * the table or control the terminal. Names in Kubernetes have none, but a file may. */
void table_cell(Buf *text, Str cell);
void table_cellf(Buf *text, const char *format, ...) _printf_(2, 3);

/* End the line: table_line_end() after the last cell's tab, table_line_close() in its place, so
 * that the last cell belongs to no column. The summary's dashes are counted over the former, those
 * of the details over the latter. */
void table_line_end(Buf *text);
void table_line_close(Buf *text);

void table_dashes(Buf *text, size_t n); /* ends with a newline */
