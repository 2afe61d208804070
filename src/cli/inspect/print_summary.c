/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli/inspect/inspect-internal.h"
#include "cli/inspect/table.h"

/* Existing columns stay where older inspect tools print them. Columns for compute and for differing
 * units are added only in clusters that have such nodes. */

static void header(const InspectView *v, Buf *text) {
        table_cell(text, STR("NAME"));
        table_cell(text, STR("IPADDRESS"));
        if (v->units_differ)
                table_cell(text, STR("UNIT"));
        for (size_t card = 0; card < v->max_cards; card++)
                table_cellf(text, "GPU%zu(Allocated/Total)", card);
        if (v->has_pending)
                table_cell(text, STR("PENDING(Allocated)"));
        table_cellf(text, "GPU Memory(" STR_FMT ")", STR_ARG(v->unit_text));
        for (size_t card = 0; v->has_core && card < v->max_cards; card++)
                table_cellf(text, "GPU%zu Core(%%)", card);
        if (v->has_core)
                table_cell(text, STR("GPU Core(%)"));
        table_line_close(text);
}

static void share_cell(Buf *text, uint64_t used, uint64_t total) {
        table_cellf(text, "%" PRIu64 "/%" PRIu64, used, total);
}

/* Returns a card of the node; zeros when the node lacks it. */
static InspectCard card_at(const InspectNode *n, size_t card) {
        return card < n->n_cards ? n->cards[card] : (InspectCard){0};
}

static void pending_cell(Buf *text, uint64_t pending) {
        if (pending > 0)
                table_cellf(text, "%" PRIu64, pending);
        else
                table_cell(text, STR(""));
}

static void node_line(const InspectView *v, const InspectNode *n, Buf *text) {
        table_cell(text, n->name);
        table_cell(text, n->ip);
        if (v->units_differ)
                table_cell(text, n->unit_text);
        for (size_t card = 0; card < v->max_cards; card++)
                share_cell(text, card_at(n, card).used_mem, card_at(n, card).total_mem);
        if (v->has_pending)
                pending_cell(text, n->pending_mem);
        share_cell(text, inspect_view_mem(v, n, n->used_mem), inspect_view_mem(v, n, n->total_mem));
        for (size_t card = 0; v->has_core && card < v->max_cards; card++)
                share_cell(text, card_at(n, card).used_core, card_at(n, card).total_core);
        if (v->has_core)
                share_cell(text, n->used_core, n->total_core);
        table_line_close(text);
}

static void sums(const InspectView *v, Buf *text) {
        if (v->units_differ)
                buf_append_str(text,
                               STR("Memory units differ between nodes: cards are counted in the node's UNIT, "
                                   "sums in MiB.\n"));
        inspect_put_share("GPU Memory", "\n", v->used_mem, v->total_mem, text);
        if (v->has_core)
                inspect_put_share("GPU Core", "\n", v->used_core, v->total_core, text);
}

int inspect_print_summary(Inspect *i, Str node, Buf *out, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        size_t start, first_line = 0;
        InspectView v;
        int r;

        r = inspect_view(i, node, &v, fault);
        if (r != 0)
                return r;
        if (v.n_whole == 0 || v.n_nodes > v.n_whole) {
                header(&v, &text);
                for (size_t n = 0; n < v.n_nodes; n++) {
                        if (v.nodes[n].whole)
                                continue;
                        start = text.len;
                        node_line(&v, &v.nodes[n], &text);
                        if (first_line == 0)
                                first_line = text.len - start;
                }
                table_dashes(&text, first_line + 20);
                sums(&v, &text);
                for (size_t n = 0; n < v.n_nodes; n++)
                        if (!v.nodes[n].whole)
                                inspect_put_states(&v.nodes[n], &text);
        }
        r = buf_result(&text);
        if (r == 0)
                r = table_align(buf_str(&text), out);
        return r < 0 ? r : inspect_print_whole(&v, false, out);
}
