/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Statistics of a trace: which calls, how often, their sizes and results; and answers to the
 * questions in tests/gpu/README.md. */

#include <stdio.h>

#include "line.h"

typedef struct Table Table;

Table *table_new(void); /* NULL: no memory */
void table_free(Table *t);
int table_add(Table *t, const TraceEvent *e); /* 0, or -1: no memory */
void table_print(const Table *t, FILE *out);
