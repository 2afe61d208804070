/* SPDX-License-Identifier: Apache-2.0 */
#include "share/ledger_node.h"

#include <assert.h>
#include <errno.h>

#include "base/minmax.h"
#include "share/card_set.h"
#include "share/fault_join.h"
#include "share/held.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"
#include "wire/annotation.h"
#include "wire/node.h"

/* Puts *d into force and updates the cards. On -ENOMEM nothing has changed. */
static int bring_into_force(LedgerNode *n, NodeDescription *d) {
        NodeDescription before = n->now;
        int r;

        d->links = card_set_intern(&n->ledger->shapes, d->links);
        n->now = *d;
        r = ledger_card_apply_described(n);
        if (r < 0) {
                n->now = before;
                ledger_card_drop_stale(n);
                return r;
        }
        d->cards = NULL;
        d->links = NULL;
        node_description_done(&before);
        return 0;
}

/* Takes over the node's list of slices of pods that are gone. If it does not decode, the earlier
 * list stays. Returns 0, -ENOMEM, or LEDGER_E_NODE with a sentence in the fault. */
static int take_held(LedgerNode *n, Str annotation, Fault *fault) {
        Fault why = FAULT_NULL, said = FAULT_NULL;
        HeldList held = {0};
        int r;

        r = held_read(annotation, n, &held, &why);
        if (r == 0)
                held_replace(n, &held);
        held_list_done(&held);
        if (r <= 0)
                return r;
        (void) fault_set(&said, 0, "%s: the slices listed before still count", why.text);
        fault_join(fault, &said);
        return r;
}

/* The same for the charges of growth. */
static int take_growth(LedgerNode *n, Str annotation, Fault *fault) {
        Fault why = FAULT_NULL, said = FAULT_NULL;
        int r = ledger_growth_set(n, annotation, &why);

        if (r <= 0)
                return r;
        (void) fault_set(&said, 0, "%s: the growth listed before still counts", why.text);
        fault_join(fault, &said);
        return r;
}

int ledger_node_set(Ledger *l, const Node *node, Fault *fault) {
        LedgerNode *n = ledger_node_ensure(l, node->meta.name);
        HeldList none = {0};
        NodeDescription d = {0};
        Fault wrong = FAULT_NULL;
        int r, said = 0;

        if (!n)
                return -ENOMEM;
        r = said = node_description_read(node, &n->now, &d, &wrong);
        if (r >= 0)
                r = take_held(n, node->annotations.held_slices, &wrong);
        said = r > 0 ? r : said;
        if (r >= 0)
                r = take_growth(n, node->annotations.growth, &wrong);
        said = r > 0 ? r : said;
        if (r >= 0)
                r = bring_into_force(n, &d);
        if (r < 0 && !n->described) { /* a node without object holds no slices */
                held_replace(n, &none);
                ledger_growth_drop(n);
        }
        n->described = n->described || r >= 0;
        node_description_done(&d);
        ledger_card_drop_stale(n);
        ledger_summary_update(n);
        ledger_node_drop_if_unused(n);
        if (r < 0 || said == 0)
                return r;
        return fault_set(fault, LEDGER_E_NODE, "node " STR_FMT ": %s", STR_ARG(node->meta.name), wrong.text);
}

void ledger_node_remove(Ledger *l, Str name) {
        LedgerNode *n = ledger_node_find(l, name);
        HeldList none = {0};

        if (!n)
                return;
        n->described = false;
        held_replace(n, &none); /* no agent reports those slices any more */
        ledger_growth_drop(n);
        node_description_done(&n->now);
        (void) ledger_card_apply_described(n); /* only removes cards: needs no memory */
        ledger_summary_update(n);
        ledger_node_drop_if_unused(n);
}

int ledger_node_set_fenced(Ledger *l, Str name, const uint32_t *cards, size_t n_cards) {
        LedgerNode *n = n_cards > 0 ? ledger_node_ensure(l, name) : ledger_node_find(l, name);

        if (!n)
                return n_cards > 0 ? -ENOMEM : 0;
        memset(n->fenced, 0, sizeof n->fenced);
        for (size_t i = 0; i < n_cards; i++)
                if (cards[i] <= CARD_INDEX_MAX)
                        n->fenced[cards[i] / 8] |= (uint8_t) (1 << cards[i] % 8);
        /* Every described card exists already, so this needs no memory. */
        (void) ledger_card_apply_described(n);
        ledger_summary_update(n);
        ledger_node_drop_if_unused(n);
        return 0;
}

/* ---- cpu of other pods ---- */

LedgerNode *ledger_node_add_cpu(Ledger *l, Str name, uint32_t cpu) {
        LedgerNode *n = ledger_node_ensure(l, name);

        if (!n)
                return NULL;
        n->cpu.others += cpu;
        rank_cache_forget(&l->ranks, n->slot);
        return n;
}

void ledger_node_subtract_cpu(LedgerNode *n, uint32_t cpu) {
        assert(n->cpu.others >= cpu);
        n->cpu.others -= cpu;
        rank_cache_forget(&n->ledger->ranks, n->slot);
        ledger_node_drop_if_unused(n);
}

/* ---- reading ---- */

Str ledger_node_name(const LedgerNode *n) {
        return (Str){n->name, n->name_len};
}

ShareMode ledger_node_mode(const LedgerNode *n) {
        return n->now.mode;
}

PlacementPolicy ledger_node_policy(const LedgerNode *n) {
        return n->now.policy;
}

MemoryUnit ledger_node_unit(const LedgerNode *n) {
        return n->now.unit;
}

size_t ledger_node_n_cards(const LedgerNode *n) {
        return n->n_cards;
}

const LedgerCard *ledger_node_cards(const LedgerNode *n) {
        return n->cards;
}

size_t ledger_node_n_healthy(const LedgerNode *n) {
        size_t healthy = 0;

        for (size_t i = 0; n && i < n->n_cards; i++)
                healthy += n->cards[i].healthy;
        return healthy;
}

const char *ledger_node_change_pending(const LedgerNode *n) {
        return n->now.change_pending;
}

MemoryLimiting ledger_node_memory_limits(const LedgerNode *n, const char **ret_message) {
        *ret_message = n->now.limits_message;
        return n->now.limiting;
}

uint32_t ledger_node_pending(const LedgerNode *n) {
        return n->pending > UINT32_MAX ? UINT32_MAX : (uint32_t) n->pending;
}

uint64_t ledger_node_cpu(const LedgerNode *n) {
        return n->cpu.shares + n->cpu.others;
}

LedgerUse ledger_node_shown(const LedgerNode *n, const LedgerCard *c) {
        GrowthSize freed = ledger_growth_freed(n, c->index);

        return (LedgerUse){c->used - min_u64((uint64_t) freed.mem, above_u64(c->used, c->units)),
                           c->core_used -
                                   min_u64((uint64_t) freed.core, above_u64(c->core_used, CORE_PER_CARD))};
}

bool ledger_node_has_idle_card(const LedgerNode *n) {
        return share_mode_has_memory(n->now.mode) && n->ledger->summaries[n->slot].free_untouched > 0;
}

Grant *ledger_node_grants(const LedgerNode *n) {
        return n->grants;
}

Grant *ledger_node_held(const LedgerNode *n) {
        return n->held;
}
