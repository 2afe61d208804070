/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/holding.h"

#include <errno.h>

#include "base/quantity.h"

/* One quantity of one pod on one card, container by container in the order they start. */
typedef struct Load {
        uint64_t sidecars; /* started so far */
        uint64_t peak;     /* most that was held while init containers ran */
        uint64_t main;
} Load;

typedef struct CardLoad {
        Load mem, core;
} CardLoad;

typedef struct Holding {
        const Pod *pod;
        size_t n_init; /* init containers and sidecars, which come first in pod->containers */
        Fault *fault;
        Allocation main, init, core;
        CardLoad *cards;
        size_t n_cards;
} Holding;

/* Sums cannot wrap: every amount is below 2^32, and nobody has 2^32 containers. */
static void load_add(Load *l, ContainerKind kind, uint64_t amount) {
        uint64_t now;

        if (kind == CONTAINER_MAIN) {
                l->main += amount;
                return;
        }
        now = l->sidecars + amount;
        if (kind == CONTAINER_SIDECAR)
                l->sidecars = now;
        if (now > l->peak)
                l->peak = now;
}

static uint64_t load_total(const Load *l) {
        uint64_t settled = l->sidecars + l->main;

        return settled > l->peak ? settled : l->peak;
}

/* The API server lets only whole numbers through for these resources; anything else in a file counts as
 * nothing. */
static uint64_t ask_amount(const ResourceAsk *ask, const char *resource, Fault *fault) {
        uint64_t amount = 0;

        if (!ask->present || (quantity_parse(ask->text, &amount) == 0 && amount <= UINT32_MAX))
                return amount;
        (void) fault_set(fault, 0, "%s is \"" STR_FMT "\", which is no amount: counted as 0", resource,
                         STR_ARG(ask->text));
        return 0;
}

static void asked(const Holding *h, CardLoad *ret) {
        for (size_t k = 0; k < h->pod->n_containers; k++) {
                const PodContainer *c = &h->pod->containers[k];

                load_add(&ret->mem, c->kind, ask_amount(&c->gpu_mem, RESOURCE_GPU_MEM, h->fault));
                load_add(&ret->core, c->kind, ask_amount(&c->gpu_core, RESOURCE_GPU_CORE, h->fault));
        }
}

/* The container an annotation's index means, NULL when the pod has none such. */
static const PodContainer *container_at(const Holding *h, size_t first, size_t end, uint32_t index) {
        return index < end - first ? &h->pod->containers[first + index] : NULL;
}

static int annotation_parse(Holding *h, const char *key, Str text, Arena *scratch, Allocation *ret) {
        Fault why = FAULT_NULL;
        int r;

        if (str_is_empty(text))
                return 0;
        r = allocation_parse(text, scratch, ret, &why);
        if (r > 0)
                return fault_set(h->fault, 0, "annotation %s passed over: %s", key, why.text);
        return r;
}

/* Entries come by container, which for init containers is the order they start in. */
static void add_init(Holding *h) {
        for (size_t k = 0; k < h->init.n_entries; k++) {
                const AllocationEntry *e = &h->init.entries[k];
                const PodContainer *c = container_at(h, 0, h->n_init, e->container);
                ContainerKind kind = c ? c->kind : CONTAINER_INIT;

                load_add(&h->cards[e->card].mem, kind, e->amount);
                if (c)
                        load_add(&h->cards[e->card].core, kind,
                                 ask_amount(&c->gpu_core, RESOURCE_GPU_CORE, h->fault));
        }
}

/* Percent by its own annotation; where that is missing, by the container's limits: compute never spans cards,
 * so all of it belongs to the container's first card. */
