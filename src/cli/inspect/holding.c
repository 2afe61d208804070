/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/holding.h"

#include <errno.h>

#include "share/demand.h"
#include "share/pod_grant.h"
#include "share/resize_status.h"
#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/pod.h"

/* What the pod holds of one card. */
typedef struct CardLoad {
        Demand mem, core;
        uint64_t mem_in_force, core_in_force;
} CardLoad;

/* By card, up to the highest index that occurs. */
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

/* A container with compute is on one card. */
static uint64_t core_in_force(const ResizeInForce *c, uint32_t amount) {
        return c && c->limit.core > 0 ? (uint64_t) amount * c->size.core / c->limit.core : amount;
}

/* n_cards: of the container, 1 at least. */
static void add_mem(Loads *loads, uint32_t card, ContainerKind kind, uint32_t container, uint32_t amount,
                    size_t n_cards) {
        CardLoad *load = load_at(loads, card);
        const ResizeInForce *c =
                kind == CONTAINER_MAIN ? resize_status_find(&loads->resize, container) : NULL;

        demand_add(&load->mem, kind, amount);
        if (kind != CONTAINER_INIT)
                load->mem_in_force += mem_in_force(c, amount, n_cards);
}

static void add_core(Loads *loads, const Slice *s) {
        CardLoad *load = load_at(loads, s->card);
        const ResizeInForce *c =
                s->kind == CONTAINER_MAIN ? resize_status_find(&loads->resize, s->container) : NULL;

        demand_add(&load->core, (ContainerKind) s->kind, s->core);
        if (s->kind != CONTAINER_INIT)
                load->core_in_force += core_in_force(c, s->core);
}

/* GrantSpec has the slices of init containers first, the order that demand_add() needs. with_mem:
 * no annotation names cards, so each container is on the one card of the older form. */
static void add_slices(Loads *loads, const GrantSpec *spec, bool with_mem) {
        for (size_t i = 0; i < spec->n_slices; i++) {
                const Slice *s = &spec->slices[i];

                if (with_mem)
                        add_mem(loads, s->card, (ContainerKind) s->kind, s->container, s->mem, 1);
                add_core(loads, s);
        }
}

static ContainerKind kind_of(const Pod *pod, bool init, uint32_t index) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if ((c->kind != CONTAINER_MAIN) == init && c->index == index)
                        return c->kind;
        }
        return init ? CONTAINER_INIT : CONTAINER_MAIN;
}

/* How many entries from this one on are of the same container; they are sorted by it. */
static size_t count_cards(const Allocation *a, size_t first) {
        size_t n = 1;

        while (first + n < a->n_entries && a->entries[first + n].container == a->entries[first].container)
                n++;
        return n;
}

/* pod_grant_spec() has reported a key that does not decode. */
static int add_annotation(Loads *loads, const Pod *pod, Str text, bool init, Arena *scratch, bool *any) {
        Allocation a = {0};
        size_t n_cards = 0;
        int r = 0;

        if (!str_is_empty(text))
                r = allocation_parse(text, scratch, &a, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t i = 0; i < a.n_entries; i++) {
                const AllocationEntry *e = &a.entries[i];

                if (i == 0 || e->container != e[-1].container)
                        n_cards = count_cards(&a, i);
                add_mem(loads, e->card, kind_of(pod, init, e->container), e->container, e->amount, n_cards);
        }
        *any |= a.n_entries > 0;
        return 0;
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
        bool annotated = false;
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
        (void) resize_status_read(pod->annotations.resize_status, &loads->resize); /* else the limits */
        ret->resized = resize_status_differs(&loads->resize);
        r = add_annotation(loads, pod, pod->annotations.init_allocation, true, scratch, &annotated);
        if (r == 0)
                r = add_annotation(loads, pod, pod->annotations.allocation, false, scratch, &annotated);
        if (r < 0)
                return r;
        add_slices(loads, &spec, !annotated);
        if (!annotated) {
                ret->pending_mem = spec.pending_mem;
                ret->pending_core = spec.pending_core;
        }
        return collect_uses(loads, arena, ret);
}
