/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>

#include "base/grid.h"
#include "cli/inspect/inspect-internal.h"
#include "wire/annotation.h"

/* A table with a row per card. In a narrow terminal, columns are left out in the order of
 * `drop`. */

enum {
        COLUMN_NODE,
        COLUMN_CARD,
        COLUMN_MODEL,
        COLUMN_MODE,
        COLUMN_BAR,
        COLUMN_MEM,
        COLUMN_USED,
        COLUMN_CORE,
        COLUMN_PODS,
        COLUMN_HEALTH,
        COLUMNS_
};

static const GridColumn columns[COLUMNS_] = {
        [COLUMN_NODE] = {.title = "NODE", .shrink_to = 16},
        [COLUMN_CARD] = {.title = "CARD", .right = true},
        [COLUMN_MODEL] = {.title = "MODEL", .shrink_to = 12, .drop = 1},
        [COLUMN_MODE] = {.title = "MODE", .drop = 2},
        [COLUMN_BAR] = {.title = "MEMORY", .bar = true, .drop = 5},
        [COLUMN_MEM] = {.title = "ALLOCATED", .right = true},
        [COLUMN_USED] = {.title = "USED", .right = true, .drop = 3},
        [COLUMN_CORE] = {.title = "CORE", .right = true, .drop = 6},
        [COLUMN_PODS] = {.title = "PODS", .right = true, .drop = 4},
        [COLUMN_HEALTH] = {.title = "HEALTH", .drop = 7},
};

typedef struct Counts {
        size_t cards, pods, waiting, unhealthy;
} Counts;

static void node_cells(Grid *g, const InspectNode *n, GridTone tone) {
        grid_row(g);
        grid_text(g, COLUMN_NODE, n->name, tone);
        if (!str_is_empty(n->mode))
                grid_textf(g, COLUMN_MODE, n->change_pending ? GRID_WARN : tone, STR_FMT "%s",
                           STR_CUT(n->mode, 32), n->change_pending ? "*" : "");
}

/* Fills in the health. A card that the node does not have is listed when a pod's annotation names
 * it. */
static void health_cell(Grid *g, const InspectNode *n, size_t card) {
        CardState state = inspect_card_state(n, card);
        Str text = card_state_text(state);

        if (state == CARD_STATE_GONE)
                grid_text(g, COLUMN_HEALTH, STR("missing"), GRID_BAD);
        else if (!str_is_empty(text))
                grid_text(g, COLUMN_HEALTH, text, state == CARD_STATE_UNHEALTHY ? GRID_BAD : GRID_WARN);
        else if (!n->facts[card].known)
                grid_text(g, COLUMN_HEALTH, STR("-"), GRID_PLAIN);
        else
                grid_text(g, COLUMN_HEALTH, STR("ok"), GRID_GOOD);
}

static void card_row(Grid *g, const InspectNode *n, size_t card) {
        const InspectCard *c = &n->cards[card];
        GridTone tone = card > 0 ? GRID_DIM : GRID_PLAIN;

        node_cells(g, n, tone);
        grid_textf(g, COLUMN_CARD, GRID_PLAIN, "%zu", card);
        if (card < n->n_described)
                grid_text(g, COLUMN_MODEL, n->facts[card].model, tone);
        grid_bar(g, COLUMN_BAR, c->used_mem, c->total_mem);
        grid_textf(g, COLUMN_MEM, c->used_mem > c->total_mem ? GRID_BAD : GRID_PLAIN,
                   "%" PRIu64 "/%" PRIu64 INSPECT_UNIT_FMT, c->used_mem, c->total_mem, INSPECT_UNIT_ARG(n));
        if (card < n->n_described && n->facts[card].used_known)
                grid_textf(g, COLUMN_USED, GRID_PLAIN, "%" PRIu64 " MiB", n->facts[card].used_mib);
        if (n->total_core > 0 || c->used_core > 0)
                grid_textf(g, COLUMN_CORE, c->used_core > c->total_core ? GRID_BAD : GRID_PLAIN,
                           "%" PRIu64 "%%", c->used_core);
        grid_textf(g, COLUMN_PODS, GRID_PLAIN, "%zu", c->n_pods);
        health_cell(g, n, card);
}

static size_t count_pending(const InspectNode *n) {
        size_t count = 0;

        for (size_t p = 0; p < n->n_pods; p++)
                count += n->pods[p].pending_mem > 0 || n->pods[p].pending_core > 0;
        return count;
}

static void pending_row(Grid *g, const InspectNode *n, size_t pods) {
        node_cells(g, n, GRID_DIM);
        grid_text(g, COLUMN_CARD, STR("none"), GRID_WARN);
        grid_textf(g, COLUMN_MEM, GRID_PLAIN, "%" PRIu64 INSPECT_UNIT_FMT, n->pending_mem,
                   INSPECT_UNIT_ARG(n));
        if (n->pending_core > 0)
                grid_textf(g, COLUMN_CORE, GRID_PLAIN, "%" PRIu64 "%%", n->pending_core);
        grid_textf(g, COLUMN_PODS, GRID_PLAIN, "%zu", pods);
}

