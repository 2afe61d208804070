/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { LINE_MAX_BYTES = 512, COLUMNS_MAX = 16 };

_Noreturn void trace_die(const char *what, const char *about) {
        (void) fprintf(stderr, "bench-packing: %s: %s\n", about, what);
        exit(1);
}

/* ---- files ---- */

/* One line of a file with commas; the first line names the columns. */
typedef struct Table {
        FILE *file;
        const char *path;
        char head[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
        char *names[COLUMNS_MAX], *fields[COLUMNS_MAX];
        size_t n_names, n_fields;
} Table;

static size_t split(char *line, char *ret[static COLUMNS_MAX]) {
        size_t n = 0;

        line[strcspn(line, "\r\n")] = '\0';
        for (char *rest = line, *field; n < COLUMNS_MAX && (field = strsep(&rest, ","));)
                ret[n++] = field;
        return n;
}

static void table_open(Table *t, const char *path) {
        *t = (Table){.file = fopen(path, "re"), .path = path};
        if (!t->file)
                trace_die("cannot be opened", path);
        if (!fgets(t->head, sizeof t->head, t->file))
                trace_die("is empty", path);
        t->n_names = split(t->head, t->names);
}

static int table_next(Table *t) {
        if (!fgets(t->line, sizeof t->line, t->file)) {
                (void) fclose(t->file);
                return 0;
        }
        t->n_fields = split(t->line, t->fields);
        return 1;
}

/* NULL when there is no such column. */
static const char *find_text(const Table *t, const char *column) {
        for (size_t i = 0; i < t->n_names && i < t->n_fields; i++)
                if (strcmp(t->names[i], column) == 0)
                        return t->fields[i];
        return NULL;
}

static const char *text_of(const Table *t, const char *column) {
        const char *text = find_text(t, column);

        if (!text)
                trace_die(column, t->path);
        return text;
}

static int64_t number_of(const Table *t, const char *column) {
        const char *text = text_of(t, column);
        char *end;
        double value = strtod(text, &end);

        if (end == text || *end || !(value >= 0 && value < 1e15))
                trace_die(column, t->path);
        return (int64_t) value;
}

static void *more(void *list, size_t n, size_t size) {
        if (n & (n - 1)) /* room doubles at each power of two */
                return list;
        list = realloc(list, (n > 0 ? 2 * n : 1) * size);
        if (!list)
                trace_die("out of memory", "trace");
        return list;
}

static int by_name(const void *a, const void *b) {
        return strcmp(((const TraceNode *) a)->name, ((const TraceNode *) b)->name);
}

void trace_read_nodes(Trace *t, const char *path) {
        Table table;

        table_open(&table, path);
        while (table_next(&table)) {
                TraceNode n = {.cpu = number_of(&table, "cpu_milli"),
                               .memory = number_of(&table, "memory_mib"),
                               .cards = (uint32_t) number_of(&table, "gpu")};

                if (n.cards == 0)
                        continue;
                if (n.cards > TRACE_CARDS_MAX)
                        trace_die("more than 8 cards on a node", path);
                (void) snprintf(n.name, sizeof n.name, "%s", text_of(&table, "sn"));
                (void) snprintf(n.model, sizeof n.model, "<%s>", text_of(&table, "model"));
                t->nodes = more(t->nodes, t->n_nodes, sizeof *t->nodes);
                t->nodes[t->n_nodes++] = n;
                t->cards += n.cards;
        }
        if (t->n_nodes == 0)
                trace_die("no node has a card", path);
        qsort(t->nodes, t->n_nodes, sizeof *t->nodes, by_name);
}

/* "T4|P100" becomes "<T4>,<P100>". */
static uint32_t find_spec(Trace *t, const char *text) {
        char spec[TRACE_TEXT_MAX] = "", copy[TRACE_TEXT_MAX];
        size_t len = 0;

        if (!text || !*text)
                return 0;
        (void) snprintf(copy, sizeof copy, "%s", text);
        for (char *rest = copy, *model; (model = strsep(&rest, "|"));)
                len += (size_t) snprintf(spec + len, len < sizeof spec ? sizeof spec - len : 0, "%s<%s>",
                                         len > 0 ? "," : "", model);
        for (uint32_t i = 1; i < t->n_specs; i++)
                if (strcmp(t->specs[i], spec) == 0)
                        return i;
        if (t->n_specs == TRACE_SPECS_MAX || len >= sizeof spec)
                trace_die("too many models", text);
        memcpy(t->specs[t->n_specs], spec, sizeof spec);
        return (uint32_t) t->n_specs++;
}

static uint32_t find_kind(Trace *t, const TracePod *p) {
        for (size_t i = 0; i < t->n_pods; i++) {
                const TracePod *q = &t->pods[i];

                if (q->cpu == p->cpu && q->cards == p->cards && q->part == p->part && q->spec == p->spec)
                        return q->kind;
        }
        return (uint32_t) t->n_kinds++;
}

void trace_read_pods(Trace *t, const char *path) {
        Table table;

        free(t->pods);
        t->pods = NULL;
        t->n_pods = t->n_kinds = 0;
        t->n_specs = 1;
        table_open(&table, path);
        while (table_next(&table)) {
                TracePod p = {.cpu = number_of(&table, "cpu_milli"),
                              .memory = number_of(&table, "memory_mib"),
                              .cards = (uint32_t) number_of(&table, "num_gpu"),
                              .part = (uint32_t) number_of(&table, "gpu_milli")};

                if (p.cards > TRACE_CARDS_MAX || p.part > TRACE_CARD)
                        trace_die("asks for more than 8 cards, or for more than a card", path);
                if (p.cards == 0 || p.part == 0)
                        p.cards = p.part = 0;
                else
                        p.spec = find_spec(t, find_text(&table, "gpu_spec"));
                p.kind = find_kind(t, &p);
                t->pods = more(t->pods, t->n_pods, sizeof *t->pods);
                t->pods[t->n_pods++] = p;
        }
}

void trace_done(Trace *t) {
        free(t->nodes);
        free(t->pods);
        *t = (Trace){0};
}

int trace_allows(const Trace *t, uint32_t spec, const TraceNode *n) {
        return spec == 0 || strstr(t->specs[spec], n->model) != NULL;
}

/* ---- random order ---- */

static uint64_t next(Dice *d) {
        uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

uint32_t dice_below(Dice *d, uint32_t n) {
        return (uint32_t) ((next(d) >> 32) * n >> 32);
}

double dice_part(Dice *d) {
        return (double) ((next(d) >> 11) + 1) / (double) (UINT64_C(1) << 53);
}

static int64_t asked(const Trace *t, uint32_t pod) {
        return (int64_t) t->pods[pod].cards * t->pods[pod].part;
}

uint32_t *trace_draw(const Trace *t, Dice *d, unsigned percent, int without_cpu_only, size_t *ret_n) {
        int64_t goal = t->cards * TRACE_CARD * percent / 100, sum = 0;
        uint32_t *own = NULL, *list = NULL;
        size_t n_own = 0, n = 0;

        for (uint32_t i = 0; i < t->n_pods; i++) {
                if (without_cpu_only && t->pods[i].cards == 0)
                        continue;
                own = more(own, n_own, sizeof *own);
                own[n_own++] = i;
                list = more(list, n, sizeof *list);
                list[n++] = i;
                sum += asked(t, i);
        }
        if (sum == 0)
                trace_die("no pod asks for a card", "trace");
        while (sum > goal) {
                uint32_t at = dice_below(d, (uint32_t) n);

                sum -= asked(t, list[at]);
                list[at] = list[--n];
        }
        while (sum < goal) {
                uint32_t pod = own[dice_below(d, (uint32_t) n_own)];

                sum += asked(t, pod);
                if (sum > goal)
                        break;
                list = more(list, n, sizeof *list);
                list[n++] = pod;
        }
        for (size_t i = n; i > 1; i--) {
                uint32_t k = dice_below(d, (uint32_t) i), swap = list[i - 1];

                list[i - 1] = list[k];
                list[k] = swap;
        }
        free(own);
        *ret_n = n;
        return list;
}
