/* SPDX-License-Identifier: Apache-2.0 */

/* A node of the ledger: what its object says, its cards, and the summary that placement looks at first. */

#include <assert.h>
#include <errno.h>

#include "base/quantity.h"
#include "share/ledger-internal.h"

enum {
        CORE_PER_CARD = 100,
        MAX_PODS_ISOLATED = 20, /* ACK's ceiling on isolated nodes */
};

/* ---- coming and going ---- */

static int ledger_grow(Ledger *l) {
        size_t capacity = l->capacity ? l->capacity * 2 : 64;
        LedgerNode **nodes;
        NodeSummary *summaries;

        if (l->n_nodes < l->capacity)
                return 0;
        nodes = realloc(l->nodes, capacity * sizeof *nodes);
        if (!nodes)
                return -ENOMEM;
        l->nodes = nodes;
        summaries = realloc(l->summaries, capacity * sizeof *summaries);
        if (!summaries)
                return -ENOMEM;
        l->summaries = summaries;
        l->capacity = capacity;
        return 0;
}

LedgerNode *ledger_node_ensure(Ledger *l, Str name) {
        LedgerNode *n = ledger_node_find(l, name);

        if (n)
                return n;
        if (ledger_grow(l) < 0)
                return NULL;
        n = calloc(1, sizeof *n);
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
        n->slot = l->n_nodes;
        l->nodes[l->n_nodes++] = n;
        HASH_ADD_KEYPTR(hh, l->by_name, n->name, n->name_len, n);
        ledger_node_summarize(n);
        return n;
}

static bool is_fenced(const LedgerNode *n, uint32_t card) {
        return n->fenced[card / 8] >> card % 8 & 1;
}

static bool has_fences(const LedgerNode *n) {
        for (size_t i = 0; i < FENCE_BYTES; i++)
                if (n->fenced[i])
                        return true;
        return false;
}

void ledger_node_drop_if_unused(LedgerNode *n) {
        Ledger *l = n->ledger;
        LedgerNode *last;

        if (n->described || n->grants || has_fences(n))
                return;
        last = l->nodes[--l->n_nodes];
        last->slot = n->slot;
        l->nodes[n->slot] = last;
        l->summaries[n->slot] = l->summaries[l->n_nodes];
        HASH_DELETE(hh, l->by_name, n);
        free(n->now.cards);
        free(n->wanted.cards);
        free(n->cards);
        free(n->name);
        free(n);
}

/* ---- cards ---- */

LedgerCard *ledger_node_card(LedgerNode *n, uint32_t index) {
        size_t i = 0;

        while (i < n->n_cards && n->cards[i].index < index)
                i++;
        if (i < n->n_cards && n->cards[i].index == index)
                return &n->cards[i];
        if (n->n_cards == n->cards_capacity) {
                size_t capacity = n->cards_capacity ? n->cards_capacity * 2 : 8;
                LedgerCard *cards = realloc(n->cards, capacity * sizeof *cards);
                if (!cards)
                        return NULL;
                n->cards = cards;
                n->cards_capacity = capacity;
        }
        memmove(&n->cards[i + 1], &n->cards[i], (n->n_cards - i) * sizeof *n->cards);
        n->cards[i] = (LedgerCard){.index = index};
        n->n_cards++;
        return &n->cards[i];
}

/* Cards that neither the node nor a grant names any more. */
static void drop_stale_cards(LedgerNode *n) {
        size_t kept = 0;

        for (size_t i = 0; i < n->n_cards; i++)
                if (n->cards[i].units > 0 || n->cards[i].pods > 0)
                        n->cards[kept++] = n->cards[i];
        n->n_cards = kept;
}

static int apply_cards(LedgerNode *n) {
        for (size_t i = 0; i < n->now.n_cards; i++)
                if (!ledger_node_card(n, n->now.cards[i].index))
                        return -ENOMEM;
        for (size_t i = 0; i < n->n_cards; i++)
                n->cards[i].units = 0;
        for (size_t i = 0; i < n->now.n_cards; i++) {
                LedgerCard *c = ledger_node_card(n, n->now.cards[i].index);

                c->units = n->now.cards[i].units;
                c->healthy = n->now.cards[i].healthy && !is_fenced(n, c->index);
        }
        drop_stale_cards(n);
        return 0;
}

