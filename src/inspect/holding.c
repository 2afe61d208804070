/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/holding.h"

#include <errno.h>

#include "share/allocation.h"
#include "share/demand.h"

/* What the pod takes from one card. */
typedef struct CardLoad {
        Demand mem, core;
} CardLoad;

static size_t cards_covered(const GrantSpec *spec) {
        size_t n = 0;

        for (size_t i = 0; i < spec->n_slices; i++)
                if (spec->slices[i].card >= n)
                        n = (size_t) spec->slices[i].card + 1;
        return n;
}

/* Slices stand with those of init containers first, which is what Demand asks for. */
static void add_slices(const GrantSpec *spec, CardLoad *cards) {
        for (size_t i = 0; i < spec->n_slices; i++) {
                const Slice *s = &spec->slices[i];

                demand_add(&cards[s->card].mem, (ContainerKind) s->kind, s->mem);
                demand_add(&cards[s->card].core, (ContainerKind) s->kind, s->core);
        }
}

static int collect_uses(const CardLoad *cards, size_t n_cards, Arena *arena, InspectPod *ret) {
        ret->uses = arena_new(arena, InspectUse, n_cards);
        if (!ret->uses)
                return -ENOMEM;
        for (size_t i = 0; i < n_cards; i++) {
                InspectUse use = {(uint32_t) i, demand_total(&cards[i].mem), demand_total(&cards[i].core)};

                if (use.mem > 0 || use.core > 0)
                        ret->uses[ret->n_uses++] = use;
        }
        return 0;
}

int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault) {
        CardLoad *cards;
        GrantSpec spec;
        size_t n_cards;
        int r;

        r = grant_spec_from_pod(pod, scratch, &spec, fault);
        if (r != 0)
                return r < 0 ? r : 0;
        ret->pending_mem = spec.pending_mem;
        ret->pending_core = spec.pending_core;
        n_cards = cards_covered(&spec);
        if (n_cards == 0)
                return 0;
        cards = arena_new(scratch, CardLoad, n_cards);
        if (!cards)
                return -ENOMEM;
        add_slices(&spec, cards);
        return collect_uses(cards, n_cards, arena, ret);
}
