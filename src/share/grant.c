/* SPDX-License-Identifier: Apache-2.0 */
#include "share/grant.h"

#include <assert.h>
#include <errno.h>

#include "share/demand.h"
#include "share/held.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"

/* ---- what it takes ---- */

/* The demand of the slices on one card, which begin at *i; *i moves behind them. */
static GrantDemand demand_of_run(const Grant *g, size_t *i) {
        Demand mem = {0}, core = {0};
        uint32_t card = g->slices[*i].card;

        for (; *i < g->n_slices && g->slices[*i].card == card; (*i)++) {
                demand_add(&mem, g->slices[*i].kind, g->slices[*i].mem);
                demand_add(&core, g->slices[*i].kind, g->slices[*i].core);
        }
        return (GrantDemand){demand_total(&mem), demand_total(&core)};
}

GrantDemand grant_demand(const Grant *g, uint32_t card) {
        for (size_t i = 0; i < g->n_slices; i++)
                if (g->slices[i].card == card)
                        return demand_of_run(g, &i);
        return (GrantDemand){0, 0};
}

int grant_reserve_cards(LedgerNode *n, const Grant *g) {
        for (size_t i = 0; i < g->n_slices; i++)
                if (!ledger_card_ensure(n, g->slices[i].card))
                        return -ENOMEM;
        return 0;
}

/* No sum overflows 2^63: a slice is below 2^32, a grant has fewer than 2^16, and 2^15 such grants
 * would need gigabytes of annotations. */
void grant_charge(const Grant *g) {
        LedgerNode *n = g->node;

        for (size_t i = 0; i < g->n_slices;) {
                LedgerCard *c = ledger_card_ensure(n, g->slices[i].card);
                GrantDemand d = demand_of_run(g, &i);

                c->used += d.mem;
                c->core_used += d.core;
                c->pods++;
        }
        n->pending += g->pending;
        n->pending_core += g->pending_core;
        n->cpu.shares += g->cpu;
        n->n_pending += g->pending > 0;
        n->n_with_core += g->has_core;
        n->n_charged++;
}

void grant_discharge(const Grant *g) {
        LedgerNode *n = g->node;

        for (size_t i = 0; i < g->n_slices;) {
                LedgerCard *c = ledger_card_ensure(n, g->slices[i].card);
                GrantDemand d = demand_of_run(g, &i);

                assert(c->used >= d.mem && c->core_used >= d.core && c->pods > 0);
                c->used -= d.mem;
                c->core_used -= d.core;
                c->pods--;
        }
        assert(n->cpu.shares >= g->cpu);
        assert(n->pending >= g->pending && n->pending_core >= g->pending_core && n->n_charged > 0);
        n->pending -= g->pending;
        n->pending_core -= g->pending_core;
        n->cpu.shares -= g->cpu;
        n->n_pending -= g->pending > 0;
        n->n_with_core -= g->has_core;
        n->n_charged--;
}

/* ---- making and unmaking ---- */

static uint32_t saturate_u32(uint64_t value) {
        return value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
}

/* Counts the grant's shape, with the memory of its largest slice. Returns 0 or -ENOMEM. */
static int count_shape(Grant *g, ShapeTally *t) {
        Shape shape = {0};

        for (size_t i = 0; i < g->n_slices; shape.cards++) {
                uint32_t mem = saturate_u32(demand_of_run(g, &i).mem);

                shape.mem = mem > shape.mem ? mem : shape.mem;
        }
        if (shape.cards == 0 || g->whole)
                return 0;
        g->shape = shape_tally_add(t, shape);
        return g->shape ? 0 : -ENOMEM;
}

int grant_compare_slices(const void *a, const void *b) {
        const Slice *x = a, *y = b;
        bool x_main = x->kind == CONTAINER_MAIN, y_main = y->kind == CONTAINER_MAIN;

        if (x->card != y->card)
                return x->card < y->card ? -1 : 1;
        if (x_main != y_main)
                return x_main ? 1 : -1;
        return (x->container > y->container) - (x->container < y->container);
}

