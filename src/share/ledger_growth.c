/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger_growth.h"

#include <assert.h>
#include <errno.h>

#include "base/minmax.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"

struct LedgerGrowth {
        LedgerGrowth *next;
        uint64_t settled;          /* serial from which the annotation has it; UINT64_MAX: not settled */
        GrowthSize seen, reserved; /* in the annotation, and by this scheduler, or GROWTH_LEAST */
        uint32_t container, card;
        uint16_t uid_len;
        char uid[];
};

static GrowthSize charged_size(const LedgerGrowth *g) {
        return growth_larger(g->seen, g->reserved);
}

static bool is_reserved(const LedgerGrowth *g) {
        return !growth_is_same(g->reserved, GROWTH_LEAST);
}

static bool is_of(const LedgerGrowth *g, Str uid) {
        return str_eq((Str){g->uid, g->uid_len}, uid);
}

static LedgerGrowth *find_growth(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        for (LedgerGrowth *g = n->growth; g; g = g->next)
                if (g->container == container && g->card == card && is_of(g, uid))
                        return g;
        return NULL;
}

/* Finds or adds the charge of a slice, and its card. NULL when out of memory, or for a UID over
 * 65,535 bytes. */
static LedgerGrowth *ensure_growth(LedgerNode *n, const GrowthEntry *e) {
        LedgerGrowth *g = find_growth(n, e->uid, e->container, e->card);

        if (!ledger_card_ensure(n, e->card) || e->uid.len > UINT16_MAX)
                return NULL;
        if (g)
                return g;
        g = calloc(1, sizeof *g + e->uid.len);
        if (!g)
                return NULL;
        g->container = e->container;
        g->card = e->card;
        g->reserved = GROWTH_LEAST;
        g->uid_len = (uint16_t) e->uid.len;
        memcpy(g->uid, e->uid.data, e->uid.len);
        g->next = n->growth;
        n->growth = g;
        return g;
}

static LedgerUse excess_of(const LedgerGrowth *g) {
        GrowthSize more = growth_excess(charged_size(g));

        return (LedgerUse){(uint64_t) more.mem, (uint64_t) more.core};
}

/* Adds what all slices have above their limits to their cards, or subtracts it. */
static void charge_all(LedgerNode *n, bool add) {
        for (LedgerGrowth *g = n->growth; g; g = g->next) {
                LedgerUse size = excess_of(g);
                LedgerCard *c;

                if (size.mem == 0 && size.core == 0)
                        continue;
                c = ledger_card_ensure(n, g->card); /* exists since ensure_growth(), and while it is used */
                assert(add || (c->used >= size.mem && c->core_used >= size.core));
                c->used += add ? size.mem : -size.mem;
                c->core_used += add ? size.core : -size.core;
        }
}

/* Removes charges of size 0 without a reservation: they say the same as missing ones. */
static void drop_empty(LedgerNode *n) {
        for (LedgerGrowth **at = &n->growth; *at;) {
                LedgerGrowth *g = *at;

                if (is_reserved(g) || !growth_is_same(g->seen, (GrowthSize){0, 0})) {
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
                        g->reserved = GROWTH_LEAST;
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
                r = ensure_growth(n, &read.list[i]) ? 0 : -ENOMEM;
        if (r == 0)
                take_over(n, &read);
        else
                drop_empty(n);
        return r;
}

void ledger_growth_drop(LedgerNode *n) {
        charge_all(n, false);
        for (LedgerGrowth *g = n->growth; g; g = g->next) {
                g->seen = (GrowthSize){0, 0};
                g->reserved = GROWTH_LEAST;
        }
        drop_empty(n);
        n->growth_serial = 0;
}

uint64_t ledger_growth_serial(const LedgerNode *n) {
        return n->growth_serial;
}

GrowthSize ledger_growth_of(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        const LedgerGrowth *g = find_growth(n, uid, container, card);

        return g ? charged_size(g) : (GrowthSize){0, 0};
}

/* ---- what slices have given up ---- */

bool ledger_growth_is_below(const LedgerNode *n, Str uid) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (growth_is_below(g->seen) && is_of(g, uid))
                        return true;
        return false;
}

static void add_freed(const LedgerNode *n, const Grant *grant, uint32_t card, GrowthSize *sum) {
        GrowthSize freed = {0, 0};

        for (size_t i = 0; i < grant->n_slices; i++) {
                const Slice *s = &grant->slices[i];
                GrowthSize less;

                if (s->card != card || s->kind == CONTAINER_SIDECAR)
                        continue;
                if (s->kind == CONTAINER_INIT)
                        return;
                less = growth_smaller(ledger_growth_of(n, grant_uid(grant), s->container, card),
                                      (GrowthSize){0, 0});
                freed.mem += (int32_t) min_u32(s->mem, 0u - (uint32_t) less.mem);
                freed.core += (int32_t) min_u32(s->core, 0u - (uint32_t) less.core);
        }
        sum->mem += freed.mem;
        sum->core += freed.core;
}

static bool any_is_below(const LedgerNode *n) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (growth_is_below(charged_size(g)))
                        return true;
        return false;
}

