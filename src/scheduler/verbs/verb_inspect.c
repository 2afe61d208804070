/* SPDX-License-Identifier: Apache-2.0 */

/* GET /inspect: the slices of each pod, as the ledger counts them. */

#include "scheduler/verbs/verbs.h"
#include "share/card_lack.h"
#include "wire/inspect_json.h"

static bool is_sharing(const LedgerNode *n) {
        return ledger_node_n_cards(n) > 0 || ledger_node_grants(n);
}

static int compare_nodes(const void *a, const void *b) {
        return str_compare(ledger_node_name(*(LedgerNode *const *) a),
                           ledger_node_name(*(LedgerNode *const *) b));
}

/* The grant of a pod, or of a deleted pod if processes still hold its slices. */
typedef struct Holder {
        Grant *grant;
        bool deleted;
} Holder;

static int compare_holders(const void *a, const void *b) {
        const Holder *x = a, *y = b;
        int r = str_compare(grant_namespace(x->grant), grant_namespace(y->grant));

        if (r == 0)
                r = str_compare(grant_name(x->grant), grant_name(y->grant));
        if (r == 0)
                r = x->deleted - y->deleted;
        return r != 0 ? r : str_compare(grant_uid(x->grant), grant_uid(y->grant));
}

typedef struct GrantList {
        Holder *items;
        size_t n;
} GrantList;

static void add_grants(Grant *first, bool deleted, GrantList *list) {
        for (Grant *g = first; g; g = grant_next(g))
                list->items[list->n++] = (Holder){g, deleted};
}

static bool collect_grants(const LedgerNode *node, Arena *arena, GrantList *ret) {
        size_t n = 0;

        for (Grant *g = ledger_node_grants(node); g; g = grant_next(g))
                n++;
        for (Grant *g = ledger_node_held(node); g; g = grant_next(g))
                n++;
        ret->items = arena_new(arena, Holder, n + 1);
        ret->n = 0;
        if (!ret->items)
                return false;
        add_grants(ledger_node_grants(node), false, ret);
        add_grants(ledger_node_held(node), true, ret);
        qsort(ret->items, n, sizeof ret->items[0], compare_holders);
        return true;
}

static uint64_t pending_core(const GrantList *grants) {
        uint64_t core = 0;

        for (size_t i = 0; i < grants->n; i++)
                core += grant_pending_core(grants->items[i].grant);
        return core;
}

static void write_pending(JsonWriter *w, const LedgerNode *node, const GrantList *grants) {
        uint64_t core = pending_core(grants);

        if (ledger_node_pending(node) == 0 && core == 0)
                return;
        inspect_json_pending(w, ledger_node_pending(node), core);
        for (size_t i = 0; i < grants->n; i++) {
                Grant *g = grants->items[i].grant;

                if (grant_pending(g) > 0 || grant_pending_core(g) > 0)
                        inspect_json_pod(w, grant_namespace(g), grant_name(g), grant_pending(g),
                                         grant_pending_core(g));
        }
        inspect_json_pending_end(w);
}

static uint64_t core_of(const LedgerNode *node, const LedgerCard *c) {
        return share_mode_has_core(ledger_node_mode(node)) && c->units > 0 ? 100 : 0;
}

static void write_card(JsonWriter *w, const LedgerNode *node, const LedgerCard *c, const GrantList *grants) {
        LedgerUse used = ledger_node_shown(node, c);
        InspectJsonSums sums = {.total_mem = c->units,
                                .used_mem = used.mem,
                                .total_core = core_of(node, c),
                                .used_core = used.core};

        inspect_json_card(w, c->index, &sums, card_state_text(card_lack_state(node, c)));
        for (size_t i = 0; i < grants->n; i++) {
                Grant *g = grants->items[i].grant;
                uint32_t mem = grant_mem_on_card(g, c->index), core = grant_core_on_card(g, c->index);

                if ((mem > 0 || core > 0) && grants->items[i].deleted)
                        inspect_json_deleted_pod(w, grant_namespace(g), grant_name(g), mem, core);
                else if (mem > 0 || core > 0)
                        inspect_json_pod(w, grant_namespace(g), grant_name(g), mem, core);
        }
        inspect_json_card_end(w);
}

static bool write_node(JsonWriter *w, const LedgerNode *node, Arena *arena) {
        const LedgerCard *cards = ledger_node_cards(node);
        InspectJsonSums sums = {.used_mem = ledger_node_pending(node)};
        GrantList grants;

        arena_reset(arena);
        if (!collect_grants(node, arena, &grants))
                return false;
        sums.used_core = pending_core(&grants);
        for (size_t i = 0; i < ledger_node_n_cards(node); i++) {
                LedgerUse used = ledger_node_shown(node, &cards[i]);

                sums.total_mem += cards[i].units;
                sums.used_mem += used.mem;
                sums.total_core += core_of(node, &cards[i]);
                sums.used_core += used.core;
        }
        inspect_json_node(w, ledger_node_name(node), &sums);
        write_pending(w, node, &grants);
        inspect_json_cards(w);
        for (size_t i = 0; i < ledger_node_n_cards(node); i++)
                /* Such a card exists only because an earlier grant named it. */
                if (cards[i].units > 0 || cards[i].pods > 0)
                        write_card(w, node, &cards[i], &grants);
        inspect_json_cards_end(w);
        inspect_json_node_end(w);
        return true;
}

static bool write_nodes(const Ledger *ledger, JsonWriter *w, Arena *arena) {
        _cleanup_free_ LedgerNode **nodes = calloc(ledger_n_nodes(ledger) + 1, sizeof *nodes);
        size_t n = 0;

        if (!nodes)
                return false;
        for (size_t i = 0; i < ledger_n_nodes(ledger); i++)
                if (is_sharing(ledger_node_at(ledger, i)))
                        nodes[n++] = ledger_node_at(ledger, i);
        qsort(nodes, n, sizeof *nodes, compare_nodes);
        for (size_t i = 0; i < n; i++)
                if (!write_node(w, nodes[i], arena))
                        return false;
        return true;
}

unsigned verb_inspect(SchedulerContext *c, Str name, Buf *out) {
        const LedgerNode *node = ledger_node_find(c->view->ledger, name);
        JsonWriter w;
        bool ok;

        if (!str_is_empty(name) && (!node || !is_sharing(node))) {
                buf_appendf(out, "node \"" STR_FMT "\" shares no GPU, or is not known\n", STR_ARG(name));
                return 404;
        }
        inspect_json_begin(&w, out);
        ok = str_is_empty(name) ? write_nodes(c->view->ledger, &w, c->arena) : write_node(&w, node, c->arena);
        inspect_json_end(&w);
        return ok && buf_result(out) == 0 ? 200 : verb_failed(-1, NULL, out);
}
