/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/holding.h"

#include <errno.h>

#include "share/demand.h"
#include "share/pod_grant.h"
#include "share/resize_status.h"
#include "wire/pod.h"

/* What the pod holds of one card. */
typedef struct CardLoad {
        Demand mem, core;
        uint64_t mem_in_force, core_in_force;
} CardLoad;

/* Loads by card, up to the highest index that occurs. */
typedef struct Loads {
        CardLoad cards[CARD_INDEX_MAX + 1];
        size_t n;
        ResizeStatus resize;
} Loads;

static CardLoad *load_at(Loads *loads, uint32_t card) {
        if (card >= loads->n)
                loads->n = (size_t) card + 1;
        return &loads->cards[card];
}

/* The memory of one card that is in force. The agent divides another size than the limit evenly
 * among the container's cards, also where the limit is not divided so. */
static uint64_t mem_in_force(const ResizeInForce *c, uint32_t amount, size_t n_cards) {
        return c && c->size.mem != c->limit.mem ? c->size.mem / n_cards : amount;
}

/* The compute of one card that is in force: a container with compute is on one card. */
static uint64_t core_in_force(const ResizeInForce *c, uint32_t amount) {
        return c && c->limit.core > 0 ? (uint64_t) amount * c->size.core / c->limit.core : amount;
}

/* Adds a slice to its card. n_cards: number of the container's cards, 1 at least. */
static void add_slice(Loads *loads, const Slice *s, size_t n_cards) {
        CardLoad *load = load_at(loads, s->card);
        const ResizeInForce *c =
                s->kind == CONTAINER_MAIN ? resize_status_find(&loads->resize, s->container) : NULL;

        demand_add(&load->mem, (ContainerKind) s->kind, s->mem);
        demand_add(&load->core, (ContainerKind) s->kind, s->core);
        if (s->kind == CONTAINER_INIT)
                return;
        load->mem_in_force += mem_in_force(c, s->mem, n_cards);
        load->core_in_force += core_in_force(c, s->core);
}

static size_t count_cards(const GrantSpec *spec, const Slice *of) {
        size_t n = 0;

        for (size_t i = 0; i < spec->n_slices; i++)
                n += spec->slices[i].container == of->container &&
                     (spec->slices[i].kind == CONTAINER_MAIN) == (of->kind == CONTAINER_MAIN);
        return n;
}

/* Adds all slices. GrantSpec has those of init containers first, the order that demand_add()
 * needs. */
static void add_slices(Loads *loads, const GrantSpec *spec) {
        for (size_t i = 0; i < spec->n_slices; i++) {
                const Slice *s = &spec->slices[i];
                bool divided = s->kind == CONTAINER_MAIN && resize_status_find(&loads->resize, s->container);

                add_slice(loads, s, divided ? count_cards(spec, s) : 1);
        }
}

static int collect_uses(const Loads *loads, Arena *arena, InspectPod *ret) {
        ret->uses = arena_new(arena, InspectUse, loads->n);
        if (!ret->uses)
                return -ENOMEM;
        for (size_t i = 0; i < loads->n; i++) {
                const CardLoad *load = &loads->cards[i];
                InspectUse use = {.card = (uint32_t) i,
                                  .mem = demand_total(&load->mem),
                                  .core = demand_total(&load->core)};

                use.mem_in_force = ret->resized ? load->mem_in_force : use.mem;
                use.core_in_force = ret->resized ? load->core_in_force : use.core;
                if (use.mem > 0 || use.core > 0)
                        ret->uses[ret->n_uses++] = use;
        }
        return 0;
}

static int find_difference(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret) {
        Fault differs = FAULT_NULL;
        int r = pod_grant_compare(pod, scratch, &differs);

        if (r <= 0)
                return r;
        ret->difference = arena_str(arena, str_from(differs.text));
        return ret->difference.data ? 0 : -ENOMEM;
}

int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault) {
        GrantSpec spec;
        Loads *loads;
        int r, held;

        held = pod_grant_spec(pod, scratch, &spec, fault);
        r = held < 0 ? held : find_difference(pod, scratch, arena, ret);
        if (r < 0 || held == POD_GRANT_E_NONE)
                return r;
        loads = arena_new(scratch, Loads, 1);
        if (!loads)
                return -ENOMEM;
        *loads = (Loads){.n = 0};
        /* on failure the limits count */
        (void) resize_status_read(pod->annotations.resize_status, &loads->resize);
        ret->resized = resize_status_differs(&loads->resize);
        add_slices(loads, &spec);
        ret->pending_mem = spec.pending_mem;
        ret->pending_core = spec.pending_core;
        return collect_uses(loads, arena, ret);
}

int holding_from_held(const GrantSpec *spec, Arena *scratch, Arena *arena, InspectPod *ret) {
        Loads *loads = arena_new(scratch, Loads, 1);

        if (!loads)
                return -ENOMEM;
        *loads = (Loads){.n = 0};
        add_slices(loads, spec);
        return collect_uses(loads, arena, ret);
}
