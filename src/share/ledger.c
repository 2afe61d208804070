/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger.h"

#include <assert.h>
#include <errno.h>

#include "share/demand.h"
#include "share/ledger-internal.h"

int ledger_new(Ledger **ret) {
        Ledger *l = calloc(1, sizeof *l);

        if (!l)
                return -ENOMEM;
        *ret = l;
        return 0;
}

Ledger *ledger_free(Ledger *l) {
        if (!l)
                return NULL;
        while (l->n_nodes > 0) {
                LedgerNode *n = l->nodes[l->n_nodes - 1];

                n->described = false;
                memset(n->fenced, 0, sizeof n->fenced);
                while (n->n_grants > 1)
                        (void) grant_free(n->grants);
                if (n->grants)
                        (void) grant_free(n->grants); /* takes the node along */
                else
                        ledger_node_drop_if_unused(n);
        }
        free(l->nodes);
        free(l->summaries);
        free(l);
        return NULL;
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

/* ---- grants ---- */

typedef struct CardDemand {
        uint64_t mem, core;
} CardDemand;

/* What the run of slices on one card takes; *i moves behind the run. */
static CardDemand demand_of_run(const Grant *g, size_t *i) {
        Demand mem = {0}, core = {0};
        uint32_t card = g->slices[*i].card;

        for (; *i < g->n_slices && g->slices[*i].card == card; (*i)++) {
                demand_add(&mem, g->slices[*i].kind, g->slices[*i].mem);
                demand_add(&core, g->slices[*i].kind, g->slices[*i].core);
        }
        return (CardDemand){demand_total(&mem), demand_total(&core)};
}

static CardDemand demand_on(const Grant *g, uint32_t card) {
        for (size_t i = 0; i < g->n_slices; i++)
                if (g->slices[i].card == card)
                        return demand_of_run(g, &i);
        return (CardDemand){0, 0};
}

static uint32_t saturate(uint64_t value) {
        return value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
}

/* Makes every card exist before anything is charged, so that charging cannot fail half way. */
static int reserve_cards(LedgerNode *n, const Grant *g) {
        for (size_t i = 0; i < g->n_slices; i++)
                if (!ledger_node_card(n, g->slices[i].card))
                        return -ENOMEM;
        return 0;
}

static void charge(LedgerNode *n, const Grant *g, bool back) {
        for (size_t i = 0; i < g->n_slices;) {
                LedgerCard *c = ledger_node_card(n, g->slices[i].card);
                CardDemand d = demand_of_run(g, &i);

                if (back) {
                        assert(c->used >= d.mem && c->core_used >= d.core && c->pods > 0);
                        c->used -= d.mem;
                        c->core_used -= d.core;
                        c->pods--;
                } else {
                        c->used += d.mem; /* 2^32 grants of 2^48 each at most: no overflow */
                        c->core_used += d.core;
                        c->pods++;
                }
        }
        n->pending = back ? n->pending - g->pending : n->pending + g->pending;
        n->n_with_core = back ? n->n_with_core - g->has_core : n->n_with_core + g->has_core;
        n->n_grants = back ? n->n_grants - 1 : n->n_grants + 1;
}

static int compare_slices(const void *a, const void *b) {
        const Slice *x = a, *y = b;
        bool x_main = x->kind == CONTAINER_MAIN, y_main = y->kind == CONTAINER_MAIN;

        if (x->card != y->card)
                return x->card < y->card ? -1 : 1;
        if (x_main != y_main)
                return x_main ? 1 : -1;
        return (x->container > y->container) - (x->container < y->container);
}

static char *append_text(char *at, Str s) {
        if (s.len > 0)
                memcpy(at, s.data, s.len);
        return at + s.len;
}

static Grant *grant_build(const GrantSpec *spec) {
        size_t texts = spec->namespace_.len + spec->name.len + spec->uid.len;
        Grant *g = malloc(sizeof(Grant) + spec->n_slices * sizeof(Slice) + texts);
        char *at;

        if (!g)
                return NULL;
        *g = (Grant){
                .app = spec->app,
                .pending = spec->pending_mem,
                .n_slices = (uint16_t) spec->n_slices,
                .namespace_len = (uint16_t) spec->namespace_.len,
                .name_len = (uint16_t) spec->name.len,
                .uid_len = (uint16_t) spec->uid.len,
                .has_core = spec->has_core,
        };
        if (spec->n_slices > 0)
                memcpy(g->slices, spec->slices, spec->n_slices * sizeof(Slice));
        qsort(g->slices, spec->n_slices, sizeof(Slice), compare_slices);
        at = append_text((char *) &g->slices[spec->n_slices], spec->namespace_);
        at = append_text(at, spec->name);
        (void) append_text(at, spec->uid);
        return g;
}

int grant_new(Ledger *l, const GrantSpec *spec, Grant **ret) {
        _cleanup_free_ Grant *g = NULL;
        LedgerNode *n;
        int r;

        if (spec->n_slices > UINT16_MAX || spec->namespace_.len > UINT16_MAX || spec->name.len > UINT16_MAX ||
            spec->uid.len > UINT16_MAX)
                return -E2BIG;
        g = grant_build(spec);
        n = g ? ledger_node_ensure(l, spec->node) : NULL;
        if (!n)
                return -ENOMEM;
        r = reserve_cards(n, g);
        if (r < 0) {
                ledger_node_drop_if_unused(n);
                return r;
        }
        g->node = n;
        g->link = &n->grants;
        g->next = n->grants;
        if (g->next)
                g->next->link = &g->next;
        n->grants = g;
        charge(n, g, false);
        n->apps |= g->app ? UINT64_C(1) << g->app % 64 : 0;
        ledger_node_summarize(n);
        *ret = TAKE_PTR(g);
        return 0;
}

Grant *grant_free(Grant *g) {
        LedgerNode *n;

        if (!g)
                return NULL;
        n = g->node;
        *g->link = g->next;
        if (g->next)
                g->next->link = g->link;
        charge(n, g, true);
        free(g);
        n->apps = 0;
        for (Grant *other = n->grants; other; other = other->next)
                n->apps |= other->app ? UINT64_C(1) << other->app % 64 : 0;
        if (!n->grants)
                ledger_node_settle(n);
        ledger_node_summarize(n);
        ledger_node_drop_if_unused(n);
        return NULL;
}

static const char *grant_texts(const Grant *g) {
        return (const char *) &g->slices[g->n_slices];
}

Str grant_namespace(const Grant *g) {
        return (Str){grant_texts(g), g->namespace_len};
}

Str grant_name(const Grant *g) {
        return (Str){grant_texts(g) + g->namespace_len, g->name_len};
}

Str grant_uid(const Grant *g) {
        return (Str){grant_texts(g) + g->namespace_len + g->name_len, g->uid_len};
}

LedgerNode *grant_node(const Grant *g) {
        return g->node;
}

const Slice *grant_slices(const Grant *g, size_t *ret_n) {
        *ret_n = g->n_slices;
        return g->slices;
}

uint32_t grant_mem_on_card(const Grant *g, uint32_t card) {
        return saturate(demand_on(g, card).mem);
}

uint32_t grant_core_on_card(const Grant *g, uint32_t card) {
        return saturate(demand_on(g, card).core);
}

uint32_t grant_pending(const Grant *g) {
        return g->pending;
}

Grant *ledger_node_grants(const LedgerNode *n) {
        return n->grants;
}

Grant *grant_next(const Grant *g) {
        return g->next;
}

/* ---- the proof ---- */

static bool node_check(const LedgerNode *n) {
        uint64_t pending = 0;
        size_t grants = 0, with_core = 0;

        for (const Grant *g = n->grants; g; g = g->next) {
                pending += g->pending;
                with_core += g->has_core;
                grants++;
        }
        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                uint64_t used = 0, core = 0, pods = 0;

                for (const Grant *g = n->grants; g; g = g->next)
                        for (size_t k = 0; k < g->n_slices; k++)
                                if (g->slices[k].card == c->index) {
                                        CardDemand d = demand_on(g, c->index);
                                        used += d.mem;
                                        core += d.core;
                                        pods++;
                                        break;
                                }
                if (used != c->used || core != c->core_used || pods != c->pods)
                        return false;
                if (i > 0 && n->cards[i - 1].index >= c->index)
                        return false;
        }
        return pending == n->pending && grants == n->n_grants && with_core == n->n_with_core;
}

bool ledger_check(const Ledger *l) {
        for (size_t i = 0; i < l->n_nodes; i++)
                if (l->nodes[i]->slot != i || !node_check(l->nodes[i]))
                        return false;
        return HASH_COUNT(l->by_name) == l->n_nodes;
}
