/* SPDX-License-Identifier: Apache-2.0 */
#include "share/describe.h"

#include <errno.h>
#include <stdlib.h>

#include "base/quantity.h"

enum { MAX_PODS_ISOLATED = 20 /* ACK's ceiling on isolated nodes */ };

void node_description_done(NodeDescription *d) {
        free(d->cards);
        *d = (NodeDescription){.unit = d->unit};
}

uint32_t node_max_pods_default(ShareMode mode) {
        return share_mode_is_isolated(mode) ? MAX_PODS_ISOLATED : 0;
}

/* An amount of status.allocatable; absent is 0. The API server keeps quantities well-formed, a file need not. */
static int read_allocatable(Str text, const char *resource, uint64_t max, uint32_t *ret, Fault *fault) {
        uint64_t value = 0;

        if (!str_is_empty(text) && (quantity_parse(text, &value) != 0 || value > max))
                return fault_set(fault, LEDGER_E_NODE,
                                 "allocatable %s is \"" STR_FMT "\", must be a whole number up to %llu",
                                 resource, STR_ARG(text), (unsigned long long) max);
        *ret = (uint32_t) value;
        return 0;
}

typedef struct Allocatable {
        uint32_t mem, count, core;
} Allocatable;

static int read_status(const Node *node, Allocatable *ret, Fault *fault) {
        Allocatable a;
        int r;

        r = read_allocatable(node->allocatable_mem, RESOURCE_GPU_MEM, UINT32_MAX, &a.mem, fault);
        if (r == 0)
                r = read_allocatable(node->allocatable_count, RESOURCE_GPU_COUNT, CARD_INDEX_MAX + 1,
                                     &a.count, fault);
        if (r == 0)
                r = read_allocatable(node->allocatable_core, RESOURCE_GPU_CORE, UINT32_MAX, &a.core, fault);
        if (r == 0)
                *ret = a;
        return r;
}

/* A sharing node whose label was taken away stays what it is (CONTRACT section 1). When we never saw the label, as
 * after a restart, what the kubelet offers there tells that an agent still shares its cards. */
static ShareMode mode_of(const Node *node, const NodeDescription *before, const Allocatable *a) {
        ShareMode mode = share_mode_from_label(node->mode);

        if (mode != SHARE_MODE_NONE)
                return mode;
        if (share_mode_has_memory(before->mode))
                return before->mode;
        if (a->core > 0)
                return SHARE_MODE_CORE_MEM;
        return a->mem > 0 ? SHARE_MODE_CGPU : SHARE_MODE_NONE;
}

/* Without our agent's description all cards are equal: CONTRACT section 13. */
static int equal_cards(const Allocatable *a, NodeDescription *d) {
        uint32_t count = a->count > 0 ? a->count : 1;

        if (a->mem == 0)
                return 0;
        d->cards = calloc(count, sizeof *d->cards);
        if (!d->cards)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                d->cards[i] = (CardShape){.index = i, .units = a->mem / count, .healthy = true};
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
                return r < 0 ? r : fault_wrap(fault, LEDGER_E_NODE, "annotation %s", ANNOTATION_CARDS);
        if (n == 0)
                return 0;
        d->cards = calloc(n, sizeof *d->cards);
        if (!d->cards)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                d->cards[i] = (CardShape){
                        .index = cards[i].index, .units = cards[i].units, .healthy = cards[i].healthy};
        d->n_cards = n;
        return 0;
}

static int describe_switches(const NodeAnnotations *a, NodeDescription *d, Fault *fault) {
        if (memory_unit_parse(a->unit, &d->unit) != 0)
                return fault_set(fault, LEDGER_E_NODE,
                                 "annotation %s is \"" STR_FMT "\", must be like GiB or 128MiB",
                                 ANNOTATION_UNIT, STR_ARG(a->unit));
        d->max_pods = node_max_pods_default(d->mode);
        d->max_pods_said = !str_is_empty(a->max_pods);
        if (d->max_pods_said && !str_to_u32(a->max_pods, &d->max_pods))
                return fault_set(fault, LEDGER_E_NODE,
                                 "annotation %s is \"" STR_FMT "\", must be a whole number, 0 for no ceiling",
                                 ANNOTATION_MAX_PODS, STR_ARG(a->max_pods));
        d->allow_mixed = str_eq(a->allow_mixed, STR("true"));
        if (!d->allow_mixed && !str_is_empty(a->allow_mixed) && !str_eq(a->allow_mixed, STR("false")))
                return fault_set(fault, LEDGER_E_NODE,
                                 "annotation %s is \"" STR_FMT "\", must be true or false",
                                 ANNOTATION_ALLOW_MIXED, STR_ARG(a->allow_mixed));
        return 0;
}

int node_describe(const Node *node, const NodeDescription *before, NodeDescription *ret, Fault *fault) {
        NodeDescription d = {0};
        Allocatable a;
        int r;

        r = read_status(node, &a, fault);
        if (r != 0)
                return r;
        d.mode = mode_of(node, before, &a);
        d.policy = placement_policy_from_label(node->placement);
        r = describe_switches(&node->annotations, &d, fault);
        if (r == 0)
                r = str_is_empty(node->annotations.cards) ? equal_cards(&a, &d)
                                                          : described_cards(node, &d, fault);
        if (r == 0)
                *ret = d;
        return r;
}
