/* SPDX-License-Identifier: Apache-2.0 */

/* A node of the ledger: what is in force there, and what waits for the last slice to go. */

#include <errno.h>

#include "share/card.h"
#include "share/held.h"
#include "share/ledger-internal.h"

/* Another mode or unit would give the numbers of running grants another meaning. */
static bool must_wait(const LedgerNode *n, const NodeDescription *d) {
        return n->n_charged > 0 && share_mode_has_memory(n->now.mode) &&
               (d->mode != n->now.mode || d->unit.mib != n->now.unit.mib);
}

static const CardShape *shape_of(const NodeDescription *d, uint32_t card) {
        for (size_t i = 0; i < d->n_cards; i++)
                if (d->cards[i].index == card)
                        return &d->cards[i];
        return NULL;
}

/* Units in the unit that stays in force: as they were, or converted for a card that is new. */
static uint32_t units_meanwhile(const NodeDescription *now, const NodeDescription *d, const CardShape *card) {
        const CardShape *old = shape_of(now, card->index);
        uint64_t units;

        if (d->unit.mib == now->unit.mib)
                return card->units;
        if (old)
                return old->units;
        units = (uint64_t) card->units * d->unit.mib / now->unit.mib;
        return units > UINT32_MAX ? UINT32_MAX : (uint32_t) units;
}

/* What holds until the last grant has gone: mode and unit as they were, and everything else, above all which cards
 * are healthy, as the node says now. */
static int describe_meanwhile(const NodeDescription *now, const NodeDescription *d, NodeDescription *ret) {
        NodeDescription m = *d;

        m.mode = now->mode;
        m.unit = now->unit;
        m.max_pods = d->max_pods_said ? d->max_pods : node_max_pods_default(now->mode);
        m.cards = calloc(d->n_cards > 0 ? d->n_cards : 1, sizeof *m.cards);
        if (!m.cards)
                return -ENOMEM;
        for (size_t i = 0; i < d->n_cards; i++) {
                m.cards[i] = d->cards[i];
                m.cards[i].units = units_meanwhile(now, d, &d->cards[i]);
        }
        *ret = m;
        return 0;
}

/* Brings *d into force and takes its cards; on -ENOMEM everything is as before. */
static int bring_into_force(LedgerNode *n, NodeDescription *d) {
        NodeDescription before = n->now;
        int r;

        n->now = *d;
        r = ledger_node_apply_cards(n);
        if (r < 0) {
                n->now = before;
                ledger_node_drop_stale_cards(n);
                return r;
        }
        d->cards = NULL;
        free(before.cards);
        return 0;
}

static void forget_wanted(LedgerNode *n) {
        node_description_done(&n->wanted);
        n->has_wanted = false;
}

static int take_description(LedgerNode *n, NodeDescription *d) {
        NodeDescription meanwhile = {0};
        int r;

        if (!must_wait(n, d)) {
                r = bring_into_force(n, d);
                if (r == 0)
                        forget_wanted(n);
                return r;
        }
        r = describe_meanwhile(&n->now, d, &meanwhile);
        if (r == 0)
                r = bring_into_force(n, &meanwhile);
        free(meanwhile.cards);
        if (r < 0)
                return r;
        forget_wanted(n);
        n->wanted = *d;
        n->has_wanted = true;
        d->cards = NULL;
        return 0;
}

int ledger_node_set(Ledger *l, const Node *node, Fault *fault) {
        LedgerNode *n = ledger_node_ensure(l, node->meta.name);
        NodeDescription d = {0};
        HeldList held = {0};
        int r;

        if (!n)
                return -ENOMEM;
        r = node_describe(node, &n->now, &d, fault);
        if (r == 0)
                r = held_read(node->annotations.held_slices, n, &held, fault);
        if (r == 0) {
                held_replace(n, &held); /* first: with the last of them an old mode ends */
                r = take_description(n, &d);
                if (r < 0 && !n->described)
                        held_replace(n, &held); /* empty by now: an unknown node has none */
        }
        if (r > 0)
                (void) fault_wrap(fault, r, "node " STR_FMT, STR_ARG(node->meta.name));
        n->described = n->described || r >= 0;
        free(d.cards);
        held_list_done(&held);
        ledger_node_drop_stale_cards(n);
        ledger_node_summarize(n);
        ledger_node_drop_if_unused(n);
        return r;
}

void ledger_node_settle(LedgerNode *n) {
        if (n->n_charged == 0 && n->has_wanted) {
                /* When there is no memory for it the next node update brings it: the kubelet sends several a minute. */
                (void) bring_into_force(n, &n->wanted);
                forget_wanted(n);
        }
        ledger_node_drop_stale_cards(n);
}

void ledger_node_remove(Ledger *l, Str name) {
        LedgerNode *n = ledger_node_find(l, name);
        HeldList none = {0};

        if (!n)
                return;
        n->described = false;
        held_replace(n, &none); /* with its agent nobody is left who could say so */
        held_list_done(&none);
        forget_wanted(n);
        node_description_done(&n->now);
        (void) ledger_node_apply_cards(n); /* only removes: needs no memory */
        ledger_node_summarize(n);
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
        (void) ledger_node_apply_cards(n); /* every described card exists already: needs no memory */
        ledger_node_summarize(n);
        ledger_node_drop_if_unused(n);
        return 0;
}

/* ---- reading ---- */

void ledger_prefetch(LedgerNode *const *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (nodes[i])
                        __builtin_prefetch(&nodes[i]->ledger); /* and slot beside it */
        for (size_t i = 0; i < n; i++)
                if (nodes[i]) {
                        const NodeSummary *s = &nodes[i]->ledger->summaries[nodes[i]->slot];

                        __builtin_prefetch(s);
                        __builtin_prefetch((const char *) (s + 1) - 1);
                }
}

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

uint32_t ledger_node_pending(const LedgerNode *n) {
        return n->pending > UINT32_MAX ? UINT32_MAX : (uint32_t) n->pending;
}