static void add_main(Holding *h) {
        for (size_t k = 0; k < h->main.n_entries; k++) {
                const AllocationEntry *e = &h->main.entries[k];
                const PodContainer *c = container_at(h, h->n_init, h->pod->n_containers, e->container);
                bool first = k == 0 || e[-1].container != e->container;

                load_add(&h->cards[e->card].mem, CONTAINER_MAIN, e->amount);
                if (c && first && h->core.n_entries == 0)
                        load_add(&h->cards[e->card].core, CONTAINER_MAIN,
                                 ask_amount(&c->gpu_core, RESOURCE_GPU_CORE, h->fault));
        }
        for (size_t k = 0; k < h->core.n_entries; k++)
                load_add(&h->cards[h->core.entries[k].card].core, CONTAINER_MAIN, h->core.entries[k].amount);
}

static void cards_cover(Holding *h, const Allocation *a) {
        for (size_t k = 0; k < a->n_entries; k++)
                if (a->entries[k].card >= h->n_cards)
                        h->n_cards = (size_t) a->entries[k].card + 1;
}

static int uses_collect(const Holding *h, Arena *arena, InspectPod *ret) {
        size_t n = 0;

        for (size_t card = 0; card < h->n_cards; card++)
                n += load_total(&h->cards[card].mem) > 0 || load_total(&h->cards[card].core) > 0;
        ret->uses = arena_new(arena, InspectUse, n);
        if (!ret->uses)
                return -ENOMEM;
        for (size_t card = 0; card < h->n_cards; card++) {
                InspectUse use = {.card = (uint32_t) card,
                                  .mem = load_total(&h->cards[card].mem),
                                  .core = load_total(&h->cards[card].core)};

                if (use.mem > 0 || use.core > 0)
                        ret->uses[ret->n_uses++] = use;
        }
        return 0;
}

static int from_current(Holding *h, Arena *scratch, Arena *arena, InspectPod *ret) {
        cards_cover(h, &h->main);
        cards_cover(h, &h->init);
        cards_cover(h, &h->core);
        h->cards = arena_new(scratch, CardLoad, h->n_cards);
        if (!h->cards)
                return -ENOMEM;
        add_init(h);
        add_main(h);
        return uses_collect(h, arena, ret);
}

static int from_limits(Holding *h, Arena *arena, InspectPod *ret) {
        Str idx = h->pod->annotations.old_idx;
        CardLoad all = {0};
        uint32_t card;

        asked(h, &all);
        if (load_total(&all.mem) == 0 && load_total(&all.core) == 0)
                return 0;
        if (!str_to_u32(idx, &card) || card > CARD_INDEX_MAX) {
                if (!str_is_empty(idx))
                        (void) fault_set(h->fault, 0,
                                         "annotation %s is \"" STR_FMT "\", which is no card: pending",
                                         ANNOTATION_OLD_IDX, STR_ARG(idx));
                ret->pending_mem = load_total(&all.mem);
                ret->pending_core = load_total(&all.core);
                return 0;
        }
        ret->uses = arena_new(arena, InspectUse, 1);
        if (!ret->uses)
                return -ENOMEM;
        ret->uses[ret->n_uses++] = (InspectUse){card, load_total(&all.mem), load_total(&all.core)};
        return 0;
}

int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault) {
        const PodAnnotations *a = &pod->annotations;
        Holding h = {.pod = pod, .fault = fault};
        int r;

        while (h.n_init < pod->n_containers && pod->containers[h.n_init].kind != CONTAINER_MAIN)
                h.n_init++;
        r = annotation_parse(&h, ANNOTATION_ALLOCATION, a->allocation, scratch, &h.main);
        if (r == 0)
                r = annotation_parse(&h, ANNOTATION_INIT_ALLOCATION, a->init_allocation, scratch, &h.init);
        if (r == 0)
                r = annotation_parse(&h, ANNOTATION_CORE, a->core, scratch, &h.core);
        if (r < 0)
                return r;
        if (h.main.n_entries > 0 || h.init.n_entries > 0)
                return from_current(&h, scratch, arena, ret);
        return from_limits(&h, arena, ret);
}
