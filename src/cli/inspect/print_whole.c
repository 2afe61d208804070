/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli/inspect/inspect-internal.h"
#include "cli/inspect/table.h"

/* Prints nodes in topology mode (whole cards). They come last, so that the output before them stays
 * as older inspect tools print it. */

static void put_holders(const InspectNode *n, uint32_t card, Buf *out) {
        for (size_t p = 0; p < n->n_pods; p++)
                if (inspect_pod_use(&n->pods[p], card).mem > 0)
                        buf_appendf(out, "%s" STR_FMT "/" STR_FMT, out->len > 0 ? "," : "",
                                    STR_ARG(n->pods[p].namespace_), STR_ARG(n->pods[p].name));
}

/* Fills in the pods that have the card. "-": it is idle; "": the node has no such card. */
static void holder_cell(const InspectNode *n, size_t card, Buf *text) {
        _cleanup_buf_ Buf holders = BUF_NULL;

        if (card < n->n_cards)
                put_holders(n, (uint32_t) card, &holders);
        if (card < n->n_cards && holders.len == 0)
                buf_append_char(&holders, '-');
        text->broken |= holders.broken;
        table_cell(text, buf_str(&holders));
}

static size_t most_cards(const InspectView *v) {
        size_t most = 0;

        for (size_t n = 0; n < v->n_nodes; n++)
                if (v->nodes[n].whole && v->nodes[n].n_cards > most)
                        most = v->nodes[n].n_cards;
        return most;
}

static void summary(const InspectView *v, Buf *text) {
        size_t most = most_cards(v);

        table_cell(text, STR("NAME"));
        table_cell(text, STR("IPADDRESS"));
        for (size_t card = 0; card < most; card++)
                table_cellf(text, "GPU%zu", card);
        table_cell(text, STR("GPUs(Allocated/Total)"));
        table_line_close(text);
        for (size_t i = 0; i < v->n_nodes; i++) {
                const InspectNode *n = &v->nodes[i];

                if (!n->whole)
                        continue;
                table_cell(text, n->name);
                table_cell(text, n->ip);
                for (size_t card = 0; card < most; card++)
                        holder_cell(n, card, text);
                table_cellf(text, "%" PRIu64 "/%" PRIu64, n->used_mem, n->total_mem);
                table_line_close(text);
        }
}

static bool has_links(const InspectNode *n) {
        for (size_t card = 0; n->whole && card < n->n_described; card++)
                if (n->facts[card].n_peers > 0)
                        return true;
        return false;
}

static void links(const InspectNode *n, Buf *text) {
        if (!has_links(n))
                return;
        table_cell(text, STR("GB/s"));
        for (size_t card = 0; card < n->n_described; card++)
                table_cellf(text, "GPU%zu", card);
        table_line_close(text);
        for (size_t card = 0; card < n->n_described; card++) {
                const InspectCardFacts *f = &n->facts[card];

                table_cellf(text, "GPU%zu", card);
                for (size_t peer = 0; peer < n->n_described; peer++)
                        if (peer < f->n_peers && f->peers[peer] > 0)
                                table_cellf(text, "%u", f->peers[peer]);
                        else
                                table_cell(text, STR("-"));
                table_line_close(text);
        }
}

/* Appends a node's table. An empty line ends it, so that its columns are aligned by themselves. */
static void node_details(const InspectNode *n, Buf *text) {
        inspect_put_header(n, false, text);
        for (size_t card = 0; card < n->n_cards; card++) {
                Str state = card_state_text(inspect_card_state(n, card));

                table_cellf(text, "GPU%zu", card);
                holder_cell(n, card, text);
                if (!str_is_empty(state))
                        table_cell(text, state);
                table_line_close(text);
        }
        if (has_links(n))
                buf_append_char(text, '\n');
        links(n, text);
        inspect_put_differences(n, text);
}

int inspect_print_whole(const InspectView *v, bool details, Buf *out) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r;

        if (v->n_whole == 0)
                return 0;
        if (!details && v->n_nodes > v->n_whole)
                buf_append_char(&text, '\n');
        if (!details)
                summary(v, &text);
        for (size_t n = 0; n < v->n_nodes && details; n++)
                if (v->nodes[n].whole)
                        node_details(&v->nodes[n], &text);
        buf_append_char(&text, '\n');
        inspect_put_share("GPUs", "\n", v->used_cards, v->total_cards, &text);
        for (size_t n = 0; n < v->n_nodes && !details; n++)
                if (v->nodes[n].whole)
                        inspect_put_states(&v->nodes[n], &text);
        r = buf_result(&text);
        return r < 0 ? r : table_align(buf_str(&text), out);
}

int inspect_print_links(const InspectView *v, Buf *out) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r;

        for (size_t n = 0; n < v->n_nodes; n++)
                if (has_links(&v->nodes[n])) {
                        buf_append_char(&text, '\n');
                        table_cell(&text, v->nodes[n].name);
                        table_line_close(&text);
                        links(&v->nodes[n], &text);
                }
        r = buf_result(&text);
        return r < 0 ? r : table_align(buf_str(&text), out);
}
