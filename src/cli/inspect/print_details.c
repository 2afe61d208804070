/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli/inspect/inspect-internal.h"
#include "cli/inspect/table.h"

/* A table per node, with as many columns as the node has cards. */

static void put_pair(Buf *text, Str label, Str value) {
        table_cell(text, label);
        table_cell(text, value);
        table_line_close(text);
}

void inspect_put_header(const InspectNode *n, bool with_unit, Buf *text) {
        buf_append_char(text, '\n');
        put_pair(text, STR("NAME:"), n->name);
        put_pair(text, STR("IPADDRESS:"), n->ip);
        if (with_unit)
                put_pair(text, STR("UNIT:"), n->unit_text);
        buf_append_char(text, '\n');
}

static void pods_header(const InspectNode *n, Buf *text) {
        table_cell(text, STR("NAME"));
        table_cell(text, STR("NAMESPACE"));
        for (size_t card = 0; card < n->n_cards; card++)
                table_cellf(text, "GPU%zu(Allocated)", card);
        if (n->pending_mem > 0)
                table_cell(text, STR("Pending(Allocated)"));
        for (size_t card = 0; card < n->n_cards && n->total_core > 0; card++)
                table_cellf(text, "GPU%zu Core(%%)", card);
        if (n->pending_core > 0 && n->total_core > 0)
                table_cell(text, STR("Pending Core(%)"));
        table_line_end(text);
}

static void pod_line(const InspectNode *n, const InspectPod *p, Buf *text) {
        table_cellf(text, STR_FMT "%s", STR_ARG(p->name), p->deleted ? " (deleted)" : "");
        table_cell(text, p->namespace_);
        for (size_t card = 0; card < n->n_cards; card++)
                table_cellf(text, "%" PRIu64, inspect_pod_use(p, (uint32_t) card).mem);
        if (n->pending_mem > 0)
                table_cellf(text, "%" PRIu64, p->pending_mem);
        for (size_t card = 0; card < n->n_cards && n->total_core > 0; card++)
                table_cellf(text, "%" PRIu64, inspect_pod_use(p, (uint32_t) card).core);
        if (n->pending_core > 0 && n->total_core > 0)
                table_cellf(text, "%" PRIu64, p->pending_core);
        table_line_end(text);
}

static void put_sum(Str label, Str total_label, uint64_t used, uint64_t total, Buf *text) {
        table_cell(text, label);
        table_cellf(text, "%" PRIu64 " (%" PRIu64 "%%)", used, inspect_percent(used, total));
        table_line_end(text);
        table_cell(text, total_label);
        table_cellf(text, "%" PRIu64, total);
        table_line_end(text);
}

static void node_sums(const InspectNode *n, Buf *text) {
        put_sum(STR("Allocated :"), STR("Total :"), n->used_mem, n->total_mem, text);
        if (n->total_core > 0)
                put_sum(STR("Core Allocated :"), STR("Core Total :"), n->used_core, n->total_core, text);
}

/* Appends the table of a node. Returns the length of its pod lines before alignment, which sets the
 * length of the dashes under every node's table. */
static size_t node_table(const InspectView *v, const InspectNode *n, Buf *text) {
        size_t start;

        inspect_put_header(n, v->units_differ, text);
        pods_header(n, text);
        start = text->len;
        for (size_t p = 0; p < n->n_pods; p++)
                if (inspect_pod_holds(&n->pods[p]))
                        pod_line(n, &n->pods[p], text);
        return text->len - start;
}

static void put_cards_of_state(const InspectNode *n, CardState state, Buf *line) {
        size_t found = 0;

        for (size_t card = 0; card < n->n_described; card++)
                if (inspect_card_state(n, card) == state)
                        buf_appendf(line, "%sGPU%zu", found++ > 0 ? ", " : line->len > 0 ? "; " : "", card);
        if (found > 0)
                buf_appendf(line, " " STR_FMT, STR_ARG(card_state_text(state)));
}

void inspect_put_share(const char *what, const char *between, uint64_t used, uint64_t total, Buf *text) {
        buf_appendf(text, "Allocated/Total %s In Cluster:%s%" PRIu64 "/%" PRIu64 " (%" PRIu64 "%%)\n", what,
                    between, used, total, inspect_percent(used, total));
}

void inspect_put_states(const InspectNode *n, Buf *text) {
        static const CardState out_of_service[] = {CARD_STATE_FENCED, CARD_STATE_CORDONED,
                                                   CARD_STATE_UNHEALTHY};
        _cleanup_buf_ Buf cards = BUF_NULL;

        for (size_t i = 0; i < ELEMENTSOF(out_of_service); i++)
                put_cards_of_state(n, out_of_service[i], &cards);
        text->broken |= cards.broken;
        if (cards.len == 0)
                return;
        table_cellf(text, STR_FMT ": " STR_FMT, STR_ARG(n->name), STR_ARG(buf_str(&cards)));
        table_line_close(text);
}

void inspect_put_differences(const InspectNode *n, Buf *text) {
        for (size_t p = 0; p < n->n_pods; p++) {
                const InspectPod *pod = &n->pods[p];
                _cleanup_buf_ Buf line = BUF_NULL;

                if (str_is_empty(pod->difference))
                        continue;
                buf_appendf(&line, STR_FMT "/" STR_FMT ": " STR_FMT, STR_ARG(pod->namespace_),
                            STR_ARG(pod->name), STR_ARG(pod->difference));
                text->broken |= line.broken;
                table_cell(text, buf_str(&line));
                table_line_close(text);
        }
}

static void put_sums(const InspectView *v, Buf *text) {
        table_line_end(text);
        if (v->units_differ)
                buf_append_str(text,
                               STR("Memory units differ between nodes: each is counted in its UNIT, sums in "
                                   "MiB.\n"));
        inspect_put_share("GPU Memory", "  ", v->used_mem, v->total_mem, text);
        if (v->has_core)
                inspect_put_share("GPU Core", "  ", v->used_core, v->total_core, text);
}

int inspect_print_details(Inspect *i, Str node, Buf *out, Fault *fault) {
        _cleanup_buf_ Buf text = BUF_NULL;
        size_t dashes = 0;
        InspectView v;
        int r;

        r = inspect_view(i, node, &v, fault);
        if (r != 0)
                return r;
        for (size_t n = 0; n < v.n_nodes; n++) {
                size_t pod_lines;

                if (v.nodes[n].whole)
                        continue;
                pod_lines = node_table(&v, &v.nodes[n], &text);
                if (dashes == 0)
                        dashes = pod_lines + 10;
                node_sums(&v.nodes[n], &text);
                table_dashes(&text, dashes);
                inspect_put_states(&v.nodes[n], &text);
                inspect_put_differences(&v.nodes[n], &text);
        }
        if (v.n_whole == 0 || v.n_nodes > v.n_whole)
                put_sums(&v, &text);
        r = buf_result(&text);
        if (r == 0)
                r = table_align(buf_str(&text), out);
        return r < 0 ? r : inspect_print_whole(&v, true, out);
}
