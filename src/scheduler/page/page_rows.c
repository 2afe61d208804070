/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "share/card_lack.h"
#include "share/ledger_card.h"
#include "wire/json_write.h"

bool page_rows_shows(const LedgerNode *node) {
        return ledger_node_n_cards(node) > 0 || ledger_node_grants(node) || ledger_node_held(node) ||
               share_mode_is_served(ledger_node_mode(node));
}

/* ---- the row ---- */

static void append_number(Buf *out, char before, uint64_t value) {
        buf_append_char(out, before);
        buf_append_u64(out, value);
}

static void write_card(const LedgerNode *node, const LedgerCard *c, Buf *out) {
        CardState state = card_lack_state(node, c);
        LedgerUse used = ledger_node_shown(node, c);

        append_number(out, '[', c->index);
        append_number(out, ',', c->units);
        append_number(out, ',', used.mem);
        append_number(out, ',', used.core);
        append_number(out, ',', c->pods);
        if (state != CARD_STATE_HEALTHY)
                append_number(out, ',', state);
        buf_append_char(out, ']');
}

static uint64_t mark_grants(const Grant *g, const PageResizes *resizes, uint64_t mark) {
        for (; g; g = grant_next(g)) {
                size_t n;
                const Slice *slices = grant_slices(g, &n);
                const PageResize *resize = page_resizes_find(resizes, grant_uid(g));
                uint64_t one = str_hash64(grant_uid(g), grant_pending(g));

                if (resize)
                        one = str_hash64(resize->text, one);

                for (size_t i = 0; i < n; i++)
                        one = (one ^ slices[i].card ^ (uint64_t) slices[i].mem << 16 ^
                               (uint64_t) slices[i].core << 48) *
                              UINT64_C(0x9e3779b97f4a7c15);
                mark += one; /* the order of the grants does not matter */
        }
        return mark;
}

/* A hash that changes with the node's slices, and with what page_rows_slices() says of isolation.
 * 20 bits suffice to notice a change from one second to the next. */
static uint64_t mark_of(const LedgerNode *node, const PageResizes *resizes) {
        const char *message;
        bool limits = ledger_node_memory_limits(node, &message) != MEMORY_LIMITS_NONE;
        uint64_t mark = limits ? str_hash64(str_from(message), 0) : 0;

        mark = mark_grants(ledger_node_grants(node), resizes, mark);
        return mark_grants(ledger_node_held(node), resizes, mark) >> 44;
}

static size_t count_open(const LedgerNode *node, const PageResizes *resizes) {
        size_t open = 0;

        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                const PageResize *resize = page_resizes_find(resizes, grant_uid(g));

                open += resize && resize->open;
        }
        return open;
}

static void append_member(Buf *out, const char *key, uint64_t value) {
        if (value > 0)
                buf_appendf(out, ",\"%s\":%llu", key, (unsigned long long) value);
}

/* ---- what namespaces have ---- */

enum { NAMESPACES_MAX = 64 };

typedef struct NamespaceSum {
        Str name; /* empty: the sum of namespaces beyond NAMESPACES_MAX */
        uint64_t pods, mem, core;
} NamespaceSum;

typedef struct NamespaceSums {
        NamespaceSum list[NAMESPACES_MAX + 1];
        size_t n;
} NamespaceSums;

static NamespaceSum *sum_of(NamespaceSums *s, Str name) {
        for (size_t i = 0; i < s->n; i++)
                if (str_eq(s->list[i].name, name))
                        return &s->list[i];
        if (s->n == NAMESPACES_MAX + 1)
                return &s->list[NAMESPACES_MAX];
        s->list[s->n] = (NamespaceSum){.name = s->n < NAMESPACES_MAX ? name : STR("")};
        return &s->list[s->n++];
}

static void add_grants(const Grant *g, NamespaceSums *sums) {
        for (; g; g = grant_next(g)) {
                NamespaceSum *sum = sum_of(sums, grant_namespace(g));
                size_t n;
                const Slice *slices = grant_slices(g, &n);

                sum->pods++;
                sum->mem += grant_pending(g);
                sum->core += grant_pending_core(g);
                for (size_t i = 0; i < n; i++) {
                        if (i > 0 && slices[i].card == slices[i - 1].card)
                                continue; /* slices are sorted by card */
                        sum->mem += grant_mem_on_card(g, slices[i].card);
                        sum->core += grant_core_on_card(g, slices[i].card);
                }
        }
}