int grant_build(const GrantSpec *spec, Grant **ret) {
        Grant *g;
        char *at;

        if (spec->n_slices > UINT16_MAX || spec->namespace_.len > UINT16_MAX || spec->name.len > UINT16_MAX ||
            spec->uid.len > UINT16_MAX)
                return -E2BIG;
        g = malloc(sizeof *g + spec->n_slices * sizeof(Slice) + spec->namespace_.len + spec->name.len +
                   spec->uid.len);
        if (!g)
                return -ENOMEM;
        *g = (Grant){
                .app = spec->app,
                .pending = spec->pending_mem,
                .pending_core = spec->pending_core,
                .cpu = spec->cpu,
                .n_slices = (uint32_t) spec->n_slices,
                .namespace_len = (uint16_t) spec->namespace_.len,
                .name_len = (uint16_t) spec->name.len,
                .uid_len = (uint16_t) spec->uid.len,
                .has_core = spec->has_core,
                .whole = spec->whole,
        };
        for (size_t i = 0; i < spec->n_slices; i++) {
                /* readers of annotations accept no larger index */
                assert(spec->slices[i].card <= CARD_INDEX_MAX);
                g->slices[i] = spec->slices[i];
        }
        qsort(g->slices, spec->n_slices, sizeof(Slice), grant_compare_slices);
        at = (char *) &g->slices[spec->n_slices];
        (void) str_put(&at, spec->namespace_);
        (void) str_put(&at, spec->name);
        (void) str_put(&at, spec->uid);
        *ret = g;
        return 0;
}

void grant_link(Grant *g, LedgerNode *n, Grant **list) {
        g->node = n;
        g->link = list;
        g->next = *list;
        if (g->next)
                g->next->link = &g->next;
        *list = g;
}

void grant_unlink(Grant *g) {
        *g->link = g->next;
        if (g->next)
                g->next->link = g->link;
}

int grant_new(Ledger *l, const GrantSpec *spec, Grant **ret) {
        _cleanup_free_ Grant *g = NULL;
        LedgerNode *n;
        int r;

        r = grant_build(spec, &g);
        if (r < 0)
                return r;
        n = ledger_node_ensure(l, spec->node);
        if (!n)
                return -ENOMEM;
        r = grant_reserve_cards(n, g);
        if (r == 0)
                r = count_shape(g, &l->tally);
        if (r == 0) {
                r = replicas_add(&l->replicas, g->app, n->slot);
                if (r < 0)
                        shape_tally_remove(&l->tally, g->shape);
        }
        if (r < 0) {
                ledger_card_drop_stale(n);
                ledger_node_drop_if_unused(n);
                return r;
        }
        grant_link(g, n, &n->grants);
        grant_charge(g);
        held_suspend(n, grant_uid(g));
        ledger_summary_update(n);
        *ret = TAKE_PTR(g);
        return 0;
}

Grant *grant_free(Grant *g) {
        LedgerNode *n;

        if (!g)
                return NULL;
        assert(!g->is_held); /* those end with the node's annotation */
        n = g->node;
        grant_unlink(g);
        grant_discharge(g);
        shape_tally_remove(&n->ledger->tally, g->shape);
        replicas_remove(&n->ledger->replicas, g->app, n->slot);
        held_resume(n, grant_uid(g));
        free(g);
        ledger_card_drop_stale(n);
        ledger_summary_update(n);
        ledger_node_drop_if_unused(n);
        return NULL;
}

/* ---- reading ---- */

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
        return saturate_u32(grant_demand(g, card).mem);
}

uint32_t grant_core_on_card(const Grant *g, uint32_t card) {
        return saturate_u32(grant_demand(g, card).core);
}

uint32_t grant_pending(const Grant *g) {
        return g->pending;
}

uint32_t grant_pending_core(const Grant *g) {
        return g->pending_core;
}

uint32_t grant_cpu(const Grant *g) {
        return g->cpu;
}

Grant *grant_next(const Grant *g) {
        return g->next;
}
