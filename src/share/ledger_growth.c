/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger_growth.h"

#include <assert.h>
#include <errno.h>

#include "share/ledger-internal.h"
#include "share/ledger_card.h"

struct LedgerGrowth {
        LedgerGrowth *next;
        uint64_t settled;          /* the serial of ledger_growth_settle(); UINT64_MAX: not known yet */
        GrowthSize seen, reserved; /* in the annotation, and by this scheduler */
        uint32_t container, card;
        uint16_t uid_len;
        char uid[];
};

static GrowthSize charged(const LedgerGrowth *g) {
        return growth_larger(g->seen, g->reserved);
}

static bool is_of(const LedgerGrowth *g, Str uid) {
        return str_eq((Str){g->uid, g->uid_len}, uid);
}

static LedgerGrowth *find(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        for (LedgerGrowth *g = n->growth; g; g = g->next)
                if (g->container == container && g->card == card && is_of(g, uid))
                        return g;
        return NULL;
}

/* Makes what is missing, and its card, with nothing charged. NULL when out of memory. */
static LedgerGrowth *ensure(LedgerNode *n, const GrowthEntry *e) {
        LedgerGrowth *g = find(n, e->uid, e->container, e->card);

        if (!ledger_card_ensure(n, e->card) || e->uid.len > UINT16_MAX)
                return NULL;
        if (g)
                return g;
        g = calloc(1, sizeof *g + e->uid.len);
        if (!g)
                return NULL;
        g->container = e->container;
        g->card = e->card;
        g->uid_len = (uint16_t) e->uid.len;
        memcpy(g->uid, e->uid.data, e->uid.len);
        g->next = n->growth;
        n->growth = g;
        return g;
}

/* Adds the amounts of all entries to their cards, or subtracts them. */
static void charge_all(LedgerNode *n, bool add) {
        for (LedgerGrowth *g = n->growth; g; g = g->next) {
                LedgerCard *c = ledger_card_ensure(n, g->card); /* exists since ensure() */
                GrowthSize size = charged(g);

                assert(add || (c->used >= size.mem && c->core_used >= size.core));
                c->used += add ? size.mem : -(uint64_t) size.mem;
                c->core_used += add ? size.core : -(uint64_t) size.core;
        }
}

/* Those of size 0. */
static void drop_empty(LedgerNode *n) {
        for (LedgerGrowth **at = &n->growth; *at;) {
                LedgerGrowth *g = *at;
                GrowthSize size = charged(g);

                if (size.mem > 0 || size.core > 0) {
                        at = &g->next;
                        continue;
                }
                *at = g->next;
                free(g);
        }
}

static void take_over(LedgerNode *n, const Growth *read) {
        charge_all(n, false);
        n->growth_serial = read->serial;
        for (LedgerGrowth *g = n->growth; g; g = g->next) {
                const GrowthEntry *e = growth_find(read, (Str){g->uid, g->uid_len}, g->container, g->card);

                g->seen = e ? e->size : (GrowthSize){0, 0};
                if (g->settled <= read->serial)
                        g->reserved = (GrowthSize){0, 0};
        }
        charge_all(n, true);
        drop_empty(n);
}

int ledger_growth_set(LedgerNode *n, Str annotation, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth read;
        int r = 0;

        if (str_is_empty(annotation) && !n->growth && n->growth_serial == 0)
                return 0;
        r = growth_read(annotation, &arena, &read, fault);
        if (r != 0)
                return r > 0 ? LEDGER_E_NODE : r;
        for (size_t i = 0; i < read.n && r == 0; i++)
                r = ensure(n, &read.list[i]) ? 0 : -ENOMEM;
        if (r == 0)
                take_over(n, &read);
        else
                drop_empty(n);
        return r;
}

void ledger_growth_drop(LedgerNode *n) {
        charge_all(n, false);
        for (LedgerGrowth *g = n->growth; g; g = g->next)
                g->seen = g->reserved = (GrowthSize){0, 0};
        drop_empty(n);
        n->growth_serial = 0;
}

uint64_t ledger_growth_serial(const LedgerNode *n) {
        return n->growth_serial;
}

GrowthSize ledger_growth_of(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        const LedgerGrowth *g = find(n, uid, container, card);

        return g ? charged(g) : (GrowthSize){0, 0};
}

/* ---- reservations ---- */

GrowthSize ledger_growth_reserved(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        const LedgerGrowth *g = find(n, uid, container, card);

        return g ? g->reserved : (GrowthSize){0, 0};
}

static uint32_t above(uint32_t wanted, uint32_t charged_) {
        return wanted > charged_ ? wanted - charged_ : 0;
}

static int lacks(const LedgerNode *n, const LedgerCard *c, const char *what, uint32_t more, uint32_t free_,
                 Fault *fault) {
        return fault_set(fault, LEDGER_GROWTH_E_ROOM,
                         "gpu%u of node " STR_FMT " has %u%s free%s, %u more are needed: %u are missing",
                         c->index, STR_ARG(ledger_node_name(n)), free_, what,
                         c->healthy ? "" : " (it is fenced, cordoned or unhealthy)", more, more - free_);
}

int ledger_growth_reserve(LedgerNode *n, const GrowthEntry *e, Fault *fault) {
        LedgerGrowth *g = ensure(n, e);
        const LedgerCard *c = ledger_card_find(n, e->card);
        GrowthSize more;
        int r = 0;

        if (!g || !c)
                return -ENOMEM;
        more = (GrowthSize){above(e->size.mem, charged(g).mem), above(e->size.core, charged(g).core)};
        if (more.mem > ledger_card_free(n, c))
                r = lacks(n, c, " of gpu-mem", more.mem, ledger_card_free(n, c), fault);
        else if (more.core > ledger_card_core_free(n, c))
                r = lacks(n, c, " percent of gpu-core", more.core, ledger_card_core_free(n, c), fault);
        if (r == 0) {
                charge_all(n, false);
                g->reserved = growth_larger(g->reserved, e->size);
                g->settled = UINT64_MAX;
                charge_all(n, true);
        }
        drop_empty(n);
        ledger_card_drop_stale(n);
        if (r == 0) /* else its rank is still right */
                ledger_summary_update(n);
        return r;
}

void ledger_growth_settle(LedgerNode *n, Str uid, uint64_t serial) {
        bool found = false;

        charge_all(n, false);
        for (LedgerGrowth *g = n->growth; g; g = g->next) {
                if (!is_of(g, uid) || g->settled != UINT64_MAX)
                        continue;
                found = true;
                g->settled = serial;
                if (serial <= n->growth_serial)
                        g->reserved = (GrowthSize){0, 0};
        }
        charge_all(n, true);
        drop_empty(n);
        ledger_card_drop_stale(n);
        if (found)
                ledger_summary_update(n);
}

void ledger_growth_release(LedgerNode *n, Str uid) {
        ledger_growth_settle(n, uid, 0);
}

bool ledger_growth_is_reserved(const LedgerNode *n, Str uid) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (is_of(g, uid) && (g->reserved.mem > 0 || g->reserved.core > 0))
                        return true;
        return false;
}

void ledger_growth_sum(const LedgerNode *n, uint32_t card, uint64_t *mem, uint64_t *core) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (g->card == card) {
                        *mem += charged(g).mem;
                        *core += charged(g).core;
                }
}
