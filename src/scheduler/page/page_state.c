/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_state.h"

#include "scheduler/page/page_rows.h"
#include "wire/json_write.h"

enum { NODES_PER_STEP = 64 };

typedef struct PageNode {
        UT_hash_handle hh;
        uint32_t round; /* the last round that read it */
        Buf row;
        Str name;
        char text[];
} PageNode;

static void node_drop(PageState *s, PageNode *node) {
        HASH_DELETE(hh, s->nodes, node);
        buf_done(&node->row);
        free(node);
}

void page_state_clear(PageState *s) {
        while (s->nodes)
                node_drop(s, s->nodes);
        buf_done(&s->cluster_text);
        buf_done(&s->waiting_text);
        buf_done(&s->changed);
        buf_done(&s->gone);
        buf_done(&s->cluster_now);
        buf_done(&s->waiting_now);
}

void page_state_done(PageState *s) {
        page_state_clear(s);
        page_waiting_done(&s->waiting);
        page_resizes_done(&s->resizes);
}

/* ---- a round ---- */

void page_state_begin(PageState *s) {
        s->round++;
        s->next = 0;
        s->nodes_read = false;
        buf_clear(&s->changed);
        buf_clear(&s->gone);
        page_waiting_begin(&s->waiting, s->view);
        page_resizes_sweep(&s->resizes, s->view);
}

static PageNode *node_ensure(PageState *s, Str name) {
        PageNode *node;
        char *at;

        HASH_FIND(hh, s->nodes, name.data, name.len, node);
        if (node)
                return node;
        node = calloc(1, sizeof *node + name.len);
        if (!node)
                return NULL;
        at = node->text;
        node->name = str_put(&at, name);
        HASH_ADD_KEYPTR(hh, s->nodes, node->name.data, node->name.len, node);
        if (hash_added(node, hh))
                return node;
        free(node);
        return NULL;
}

static void append_item(Buf *list, Str item) {
        if (list->len > 0)
                buf_append_char(list, ',');
        buf_append_str(list, item);
}

/* Reads one row. If memory is out, the told row stays, and the next round tries again. */
static void read_node(PageState *s, const LedgerNode *ledger_node) {
        _cleanup_buf_ Buf row = BUF_NULL;
        PageNode *node;

        if (!page_rows_shows(ledger_node))
                return;
        node = node_ensure(s, ledger_node_name(ledger_node));
        if (!node)
                return;
        node->round = s->round;
        page_rows_node(ledger_node, &s->resizes, &row);
        if (buf_result(&row) < 0 || str_eq(buf_str(&row), buf_str(&node->row)))
                return;
        append_item(&s->changed, buf_str(&row));
        if (buf_result(&s->changed) < 0)
                return;
        buf_done(&node->row);
        node->row = row;
        row = BUF_NULL;
}

/* Finds nodes that the round did not meet. They are gone, or the ledger has moved them to an index
 * that the round had passed. */
static void find_gone(PageState *s) {
        PageNode *node, *next;

        HASH_ITER(hh, s->nodes, node, next) {
                const LedgerNode *known;

                if (node->round == s->round)
                        continue;
                known = ledger_node_find(s->view->ledger, node->name);
                if (known && page_rows_shows(known)) {
                        read_node(s, known);
                        continue;
                }
                if (s->gone.len > 0)
                        buf_append_char(&s->gone, ',');
                json_write_quoted(&s->gone, node->name);
                node_drop(s, node);
        }
}

bool page_state_step(PageState *s) {
        const Ledger *ledger = s->view->ledger;

        if (s->nodes_read)
                return page_waiting_step(&s->waiting, s->view);
        for (unsigned i = 0; i < NODES_PER_STEP && s->next < ledger_n_nodes(ledger); i++)
                read_node(s, ledger_node_at(ledger, s->next++));
        s->nodes_read = s->next >= ledger_n_nodes(ledger);
        if (s->nodes_read)
                find_gone(s);
        return true;
}

/* ---- the events ---- */

static void write_cluster(const PageState *s, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "version", ALIQUOT_VERSION);
        if (s->cluster)
                json_write_text(&w, "name", s->cluster);
        json_write_bool(&w, "leading", *s->leading);
        json_write_bool(&w, "synced", view_in_sync(s->view));
        json_write_u64(&w, "nodes", directory_size(s->view->directory));
        json_write_object_end(&w);
}

static void append_member(Buf *out, const char *key, const Buf *value, const char *brackets) {
        if (value->len > 0)
                buf_appendf(out, ",\"%s\":%.1s" STR_FMT "%s", key, brackets, STR_ARG(buf_str(value)),
                            brackets[0] != '\0' ? brackets + 1 : "");
}

/* Swaps the texts if they differ, so that *told is the new one. Returns whether they did. */
static bool take_over(Buf *told, Buf *now) {
        Buf before = *told;

        if (buf_result(now) < 0 || str_eq(buf_str(told), buf_str(now)))
                return false;
        *told = *now;
        *now = before;
        return true;
}

static const Buf *told_if(bool changed, const Buf *text) {
        static const Buf nothing = BUF_NULL;

        return changed ? text : &nothing;
}

void page_state_difference(PageState *s, Buf *out) {
        bool cluster, waiting;

        buf_clear(&s->cluster_now);
        write_cluster(s, &s->cluster_now);
        buf_clear(&s->waiting_now);
        page_waiting_write(&s->waiting, s->view, *s->leading ? s->gangs : NULL, &s->waiting_now);
        cluster = take_over(&s->cluster_text, &s->cluster_now);
        waiting = take_over(&s->waiting_text, &s->waiting_now);
        if (!cluster && !waiting && s->changed.len == 0 && s->gone.len == 0)
                return;
        buf_appendf(out, "event: change\ndata: {\"seq\":%llu", (unsigned long long) ++s->seq);
        append_member(out, "cluster", told_if(cluster, &s->cluster_text), "");
        append_member(out, "waiting", told_if(waiting, &s->waiting_text), "");
        append_member(out, "nodes", &s->changed, "[]");
        append_member(out, "gone", &s->gone, "[]");
        buf_append_str(out, STR("}\n\n"));
}

void page_state_whole(const PageState *s, Buf *out) {
        bool any = false;

        buf_appendf(out, "event: state\ndata: {\"seq\":%llu", (unsigned long long) s->seq);
        append_member(out, "cluster", &s->cluster_text, "");
        append_member(out, "waiting", &s->waiting_text, "");
        buf_append_str(out, STR(",\"nodes\":["));
        for (const PageNode *node = s->nodes; node; node = node->hh.next) {
                if (node->row.len == 0)
                        continue;
                if (any)
                        buf_append_char(out, ',');
                any = true;
                buf_append_str(out, buf_str(&node->row));
        }
        buf_append_str(out, STR("]}\n\n"));
}