static void node_rows(Grid *g, const InspectNode *n, Counts *counts) {
        size_t pending = count_pending(n);

        for (size_t card = 0; card < n->n_cards; card++) {
                /* an index that the node's list of cards skips */
                if (n->cards[card].total_mem == 0 && n->cards[card].used_mem == 0 &&
                    !(card < n->n_described && n->facts[card].known))
                        continue;
                card_row(g, n, card);
                counts->cards += card < n->n_described;
                counts->unhealthy += card < n->n_described && n->facts[card].known && !n->facts[card].healthy;
        }
        if (pending > 0)
                pending_row(g, n, pending);
        for (size_t p = 0; p < n->n_pods; p++)
                counts->pods += inspect_pod_holds(&n->pods[p]);
        counts->waiting += pending;
}

static const char *plural_of(size_t n) {
        return n == 1 ? "" : "s";
}

static int print_sums(const Inspect *i, const InspectView *v, const Counts *c, size_t width, Buf *out) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "%zu node%s, %zu card%s: allocated ", v->n_nodes, plural_of(v->n_nodes), c->cards,
                    plural_of(c->cards));
        if (v->n_nodes > v->n_whole)
                buf_appendf(&text, "%" PRIu64 "/%" PRIu64 " " STR_FMT " (%" PRIu64 "%%)", v->used_mem,
                            v->total_mem, STR_ARG(v->unit_text), inspect_percent(v->used_mem, v->total_mem));
        if (v->n_whole > 0)
                buf_appendf(&text, "%s%" PRIu64 "/%" PRIu64 " whole card%s",
                            v->n_nodes > v->n_whole ? ", " : "", v->used_cards, v->total_cards,
                            plural_of(v->total_cards));
        if (v->has_core)
                buf_appendf(&text, ", compute %" PRIu64 "/%" PRIu64 "%% (%" PRIu64 "%%)", v->used_core,
                            v->total_core, inspect_percent(v->used_core, v->total_core));
        buf_appendf(&text, "; %zu pod%s", c->pods, plural_of(c->pods));
        if (!str_is_empty(i->only_namespace))
                buf_appendf(&text, " of namespace " STR_FMT ", others are not counted",
                            STR_ARG(i->only_namespace));
        if (c->waiting > 0)
                buf_appendf(&text, "; %zu pod%s without a card", c->waiting, plural_of(c->waiting));
        if (c->unhealthy > 0)
                buf_appendf(&text, "; %zu card%s unhealthy", c->unhealthy, plural_of(c->unhealthy));
        grid_fold(buf_str(&text), width, out);
        return buf_result(&text);
}

static size_t count_lines(const Buf *text) {
        size_t n = 0;

        for (size_t k = 0; k < text->len; k++)
                n += text->data[k] == '\n';
        return n;
}

/* Returns how many rows fit besides the titles, a line that counts the others, and `below`
 * lines. */
static size_t rows_that_fit(size_t n_rows, size_t height, size_t below) {
        size_t room = height > below + 1 ? height - below - 1 : 0;

        if (height == 0 || n_rows <= room)
                return n_rows;
        return room > 1 ? room - 1 : 0;
}

static int print_table(const Grid *g, const Buf *below, const InspectScreen *screen, Buf *out) {
        const GridStyle style = {screen->width, screen->utf8, screen->colour};
        size_t n = rows_that_fit(g->n_rows, screen->height, count_lines(below));
        int r;

        if (g->n_rows == 0 && !g->broken) {
                grid_fold(STR("No node offers " RESOURCE_GPU_MEM " or " RESOURCE_GPU "."), screen->width,
                          out);
                return buf_result(out);
        }
        r = grid_print(g, n, &style, out);
        if (n < g->n_rows)
                buf_appendf(out, "... and %zu more\n", g->n_rows - n);
        return r;
}

int inspect_print_cards(Inspect *i, Str node, const InspectScreen *screen, Buf *out, Fault *fault) {
        _cleanup_(grid_done) Grid grid = {.columns = columns, .n_columns = COLUMNS_};
        _cleanup_buf_ Buf below = BUF_NULL;
        Counts counts = {.cards = 0};
        InspectView v;
        int r;

        r = inspect_view(i, node, &v, fault);
        if (r != 0)
                return r;
        for (size_t n = 0; n < v.n_nodes; n++)
                node_rows(&grid, &v.nodes[n], &counts);
        if (screen->details)
                r = inspect_print_pods(&v, screen, &below);
        if (r == 0 && screen->details)
                r = inspect_print_links(&v, &below);
        if (r == 0 && v.n_nodes > 0)
                r = print_sums(i, &v, &counts, screen->width, &below);
        if (r == 0)
                r = inspect_print_notes(i, &v, str_is_empty(node), screen, &below);
        if (r == 0)
                r = print_table(&grid, &below, screen, out);
        buf_append_str(out, buf_str(&below));
        return r < 0 ? r : buf_result(out);
}
