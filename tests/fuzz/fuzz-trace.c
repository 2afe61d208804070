/* SPDX-License-Identifier: Apache-2.0 */

/* Any file of a trace: each line is accepted or refused, counted, and made a vector that can be
 * read again. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/table.h"
#include "trace/vector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A written vector must be accepted, and mean the same. */
static void read_again(char *text, const TraceEvent *e) {
        static TraceEvent again;

        text[strcspn(text, "\n")] = '\0';
        if (text[0] == '\0')
                return;
        if (trace_parse(text, &again) != 0 || again.verb != TRACE_VECTOR || again.nr != e->nr ||
            again.outer.n != e->outer.n || again.inner.n != e->inner.n ||
            strcmp(again.what, vector_what(&again)) != 0)
                abort();
}

static void take(Table *table, const char *line) {
        static TraceEvent e;
        Vectors vectors = {.out = NULL};
        char *text = NULL;
        size_t n;

        if (trace_parse(line, &e) != 0)
                return;
        if (table_add(table, &e) < 0)
                abort();
        vectors.out = open_memstream(&text, &n);
        if (!vectors.out || vector_add(&vectors, &e) < 0 || fclose(vectors.out) != 0)
                abort();
        read_again(text, &e);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1), *rest = text, *line;
        static FILE *nowhere;
        Table *table = table_new();

        if (!nowhere)
                nowhere = fopen("/dev/null", "we");
        if (!text || !table || !nowhere)
                abort();
        memcpy(text, data, size);
        text[size] = '\0';
        while ((line = strsep(&rest, "\n")))
                take(table, line);
        table_print(table, nowhere);
        table_free(table);
        free(text);
        return 0;
}