bool ledger_card_has_seat(const LedgerNode *n, const LedgerCard *c) {
        return n->now.max_pods == 0 || c->pods < n->now.max_pods;
}

uint32_t ledger_card_free(const LedgerNode *n, const LedgerCard *c) {
        uint64_t taken =
                c->used + n->pending; /* where pending units will go is not known: they may go here */

        return c->healthy && taken < c->units ? (uint32_t) (c->units - taken) : 0;
}

uint32_t ledger_card_core_free(const LedgerCard *c) {
        return c->healthy && c->core_used < CORE_PER_CARD ? (uint32_t) (CORE_PER_CARD - c->core_used) : 0;
}

NodeSummary ledger_node_summary(const LedgerNode *n) {
        bool mixed_core = n->n_with_core > 0, mixed_memory = n->n_grants > n->n_with_core;
        NodeSummary s = {.mode = (uint8_t) n->now.mode, .policy = (uint8_t) n->now.policy};
        uint64_t used = 0, total = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                const LedgerCard *c = &n->cards[i];
                uint32_t available = ledger_card_has_seat(n, c) ? ledger_card_free(n, c) : 0;
                uint32_t *most = c->pods > 0 ? &s.free_used : &s.free_untouched;

                *most = available > *most ? available : *most;
                used += c->used;
                total += c->units;
        }
        s.used = used > UINT32_MAX ? UINT32_MAX : (uint32_t) used;
        s.total = total > UINT32_MAX ? UINT32_MAX : (uint32_t) total;
        s.takes_memory =
                n->described && share_mode_has_memory(n->now.mode) && (!mixed_core || n->now.allow_mixed);
        s.takes_core =
                n->described && share_mode_has_core(n->now.mode) && (!mixed_memory || n->now.allow_mixed);
        return s;
}

void ledger_node_summarize(LedgerNode *n) {
        n->ledger->summaries[n->slot] = ledger_node_summary(n);
}

size_t ledger_node_replicas(const LedgerNode *n, uint64_t app) {
        size_t count = 0;

        if (app == 0 || !(n->apps >> app % 64 & 1))
                return 0;
        for (const Grant *g = n->grants; g; g = g->next)
                count += g->app == app;
        return count;
}

/* ---- what the node object says ---- */

static uint32_t quantity_or_zero(Str text) {
        uint64_t value;

        return quantity_parse(text, &value) == 0 && value <= UINT32_MAX ? (uint32_t) value : 0;
}

/* A sharing node whose label was taken away stays what it is (CONTRACT section 1); and when we never saw the
 * label, what the kubelet offers there tells the mode. */
static ShareMode mode_of(const LedgerNode *n, const Node *node) {
        ShareMode mode = share_mode_from_label(node->mode);

        if (mode != SHARE_MODE_NONE)
                return mode;
        if (share_mode_has_memory(n->now.mode))
                return n->now.mode;
        if (quantity_or_zero(node->allocatable_core) > 0)
                return SHARE_MODE_CORE_MEM;
        return quantity_or_zero(node->allocatable_mem) > 0 ? SHARE_MODE_CGPU : SHARE_MODE_NONE;
}

/* Without our agent's description all cards are equal: CONTRACT section 13. */
static int equal_cards(const Node *node, NodeDescription *d) {
        uint32_t mem = quantity_or_zero(node->allocatable_mem),
                 count = quantity_or_zero(node->allocatable_count);

        if (mem == 0)
                return 0;
        count = count == 0 ? 1 : count > CARD_INDEX_MAX ? CARD_INDEX_MAX : count;
        d->cards = calloc(count, sizeof *d->cards);
        if (!d->cards)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                d->cards[i] = (CardInfo){.index = i, .units = mem / count, .numa = -1, .healthy = true};
        d->n_cards = count;
        return 0;
}

static int described_cards(const Node *node, NodeDescription *d, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardInfo *cards;
        size_t n;
        int r;

        r = cards_parse(node->annotations.cards, &arena, &cards, &n, fault);
        if (r != 0)
                return r < 0 ? r : LEDGER_E_NODE;
        d->cards = calloc(n > 0 ? n : 1, sizeof *d->cards);
        if (!d->cards)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                d->cards[i] = cards[i];
                d->cards[i].uuid = d->cards[i].model = (Str){NULL, 0}; /* texts die with the arena */
        }
        d->n_cards = n;
        return 0;
}

