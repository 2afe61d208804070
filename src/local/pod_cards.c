/* SPDX-License-Identifier: Apache-2.0 */
#include "local/pod_cards.h"

#include <errno.h>

#include "base/grid.h"
#include "cli/inspect/table.h"
#include "share/memory_unit.h"
#include "share/pod_grant.h"
#include "wire/pod.h"

enum { COLUMN_POD, COLUMN_NODE, COLUMN_CARDS, COLUMNS_ };

static const GridColumn columns[COLUMNS_] = {[COLUMN_POD] = {.title = "POD", .shrink_to = 16},
                                             [COLUMN_NODE] = {.title = "NODE", .shrink_to = 12},
                                             [COLUMN_CARDS] = {.title = "CARDS", .shrink_to = 16}};

/* The rows: `grid` for a terminal (fitting), else the text `table`. */
typedef struct Rows {
        Grid grid;
        Buf table;
        bool fitting;
} Rows;

static void rows_done(Rows *rows) {
        grid_done(&rows->grid);
        buf_done(&rows->table);
}

static void add_row(Rows *rows, Str pod, Str node, Str cards) {
        if (rows->fitting) {
                grid_row(&rows->grid);
                grid_text(&rows->grid, COLUMN_POD, pod, GRID_PLAIN);
                grid_text(&rows->grid, COLUMN_NODE, node, GRID_PLAIN);
                grid_text(&rows->grid, COLUMN_CARDS, cards, GRID_PLAIN);
                return;
        }
        table_cell(&rows->table, pod);
        table_cell(&rows->table, node);
        table_cell(&rows->table, cards);
        table_line_end(&rows->table);
}

static bool is_first_of_card(const GrantSpec *spec, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (spec->slices[k].card == spec->slices[i].card)
                        return false;
        return true;
}

static bool has_whole_cards(const Pod *pod) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (pod->containers[i].gpu.present)
                        return true;
        return false;
}

/* "gpu0; gpu2" */
static void print_whole_cards(const GrantSpec *spec, Buf *out) {
        for (size_t i = 0; i < spec->n_slices; i++)
                buf_appendf(out, "%sgpu%u", i > 0 ? "; " : "", spec->slices[i].card);
}

/* "gpu0: 3 GiB, 30 %; gpu2: 16 x 128MiB" */
static void print_cards(const GrantSpec *spec, const Grant *grant, MemoryUnit unit, Buf *out) {
        const char *separator = "";

        for (size_t i = 0; i < spec->n_slices; i++) {
                uint32_t card = spec->slices[i].card, core = grant_core_on_card(grant, card);
                _cleanup_buf_ Buf name = BUF_NULL;

                if (!is_first_of_card(spec, i))
                        continue;
                memory_unit_format(unit, &name);
                buf_appendf(out, "%sgpu%u: %u %s%s", separator, card, grant_mem_on_card(grant, card),
                            name.len > 0 && name.data[0] <= '9' ? "x " : "", name.data);
                if (core > 0)
                        buf_appendf(out, ", %u %%", core);
                separator = "; ";
        }
}

static MemoryUnit unit_of(const json_t *nodes, const char *name) {
        MemoryUnit unit = MEMORY_UNIT_GIB;
        const json_t *node;
        size_t i;

        json_array_foreach(nodes, i, node) {
                const json_t *annotations = tree_at(node, "metadata", "annotations", NULL);
                const char *text = tree_text(annotations, "aliquot.dev/gpu-mem-unit-in-force", NULL);

                if (strcmp(tree_text(node, "metadata", "name", NULL), name) != 0)
                        continue;
                if (!text)
                        text = tree_text(annotations, "aliquot.dev/gpu-mem-unit", NULL);
                (void) memory_unit_parse(str_from(text), &unit); /* stays GiB when it does not decode */
        }
        return unit;
}

/* A temporary grant sums up the containers as the scheduler does. ledger: any. */
static int print_slices(const GrantSpec *spec, Ledger *ledger, MemoryUnit unit, Buf *out) {
        Grant *grant;
        int r = grant_new(ledger, spec, &grant);

        if (r < 0)
                return r;
        print_cards(spec, grant, unit, out);
        (void) grant_free(grant);
        return 0;
}

static int print_pod(const json_t *pod, const json_t *nodes, Ledger *ledger, Rows *rows) {
        _cleanup_free_ char *text = json_dumps(pod, JSON_COMPACT);
        const char *node = tree_text(pod, "spec", "nodeName", NULL);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf cards = BUF_NULL;
        char name[TREE_NAME_MAX];
        GrantSpec spec;
        Pod decoded;
        int r;

        if (!node || !*node)
                return 0;
        r = text ? pod_decode(str_from(text), &arena, &decoded, NULL) : -ENOMEM;
        if (r == 0)
                r = pod_grant_spec(&decoded, &arena, &spec, NULL);
        if (r != 0 || spec.n_slices == 0)
                return r < 0 ? r : 0;
        tree_pod_name(pod, name);
        if (has_whole_cards(&decoded))
                print_whole_cards(&spec, &cards);
        else
                r = print_slices(&spec, ledger, unit_of(nodes, node), &cards);
        if (r < 0)
                return r;
        add_row(rows, str_from(name), str_from(node), buf_str(&cards));
        return buf_result(&cards);
}

static int print_grid(const Rows *rows, const InspectScreen *screen, Buf *out) {
        const GridStyle style = {screen->width, screen->utf8, screen->colour};

        if (rows->grid.n_rows == 0 && !rows->grid.broken)
                return 0;
        buf_append_char(out, '\n');
        return grid_print(&rows->grid, rows->grid.n_rows, &style, out);
}

int pod_cards_print(const json_t *pods, const json_t *nodes, const InspectScreen *screen, Buf *out) {
        _cleanup_(rows_done) Rows rows = {
                .grid = {.columns = columns, .n_columns = COLUMNS_}, .table = BUF_NULL, .fitting = screen};
        _cleanup_(ledger_freep) Ledger *ledger = NULL;
        const json_t *pod;
        size_t i, empty;

        if (ledger_new(&ledger) < 0)
                return -ENOMEM;
        buf_append_str(&rows.table, STR("\nPOD\tNODE\tCARDS\t\n"));
        empty = rows.table.len;
        json_array_foreach(pods, i, pod) {
                int r = print_pod(pod, nodes, ledger, &rows);

                if (r < 0)
                        return r;
        }
        if (screen)
                return print_grid(&rows, screen, out);
        if (buf_result(&rows.table) < 0)
                return -ENOMEM;
        return rows.table.len > empty ? table_align(buf_str(&rows.table), out) : 0;
}
