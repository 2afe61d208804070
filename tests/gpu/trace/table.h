/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a trace says, counted: which calls, how often, how large, what came back; and what it
 * answers of the questions in tests/gpu/README.md. */

#include <stdio.h>

#include "line.h"

typedef struct Table Table;

Table *table_new(void); /* NULL: no memory */
void table_free(Table *t);
int table_add(Table *t, const TraceEvent *e); /* 0, or -1: no memory */
void table_print(const Table *t, FILE *out);