static int describe_annotations(const Node *node, NodeDescription *d, Fault *fault) {
        d->max_pods = share_mode_is_isolated(d->mode) ? MAX_PODS_ISOLATED : 0;
        if (memory_unit_parse(node->annotations.unit, &d->unit) != 0)
                return fault_set(fault, LEDGER_E_NODE,
                                 "annotation %s is \"" STR_FMT "\", must be like GiB or 128MiB",
                                 ANNOTATION_UNIT, STR_ARG(node->annotations.unit));
        if (!str_is_empty(node->annotations.max_pods) &&
            !str_to_u32(node->annotations.max_pods, &d->max_pods))
                return fault_set(fault, LEDGER_E_NODE,
                                 "annotation %s is \"" STR_FMT "\", must be a whole number",
                                 ANNOTATION_MAX_PODS, STR_ARG(node->annotations.max_pods));
        d->allow_mixed = str_eq(node->annotations.allow_mixed, STR("true"));
        return 0;
}

static int describe(const LedgerNode *n, const Node *node, NodeDescription *d, Fault *fault) {
        int r;

        d->mode = mode_of(n, node);
        d->policy = placement_policy_from_label(node->placement);
        r = describe_annotations(node, d, fault);
        if (r != 0)
                return r;
        return str_is_empty(node->annotations.cards) ? equal_cards(node, d) : described_cards(node, d, fault);
}

/* A change of mode or unit would give the numbers of running grants another meaning. */
static bool must_wait(const LedgerNode *n, const NodeDescription *d) {
        return n->grants && share_mode_has_memory(n->now.mode) &&
               (d->mode != n->now.mode || d->unit.mib != n->now.unit.mib);
}

static int take_description(LedgerNode *n, NodeDescription *d) {
        CardInfo *old = n->now.cards;
        NodeDescription before = n->now;
        int r;

        n->now = *d;
        r = apply_cards(n);
        if (r < 0) {
                n->now = before;
                return r;
        }
        d->cards = NULL;
        free(old);
        return 0;
}

static void forget_wanted(LedgerNode *n) {
        free(n->wanted.cards);
        n->wanted = (NodeDescription){0};
        n->has_wanted = false;
}

int ledger_node_set(Ledger *l, const Node *node, Fault *fault) {
        LedgerNode *n = ledger_node_ensure(l, node->meta.name);
        NodeDescription d = {0};
        int r;

        if (!n)
                return -ENOMEM;
        n->described = true;
        r = describe(n, node, &d, fault);
        if (r == 0) {
                forget_wanted(n);
                if (must_wait(n, &d)) {
                        n->wanted = d;
                        n->has_wanted = true;
                        /* The placement policy says nothing about sums: it may change at any time. */
                        n->now.policy = d.policy;
                        d.cards = NULL;
                } else
                        r = take_description(n, &d);
        } else if (r > 0)
                (void) fault_wrap(fault, r, "node " STR_FMT, STR_ARG(node->meta.name));
        free(d.cards);
        ledger_node_summarize(n);
        return r;
}

void ledger_node_settle(LedgerNode *n) {
        if (n->has_wanted) {
                /* Without memory for the cards the old description stays, and the next node update brings it.
                 */
                (void) take_description(n, &n->wanted);
                forget_wanted(n);
        }
        drop_stale_cards(n);
}

void ledger_node_remove(Ledger *l, Str name) {
        LedgerNode *n = ledger_node_find(l, name);

        if (!n)
                return;
        n->described = false;
        forget_wanted(n);
        free(n->now.cards);
        n->now = (NodeDescription){.unit = n->now.unit};
        (void) apply_cards(n); /* only removes: needs no memory */
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
        (void) apply_cards(n); /* every described card exists already */
        ledger_node_summarize(n);
        ledger_node_drop_if_unused(n);
        return 0;
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

uint32_t ledger_node_pending(const LedgerNode *n) {
        return n->pending > UINT32_MAX ? UINT32_MAX : (uint32_t) n->pending;
}