static int compare_namespaces(const void *a, const void *b) {
        return str_compare(((const NamespaceSum *) a)->name, ((const NamespaceSum *) b)->name);
}

static void write_namespaces(const LedgerNode *node, Buf *out) {
        NamespaceSums sums = {.n = 0};

        add_grants(ledger_node_grants(node), &sums);
        add_grants(ledger_node_held(node), &sums);
        if (sums.n == 0)
                return;
        /* Sorted, so that another order of the grants is no change of the row. */
        qsort(sums.list, sums.n, sizeof sums.list[0], compare_namespaces);
        buf_append_str(out, STR(",\"namespaces\":["));
        for (size_t i = 0; i < sums.n; i++) {
                buf_append_str(out, i > 0 ? STR(",[") : STR("["));
                json_write_quoted(out, sums.list[i].name);
                append_number(out, ',', sums.list[i].pods);
                append_number(out, ',', sums.list[i].mem);
                append_number(out, ',', sums.list[i].core);
                buf_append_char(out, ']');
        }
        buf_append_char(out, ']');
}

void page_rows_node(const LedgerNode *node, const PageResizes *resizes, Buf *out) {
        const LedgerCard *cards = ledger_node_cards(node);
        const char *change = ledger_node_change_pending(node), *message;
        bool any = false;

        buf_append_str(out, STR("{\"name\":"));
        json_write_quoted(out, ledger_node_name(node));
        buf_appendf(out, ",\"mode\":\"%s\"", share_mode_to_string(ledger_node_mode(node)));
        append_member(out, "unit",
                      share_mode_has_whole(ledger_node_mode(node)) ? 0 : ledger_node_unit(node).mib);
        append_member(out, "core", share_mode_has_core(ledger_node_mode(node)));
        append_member(out, "spread", ledger_node_policy(node) == PLACEMENT_SPREAD);
        append_member(out, "pending", ledger_node_pending(node));
        append_member(out, "resizes", count_open(node, resizes));
        append_member(out, "mark", mark_of(node, resizes));
        append_member(out, "limits", ledger_node_memory_limits(node, &message));
        if (change[0] != '\0') {
                buf_append_str(out, STR(",\"change\":"));
                json_write_quoted(out, str_from(change));
        }
        write_namespaces(node, out);
        buf_append_str(out, STR(",\"cards\":["));
        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                /* Such a card exists only because an earlier grant named it. */
                if (cards[i].units == 0 && cards[i].pods == 0)
                        continue;
                if (any)
                        buf_append_char(out, ',');
                any = true;
                write_card(node, &cards[i], out);
        }
        buf_append_str(out, STR("]}"));
}

/* ---- the slices ---- */

typedef struct Row {
        const Grant *grant;
        const Slice *slice;
        bool gone;
} Row;

static int compare_rows(const void *a, const void *b) {
        const Row *x = a, *y = b;
        int r;

        if (x->slice->card != y->slice->card)
                return x->slice->card < y->slice->card ? -1 : 1;
        r = str_compare(grant_namespace(x->grant), grant_namespace(y->grant));
        if (r == 0)
                r = str_compare(grant_name(x->grant), grant_name(y->grant));
        return r != 0 ? r : grant_compare_slices(x->slice, y->slice);
}

static size_t count_slices(const Grant *g) {
        size_t all = 0, n;

        for (; g; g = grant_next(g)) {
                (void) grant_slices(g, &n);
                all += n;
        }
        return all;
}

static size_t collect_rows(const Grant *g, bool gone, Row *rows) {
        size_t all = 0, n;

        for (; g; g = grant_next(g)) {
                const Slice *slices = grant_slices(g, &n);

                for (size_t i = 0; i < n; i++)
                        rows[all++] = (Row){.grant = g, .slice = &slices[i], .gone = gone};
        }
        return all;
}

static void write_pod(JsonWriter *w, const Grant *g) {
        json_write_str(w, "namespace", grant_namespace(g));
        json_write_str(w, "name", grant_name(g));
}

