/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/grid.h"
#include "cli/inspect/inspect-internal.h"

/* A table of pods below that of cards, with a row per pod and card. */

enum {
        COLUMN_NODE,
        COLUMN_NAMESPACE,
        COLUMN_POD,
        COLUMN_CARD,
        COLUMN_MEM,
        COLUMN_CORE,
        COLUMN_IN_FORCE,
        COLUMNS_
};

static const GridColumn columns[COLUMNS_] = {
        [COLUMN_NODE] = {.title = "NODE", .shrink_to = 12},
        [COLUMN_NAMESPACE] = {.title = "NAMESPACE", .shrink_to = 9},
        [COLUMN_POD] = {.title = "POD", .shrink_to = 12},
        [COLUMN_CARD] = {.title = "CARD", .right = true},
        [COLUMN_MEM] = {.title = "ALLOCATED", .right = true},
        [COLUMN_CORE] = {.title = "CORE", .right = true, .drop = 1},
        [COLUMN_IN_FORCE] = {.title = "IN FORCE", .right = true, .drop = 2},
};

static void begin(Grid *g, const InspectNode *n, const InspectPod *p, bool again) {
        GridTone tone = again ? GRID_DIM : GRID_PLAIN;

        grid_row(g);
        grid_text(g, COLUMN_NODE, n->name, tone);
        grid_text(g, COLUMN_NAMESPACE, p->namespace_, tone);
        if (p->deleted)
                grid_textf(g, COLUMN_POD, tone, STR_FMT " (deleted)", STR_ARG(p->name));
        else
                grid_text(g, COLUMN_POD, p->name, tone);
}

static void amounts(Grid *g, const InspectNode *n, uint64_t mem, uint64_t core) {
        grid_textf(g, COLUMN_MEM, GRID_PLAIN, "%" PRIu64 INSPECT_UNIT_FMT, mem, INSPECT_UNIT_ARG(n));
        if (core > 0)
                grid_textf(g, COLUMN_CORE, GRID_PLAIN, "%" PRIu64 "%%", core);
}

static void in_force(Grid *g, const InspectNode *n, const InspectUse *use) {
        if (use->core_in_force > 0)
                grid_textf(g, COLUMN_IN_FORCE, GRID_WARN, "%" PRIu64 INSPECT_UNIT_FMT " %3" PRIu64 "%%",
                           use->mem_in_force, INSPECT_UNIT_ARG(n), use->core_in_force);
        else
                grid_textf(g, COLUMN_IN_FORCE, GRID_WARN, "%" PRIu64 INSPECT_UNIT_FMT, use->mem_in_force,
                           INSPECT_UNIT_ARG(n));
}

static void pod_rows(Grid *g, const InspectNode *n, const InspectPod *p) {
        for (size_t u = 0; u < p->n_uses; u++) {
                begin(g, n, p, u > 0);
                grid_textf(g, COLUMN_CARD, GRID_PLAIN, "%" PRIu32, p->uses[u].card);
                amounts(g, n, p->uses[u].mem, p->uses[u].core);
                if (p->resized)
                        in_force(g, n, &p->uses[u]);
        }
        if (p->pending_mem > 0 || p->pending_core > 0) {
                begin(g, n, p, p->n_uses > 0);
                grid_text(g, COLUMN_CARD, STR("none"), GRID_WARN);
                amounts(g, n, p->pending_mem, p->pending_core);
        }
}

int inspect_print_pods(const InspectView *v, const InspectScreen *screen, Buf *out) {
        const GridStyle style = {screen->width, screen->utf8, screen->colour};
        _cleanup_(grid_done) Grid grid = {.columns = columns, .n_columns = COLUMNS_};

        for (size_t n = 0; n < v->n_nodes; n++)
                for (size_t p = 0; p < v->nodes[n].n_pods; p++)
                        pod_rows(&grid, &v->nodes[n], &v->nodes[n].pods[p]);
        if (grid.n_rows == 0 && !grid.broken)
                return 0;
        buf_append_char(out, '\n');
        return grid_print(&grid, grid.n_rows, &style, out);
}
