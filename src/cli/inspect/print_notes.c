/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/grid.h"
#include "cli/inspect/inspect-internal.h"

/* A note of one node. */
typedef struct Line {
        InspectNote note;
        Str node;
} Line;

typedef struct Lines {
        Line *list;
        size_t n, capacity;
} Lines;

static int compare(const void *a, const void *b) {
        const Line *x = a, *y = b;
        int r = str_compare(x->note.type, y->note.type);

        if (r == 0)
                r = str_compare(x->note.message, y->note.message);
        return r != 0 ? r : str_compare(x->node, y->node);
}

static bool add(Lines *lines, InspectNote note, Str node) {
        if (lines->n == lines->capacity) {
                size_t capacity = lines->capacity > 0 ? 2 * lines->capacity : 16;
                Line *moved = reallocarray(lines->list, capacity, sizeof *moved);

                if (!moved)
                        return false;
                lines->list = moved;
                lines->capacity = capacity;
        }
        lines->list[lines->n++] = (Line){note, node};
        return true;
}

static bool add_nodes(Lines *lines, const InspectNode *nodes, size_t n, bool details) {
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < nodes[i].n_notes; k++)
                        if ((details || !nodes[i].notes[k].detail) &&
                            !add(lines, nodes[i].notes[k], nodes[i].name))
                                return false;
        return true;
}

static bool same(const Line *a, const Line *b) {
        return str_eq(a->note.type, b->note.type) && str_eq(a->note.message, b->note.message);
}

/* Prints "n1 and 3 more: NotReady: MESSAGE". */
static void print_line(const Line *line, size_t n, const InspectScreen *screen, Buf *out) {
        const GridStyle style = {screen->width, screen->utf8, screen->colour};
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_append_str(&text, line->node);
        if (n > 1)
                buf_appendf(&text, " and %zu more", n - 1);
        buf_appendf(&text, ": " STR_FMT, STR_ARG(line->note.type));
        if (!str_is_empty(line->note.message))
                buf_appendf(&text, ": " STR_FMT, STR_ARG(line->note.message));
        grid_tone(line->note.detail ? GRID_PLAIN : GRID_WARN, &style, out);
        grid_fold(buf_str(&text), screen->width, out);
        grid_tone(GRID_PLAIN, &style, out);
        out->broken |= text.broken;
}

static void print_differences(const InspectView *v, const InspectScreen *screen, Buf *out) {
        size_t n = 0;

        for (size_t k = 0; k < v->n_nodes; k++)
                for (size_t p = 0; p < v->nodes[k].n_pods; p++) {
                        const InspectPod *pod = &v->nodes[k].pods[p];
                        _cleanup_buf_ Buf text = BUF_NULL;

                        if (str_is_empty(pod->difference))
                                continue;
                        n++;
                        if (!screen->details)
                                continue;
                        buf_appendf(&text, STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(pod->namespace_),
                                    STR_ARG(pod->name), STR_ARG(pod->difference));
                        grid_fold(buf_str(&text), screen->width, out);
                        out->broken |= text.broken;
                }
        if (n > 0 && !screen->details) {
                _cleanup_buf_ Buf text = BUF_NULL;

                buf_appendf(&text,
                            "%zu %s annotations that differ from the limits, which are what counts: see -d",
                            n, n == 1 ? "pod has" : "pods have");
                grid_fold(buf_str(&text), screen->width, out);
                out->broken |= text.broken;
        }
}

int inspect_print_notes(const Inspect *i, const InspectView *v, bool all, const InspectScreen *screen,
                        Buf *out) {
        Lines lines = {.n = 0};
        bool ok = add_nodes(&lines, v->nodes, v->n_nodes, screen->details);

        if (ok && all)
                ok = add_nodes(&lines, i->silent, i->n_silent, screen->details);
        if (ok && lines.n > 0)
                qsort(lines.list, lines.n, sizeof *lines.list, compare);
        for (size_t k = 0, n; ok && k < lines.n; k += n) {
                for (n = 1; k + n < lines.n && same(&lines.list[k], &lines.list[k + n]);)
                        n++;
                print_line(&lines.list[k], n, screen, out);
        }
        free(lines.list);
        print_differences(v, screen, out);
        return ok ? buf_result(out) : -ENOMEM;
}