static void write_slice(JsonWriter *w, const Row *row, const PageResizes *resizes) {
        static const char *const kinds[] = {
                [CONTAINER_MAIN] = "main", [CONTAINER_INIT] = "init", [CONTAINER_SIDECAR] = "sidecar"};
        const PageResize *resize = page_resizes_find(resizes, grant_uid(row->grant));

        json_write_object(w, NULL);
        json_write_u64(w, "card", row->slice->card);
        write_pod(w, row->grant);
        json_write_u64(w, "mem", row->slice->mem);
        json_write_u64(w, "core", row->slice->core);
        json_write_text(w, "kind", kinds[row->slice->kind]);
        json_write_u64(w, "container", row->slice->container);
        if (row->gone)
                json_write_bool(w, "gone", true);
        if (resize)
                json_write_str(w, "resize", resize->text);
        json_write_object_end(w);
}

static void write_pending(JsonWriter *w, const LedgerNode *node) {
        json_write_array(w, "pending");
        for (const Grant *g = ledger_node_grants(node); g; g = grant_next(g)) {
                if (grant_pending(g) == 0)
                        continue;
                json_write_object(w, NULL);
                write_pod(w, g);
                json_write_u64(w, "mem", grant_pending(g));
                json_write_u64(w, "core", grant_pending_core(g));
                json_write_object_end(w);
        }
        json_write_array_end(w);
}

static void write_models(JsonWriter *w, const LedgerNode *node) {
        const LedgerCard *cards = ledger_node_cards(node);

        json_write_object(w, "models");
        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                const CardShape *shape = ledger_card_shape(node, &cards[i]);
                char index[16];

                if (!shape || str_is_empty(shape->model))
                        continue;
                (void) snprintf(index, sizeof index, "%u", cards[i].index);
                json_write_str(w, index, shape->model);
        }
        json_write_object_end(w);
}

static int write_fences(JsonWriter *w, const LedgerNode *node, const Fences *fences) {
        const LedgerCard *cards = ledger_node_cards(node);
        _cleanup_buf_ Buf wrong = BUF_NULL;

        json_write_object(w, "fences");
        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                Str name = fences_name(fences, ledger_node_name(node), cards[i].index);
                char index[16];

                if (str_is_empty(name))
                        continue;
                (void) snprintf(index, sizeof index, "%u", cards[i].index);
                json_write_str(w, index, name);
        }
        json_write_object_end(w);
        fences_format_wrong(fences, ledger_node_name(node), &wrong);
        if (wrong.len > 0)
                json_write_str(w, "fences_wrong", buf_str(&wrong));
        return buf_result(&wrong);
}

/* Names what isolates memory, and why it is not more. */
static void write_isolation(JsonWriter *w, const LedgerNode *node) {
        const char *message;

        if (ledger_node_memory_limits(node, &message) != MEMORY_LIMITS_NONE)
                json_write_text(w, "isolation", message);
        else if (share_mode_is_isolated(ledger_node_mode(node)))
                json_write_text(w, "isolation",
                                "memory is isolated by the library; the node does not ask for limits of the "
                                "driver");
}

int page_rows_slices(const LedgerNode *node, const PageResizes *resizes, const Fences *fences, Arena *arena,
                     Buf *out) {
        const Grant *pods = ledger_node_grants(node), *held = ledger_node_held(node);
        Row *rows = arena_new(arena, Row, count_slices(pods) + count_slices(held) + 1);
        JsonWriter w;
        size_t n;
        int r;

        if (!rows)
                return -ENOMEM;
        n = collect_rows(pods, false, rows);
        n += collect_rows(held, true, rows + n);
        qsort(rows, n, sizeof *rows, compare_rows);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_str(&w, "name", ledger_node_name(node));
        json_write_array(&w, "slices");
        for (size_t i = 0; i < n; i++)
                write_slice(&w, &rows[i], resizes);
        json_write_array_end(&w);
        write_pending(&w, node);
        write_models(&w, node);
        write_isolation(&w, node);
        r = write_fences(&w, node, fences);
        json_write_object_end(&w);
        return r < 0 ? r : buf_result(out);
}