GrowthSize ledger_growth_freed(const LedgerNode *n, uint32_t card) {
        GrowthSize sum = {0, 0};

        if (!any_is_below(n))
                return sum;
        for (const Grant *g = n->grants; g; g = g->next)
                add_freed(n, g, card, &sum);
        for (const Grant *g = n->held; g; g = g->next)
                add_freed(n, g, card, &sum);
        return sum;
}

/* ---- reservations ---- */

GrowthSize ledger_growth_reserved(const LedgerNode *n, Str uid, uint32_t container, uint32_t card) {
        const LedgerGrowth *g = find_growth(n, uid, container, card);

        return g ? g->reserved : GROWTH_LEAST;
}

/* One resource of a slice: what is charged, what it asks for, what the card has left, and what is
 * pending on the node. */
typedef struct Room {
        const char *what;
        int64_t now, asked, left, pending;
} Room;

/* Returns 0 or LEDGER_GROWTH_E_ROOM. A return to the limit is nothing new on the card. It does not
 * wait for pods with unknown cards: the kubelet counts their limits and this one, so both have room
 * on each card, except for slices that have grown. In that case the agent starts no container and
 * takes no permit that exceeds the card (node/allocate/card_in_use.h). */
static int check_room(const LedgerNode *n, const LedgerCard *c, const Room *room, Fault *fault) {
        bool returns = room->asked <= 0, closed = !c->healthy && !returns;
        int64_t more = room->asked - room->now, left = room->left - (returns ? 0 : room->pending);

        left = closed || left < 0 ? 0 : left;

        if (more <= 0 || more <= left)
                return 0;
        return fault_set(fault, LEDGER_GROWTH_E_ROOM,
                         "gpu%u of node " STR_FMT
                         " has %lld%s free%s, %lld more are needed%s: %lld are missing",
                         c->index, STR_ARG(ledger_node_name(n)), (long long) left, room->what,
                         closed ? " (it is fenced, cordoned or unhealthy)" : "", (long long) more,
                         returns ? " to return to the limit" : "", (long long) (more - left));
}

int ledger_growth_reserve(LedgerNode *n, const GrowthEntry *e, Fault *fault) {
        LedgerGrowth *g = ensure_growth(n, e);
        const LedgerCard *c = ledger_card_find(n, e->card);
        GrowthSize freed;
        int r;

        if (!g || !c)
                return -ENOMEM;
        freed = ledger_growth_freed(n, e->card);
        r = check_room(n, c,
                       &(Room){" of gpu-mem", charged_size(g).mem, e->size.mem,
                               (int64_t) c->units + freed.mem - (int64_t) c->used, (int64_t) n->pending},
                       fault);
        if (r == 0)
                r = check_room(n, c,
                               &(Room){" percent of gpu-core", charged_size(g).core, e->size.core,
                                       CORE_PER_CARD + freed.core - (int64_t) c->core_used,
                                       (int64_t) n->pending_core},
                               fault);
        if (r == 0) {
                charge_all(n, false);
                g->reserved = growth_larger(g->reserved, e->size);
                g->settled = UINT64_MAX;
                charge_all(n, true);
        }
        drop_empty(n);
        ledger_card_drop_stale(n);
        if (r == 0) /* otherwise nothing has changed */
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
                        g->reserved = GROWTH_LEAST;
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
                if (is_of(g, uid) && is_reserved(g))
                        return true;
        return false;
}

static bool is_settled(const LedgerGrowth *g) {
        return is_reserved(g) && g->settled != UINT64_MAX;
}

static bool any_is_settled(const LedgerNode *n) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (is_settled(g))
                        return true;
        return false;
}

bool ledger_growth_expire(LedgerNode *n, usec_t now) {
        if (n->growth_serial > 0 || !any_is_settled(n)) {
                n->growth_absent = 0;
                return n->growth && any_is_settled(n);
        }
        if (n->growth_absent == 0)
                n->growth_absent = now;
        if (now - n->growth_absent < LEDGER_GROWTH_ABSENT)
                return true;
        charge_all(n, false);
        for (LedgerGrowth *g = n->growth; g; g = g->next)
                if (is_settled(g))
                        g->reserved = GROWTH_LEAST;
        charge_all(n, true);
        drop_empty(n);
        ledger_card_drop_stale(n);
        ledger_summary_update(n);
        n->growth_absent = 0;
        return false;
}

void ledger_growth_sum(const LedgerNode *n, uint32_t card, uint64_t *mem, uint64_t *core) {
        for (const LedgerGrowth *g = n->growth; g; g = g->next)
                if (g->card == card) {
                        *mem += excess_of(g).mem;
                        *core += excess_of(g).core;
                }
}
