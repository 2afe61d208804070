/* SPDX-License-Identifier: Apache-2.0 */

/* rm-trace [--vectors FILE] TRACE...: prints traces of librm-trace.so as tables, and writes golden
 * vectors to a file. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "vector.h"

typedef struct Reading {
        Table *table;
        Vectors vectors;
        unsigned long long lines, bad;
} Reading;

static int take_line(Reading *r, char *line) {
        static TraceEvent e;
        int parsed;

        line[strcspn(line, "\n")] = '\0';
        r->lines++;
        parsed = trace_parse(line, &e);
        if (parsed != 0) {
                r->bad += parsed < 0; /* the last line of a program that was killed is cut */
                return 0;
        }
        if (table_add(r->table, &e) < 0)
                return -ENOMEM;
        return r->vectors.out && vector_add(&r->vectors, &e) < 0 ? -EIO : 0;
}

static int take_file(Reading *r, const char *path) {
        FILE *f = fopen(path, "re");
        char *line = NULL;
        size_t size = 0;
        int result = 0;

        if (!f)
                return -errno;
        while (result == 0 && getline(&line, &size, f) > 0)
                result = take_line(r, line);
        free(line);
        (void) fclose(f);
        return result;
}

static int take_all(Reading *r, char **paths) {
        for (; *paths; paths++) {
                int result = take_file(r, *paths);

                if (result < 0) {
                        (void) fprintf(stderr, "rm-trace: %s: %s\n", *paths, strerror(-result));
                        return 3;
                }
        }
        table_print(r->table, stdout);
        if (r->bad > 0)
                (void) fprintf(stderr, "rm-trace: %llu of %llu lines are none\n", r->bad, r->lines);
        if (r->vectors.out && fclose(r->vectors.out) != 0)
                return 3;
        return fflush(stdout) == 0 ? 0 : 3;
}

int main(int argc, char **argv) {
        Reading r = {.table = table_new()};
        int first = 1, status;

        if (argc > 2 && strcmp(argv[1], "--vectors") == 0) {
                r.vectors.out = fopen(argv[2], "we");
                if (!r.vectors.out) {
                        (void) fprintf(stderr, "rm-trace: %s: %s\n", argv[2], strerror(errno));
                        return 3;
                }
                first = 3;
        }
        if (r.vectors.out)
                (void) fputs("# Calls of the driver, before and after: tests/gpu/trace/vector.h\n",
                             r.vectors.out);
        if (first >= argc || !r.table) {
                (void) fputs("usage: rm-trace [--vectors FILE] TRACE...\n", stderr);
                return 2;
        }
        status = take_all(&r, argv + first);
        table_free(r.table);
        return status;
}
