/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger.h"

#include <assert.h>
#include <errno.h>

#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"

int ledger_new(Ledger **ret) {
        Ledger *l = calloc(1, sizeof *l);

        if (!l)
                return -ENOMEM;
        *ret = l;
        return 0;
}

static void node_free(LedgerNode *n) {
        assert(!n->grants && !n->held && !n->dormant && !n->growth && n->n_charged == 0 && n->pending == 0);
        assert(n->cpu.shares == 0 && n->load.parts == 0 && n->load.cpu == 0);
        for (size_t i = 0; i < n->n_cards; i++)
                assert(n->cards[i].used == 0 && n->cards[i].core_used == 0 && n->cards[i].pods == 0);
        node_description_done(&n->now);
        free(n->cards);
        free(n->name);
        free(n);
}

Ledger *ledger_free(Ledger *l) {
        if (!l)
                return NULL;
        while (l->n_nodes > 0) {
                LedgerNode *n = l->nodes[l->n_nodes - 1];

                n->described = true; /* or the last grant would free the node */
                while (n->grants)
                        (void) grant_free(n->grants);
                memset(n->fenced, 0, sizeof n->fenced);
                n->cpu.others = 0;
                ledger_node_remove(l, ledger_node_name(n));
        }
        assert(!l->replicas && !l->by_name && !l->shapes && !l->tally.table);
        fragment_done(&l->fragment);
        rank_cache_done(&l->ranks);
        free(l->nodes);
        free(l->summaries);
        free(l);
        return NULL;
}

void ledger_set_order(Ledger *l, NodeOrder order) {
        l->order = order;
}

NodeOrder ledger_order(const Ledger *l) {
        return l->order;
}

/* ---- nodes come and go ---- */

static int ledger_reserve(Ledger *l) {
        size_t room = l->room > 0 ? 2 * l->room : 64;
        LedgerNode **nodes;
        LedgerSummary *summaries;

        if (l->n_nodes < l->room)
                return 0;
        if (room > UINT32_MAX)
                return -ENOMEM;
        nodes = realloc(l->nodes, room * sizeof *nodes);
        if (!nodes)
                return -ENOMEM;
        l->nodes = nodes;
        summaries = realloc(l->summaries, room * sizeof *summaries);
        if (!summaries)
                return -ENOMEM;
        l->summaries = summaries;
        rank_cache_done(&l->ranks);
        l->room = room;
        return 0;
}

static LedgerNode *node_new(Ledger *l, Str name) {
        LedgerNode *n = calloc(1, sizeof *n);

        if (!n)
                return NULL;
        n->name = str_dup(name);
        if (!n->name) {
                free(n);
                return NULL;
        }
        n->name_len = name.len;
        n->ledger = l;
        n->now.unit = MEMORY_UNIT_GIB;
        return n;
}

LedgerNode *ledger_node_ensure(Ledger *l, Str name) {
        LedgerNode *n = ledger_node_find(l, name);

        if (n)
                return n;
        if (ledger_reserve(l) < 0)
                return NULL;
        n = node_new(l, name);
        if (!n)
                return NULL;
        HASH_ADD_KEYPTR(hh, l->by_name, n->name, n->name_len, n);
        if (!hash_added(n, hh)) {
                node_free(n);
                return NULL;
        }
        n->slot = (uint32_t) l->n_nodes;
        l->nodes[l->n_nodes++] = n;
        ledger_summary_update(n);
        return n;
}

static bool has_fences(const LedgerNode *n) {
        for (size_t i = 0; i < LEDGER_FENCE_BYTES; i++)
                if (n->fenced[i])
                        return true;
        return false;
}

/* Frees the slot of a node: the last node moves there, so that slots have no gaps. */
static void give_slot_back(LedgerNode *n) {
        Ledger *l = n->ledger;
        LedgerNode *last = l->nodes[--l->n_nodes];

        if (last == n)
                return;
        for (const Grant *g = last->grants; g; g = g->next)
                replicas_move(l->replicas, g->app, last->slot, n->slot);
        l->nodes[n->slot] = last;
        l->summaries[n->slot] = l->summaries[last->slot];
        rank_cache_forget(&l->ranks, n->slot);
        last->slot = n->slot;
}

void ledger_node_drop_if_unused(LedgerNode *n) {
        if (n->described || n->grants || n->cpu.others > 0 || has_fences(n))
                return;
        give_slot_back(n);
        HASH_DELETE(hh, n->ledger->by_name, n);
        node_free(n);
}

LedgerNode *ledger_node_find(const Ledger *l, Str name) {
        LedgerNode *n;

        HASH_FIND(hh, l->by_name, name.data, name.len, n);
        return n;
}

size_t ledger_n_nodes(const Ledger *l) {
        return l->n_nodes;
}

LedgerNode *ledger_node_at(const Ledger *l, size_t i) {
        return l->nodes[i];
}

void ledger_prefetch(LedgerNode *const *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i])
                        __builtin_prefetch(&nodes[i]->ledger); /* `slot` is beside it */
        for (size_t i = 0; i < n; i++)
                if (nodes[i]) {
                        const LedgerSummary *s = &nodes[i]->ledger->summaries[nodes[i]->slot];

                        __builtin_prefetch(s);
                        __builtin_prefetch((const char *) (s + 1) - 1);
                }
}
