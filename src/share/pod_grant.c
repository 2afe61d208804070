/* SPDX-License-Identifier: Apache-2.0 */
#include "share/pod_grant.h"

#include <errno.h>

#include "base/quantity.h"
#include "share/demand.h"
#include "share/fault_join.h"
#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/pod.h"

static uint32_t saturate_u32(uint64_t value) {
        return value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
}

/* An amount of a limit. The API server accepts only whole numbers for these resources; any other
 * text counts as 0. */
static uint32_t amount_of(ResourceAsk ask, const char *resource, Fault *fault) {
        uint64_t value = 0;
        Fault more = FAULT_NULL;

        if (!ask.present || quantity_parse(ask.text, &value) == 0)
                return saturate_u32(value);
        (void) fault_set(&more, 0, "%s is \"" STR_FMT "\", must be a whole number: counted as 0", resource,
                         STR_ARG(ask.text));
        fault_join(fault, &more);
        return 0;
}

/* The units that the container takes: of memory, or whole cards, each of which is one unit. */
static uint32_t mem_of(const PodContainer *c, Fault *fault) {
        uint32_t cards = amount_of(c->gpu, RESOURCE_GPU, fault);

        return cards > 0 ? cards : amount_of(c->gpu_mem, RESOURCE_GPU_MEM, fault);
}

/* ---- where: the cards ---- */

/* The cards that the annotations name. Without entries: the annotation is absent, empty or
 * malformed. */
typedef struct AnnotatedCards {
        Allocation main, init;
        bool has_older;
        uint32_t older_card;
} AnnotatedCards;

static int read_key(Str text, const char *key, Arena *arena, Allocation *ret, Fault *fault) {
        Fault why = FAULT_NULL;
        int r;

        *ret = (Allocation){0};
        if (str_is_empty(text))
                return 0;
        r = allocation_parse(text, arena, ret, &why);
        if (r <= 0)
                return r;
        *ret = (Allocation){0};
        (void) fault_wrap(&why, 0, "annotation %s", key);
        fault_join(fault, &why);
        return 0;
}

/* Reads the older annotation, which names one card for the whole pod; -1: none yet. */
static void read_older(Str text, AnnotatedCards *p, Fault *fault) {
        Fault why = FAULT_NULL;

        if (str_is_empty(text) || str_eq(text, STR("-1")))
                return;
        p->has_older = str_to_u32(text, &p->older_card) && p->older_card <= CARD_INDEX_MAX;
        if (p->has_older)
                return;
        (void) fault_set(&why, 0, "annotation %s is \"%.*s\", must be a card index from 0 to %d",
                         ANNOTATION_OLD_IDX, STR_CUT(text, 64), CARD_INDEX_MAX);
        fault_join(fault, &why);
}

static int read_cards(const Pod *pod, Arena *arena, AnnotatedCards *ret, Fault *fault) {
        const PodAnnotations *a = &pod->annotations;
        int r;

        *ret = (AnnotatedCards){0};
        r = read_key(a->init_allocation, ANNOTATION_INIT_ALLOCATION, arena, &ret->init, fault);
        if (r == 0)
                r = read_key(a->allocation, ANNOTATION_ALLOCATION, arena, &ret->main, fault);
        if (r == 0 && (ret->main.n_entries == 0 || ret->init.n_entries == 0))
                read_older(a->old_idx, ret, fault);
        return r;
}

/* Finds the entries of one container, which are neighbours. */
static const AllocationEntry *entries_of(const Allocation *a, uint32_t container, size_t *ret_n) {
        size_t low = 0, high = a->n_entries, end;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (a->entries[middle].container < container)
                        low = middle + 1;
                else
                        high = middle;
        }
        for (end = low; end < a->n_entries && a->entries[end].container == container;)
                end++;
        *ret_n = end - low;
        return *ret_n > 0 ? &a->entries[low] : NULL;
}

/* ---- how much: the limits ---- */

/* A pod's slices while they are collected. */
typedef struct Collection {
        Arena *arena;
        Slice *slices;
        size_t n, capacity;
        Demand pending_mem, pending_core;
        bool has_core;
} Collection;

static int collect_slice(Collection *c, Slice slice) {
        if (c->n == c->capacity) {
                size_t capacity = c->capacity ? c->capacity * 2 : 8;
                Slice *slices = arena_new(c->arena, Slice, capacity);

                if (!slices)
                        return -ENOMEM;
                if (c->n > 0)
                        memcpy(slices, c->slices, c->n * sizeof *slices);
                c->slices = slices;
                c->capacity = capacity;
        }
        c->slices[c->n++] = slice;
        return 0;
}

/* The i-th of k parts of an amount: the first parts have the remainder. */
static uint32_t part_of(uint32_t amount, size_t i, size_t k) {
        return amount / (uint32_t) k + (i < amount % k);
}

static int collect_container(Collection *c, const PodContainer *container, const AnnotatedCards *p,
                             Fault *fault) {
        uint32_t mem = mem_of(container, fault),
                 core = amount_of(container->gpu_core, RESOURCE_GPU_CORE, fault);
        const Allocation *key = container->kind == CONTAINER_MAIN ? &p->main : &p->init;
        AllocationEntry older = {.card = p->older_card};
        const AllocationEntry *entries;
        size_t k;
        int r = 0;

        entries = entries_of(key, container->index, &k);
        if (key->n_entries == 0 && p->has_older) {
                entries = &older;
                k = 1;
        }
        c->has_core |= core > 0;
        if (mem == 0 || k == 0) {
                demand_add(&c->pending_mem, container->kind, mem);
                demand_add(&c->pending_core, container->kind, core);
                return 0;
        }
        k = k < mem ? k : mem; /* a card that would get no unit of memory gets no slice */
        for (size_t i = 0; i < k && r == 0; i++)
                r = collect_slice(c, (Slice){.card = entries[i].card,
                                             .mem = part_of(mem, i, k),
                                             .core = part_of(core, i, k),
                                             .container = (uint16_t) container->index,
                                             .kind = (uint8_t) container->kind});
        return r;
}

/* Whether the pod is the mirror of a static pod that is gone: its deletion begins then, and a
 * finalizer may keep it for ever. */
static bool is_ending_mirror(const Pod *pod) {
        return !str_is_empty(pod->annotations.mirror) && pod->meta.terminating;
}

static bool holds_nothing(const Pod *pod) {
        return str_is_empty(pod->node_name) ||
               ((pod_is_terminal(pod) || is_ending_mirror(pod)) && pod->containers_ended);
}

int pod_grant_spec(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault) {
        Collection c = {.arena = arena};
        AnnotatedCards cards;
        int r;

        if (holds_nothing(pod))
                return POD_GRANT_E_NONE;
        r = read_cards(pod, arena, &cards, fault);
        for (size_t i = 0; i < pod->n_containers && r == 0; i++)
                r = collect_container(&c, &pod->containers[i], &cards, fault);
        if (r < 0)
                return r;
        if (c.n == 0 && demand_total(&c.pending_mem) == 0)
                return POD_GRANT_E_NONE;
        *ret = (GrantSpec){
                .namespace_ = pod->meta.namespace_,
                .name = pod->meta.name,
                .uid = pod->meta.uid,
                .node = pod->node_name,
                .slices = c.slices,
                .n_slices = c.n,
                .pending_mem = saturate_u32(demand_total(&c.pending_mem)),
                .pending_core = saturate_u32(demand_total(&c.pending_core)),
                .has_core = c.has_core,
                .whole = request_is_whole(pod),
                .cpu = pod_is_terminal(pod) ? 0 : request_cpu_of_pod(pod),
                .app = str_is_empty(pod->meta.controller_uid) ? 0 : str_hash64(pod->meta.controller_uid, 0),
        };
        return 0;
}

/* ---- comparing amounts with limits ---- */

/* What one annotation claims: amounts of one resource for the main or the init containers. */
typedef struct Claim {
        const char *key, *resource;
        bool init, core;
} Claim;

/* The sentence about the first difference, and the number of all. */
typedef struct Differences {
        Fault *first;
        size_t n;
} Differences;

static const PodContainer *container_at(const Pod *pod, const Claim *claim, uint32_t index) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if ((c->kind != CONTAINER_MAIN) == claim->init && c->index == index)
                        return c;
        }
        return NULL;
}

static uint32_t limit_of(const PodContainer *c, const Claim *claim) {
        if (!c)
                return 0;
        return claim->core ? amount_of(c->gpu_core, claim->resource, NULL) : mem_of(c, NULL);
}

static Fault *next_difference(Differences *d) {
        return d->n++ == 0 ? d->first : NULL;
}

/* Compares the entries of one container with its limit: `annotation K gives container 0 ("main") 9
 * of aliyun.com/gpu-mem, its limit is 1`. */
static void compare_container(const Pod *pod, const Claim *claim, const AllocationEntry *e, size_t k,
                              Differences *d) {
        const PodContainer *c = container_at(pod, claim, e->container);
        const char *kind = claim->init ? "init container" : "container";
        Str name = c ? c->name : STR("");
        uint32_t limit = limit_of(c, claim);
        uint64_t said = 0;

        for (size_t i = 0; i < k; i++)
                said += e[i].amount;
        if (said != limit) {
                (void) fault_set(next_difference(d), 0,
                                 "annotation %s gives %s %u (\"" STR_FMT "\") %llu of %s, its limit is %u",
                                 claim->key, kind, e->container, STR_ARG(name), (unsigned long long) said,
                                 claim->resource, limit);
                return;
        }
        for (size_t i = 0; i < k; i++) {
                if (e[i].amount == part_of(limit, i, k))
                        continue;
                (void) fault_set(next_difference(d), 0,
                                 "annotation %s gives %s %u (\"" STR_FMT
                                 "\") %u of %s on gpu%u, %u of its limit %u count there",
                                 claim->key, kind, e->container, STR_ARG(name), e[i].amount, claim->resource,
                                 e[i].card, part_of(limit, i, k), limit);
                return;
        }
}

static void find_unplaced(const Pod *pod, const Claim *claim, const Allocation *a, Differences *d) {
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];
                uint32_t limit = limit_of(c, claim);
                size_t n;

                if ((c->kind != CONTAINER_MAIN) != claim->init || limit == 0 || entries_of(a, c->index, &n))
                        continue;
                (void) fault_set(next_difference(d), 0,
                                 "annotation %s names no card for %s %u (\"" STR_FMT
                                 "\"), whose limit is %u of %s",
                                 claim->key, claim->init ? "init container" : "container", c->index,
                                 STR_ARG(c->name), limit, claim->resource);
        }
}

static int compare_key(const Pod *pod, Str text, const Claim *claim, Arena *arena, Differences *d) {
        Allocation a;
        int r;

        r = read_key(text, claim->key, arena, &a, NULL);
        if (r < 0 || a.n_entries == 0)
                return r;
        for (size_t i = 0, k; i < a.n_entries; i += k) {
                const AllocationEntry *e = entries_of(&a, a.entries[i].container, &k);

                compare_container(pod, claim, e, k, d);
        }
        if (!claim->core)
                find_unplaced(pod, claim, &a, d);
        return 0;
}

/* Compares the older annotation, one amount for the whole pod. It is the sum over main containers
 * and sidecars, or over the main containers alone, as other schedulers write it. */
static void compare_older(const Pod *pod, Differences *d) {
        uint64_t main = 0, stay = 0, peak = 0;
        uint32_t said;

        if (!str_to_u32(pod->annotations.old_pod, &said))
                return;
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];
                uint32_t mem = amount_of(c->gpu_mem, RESOURCE_GPU_MEM, NULL);

                main += c->kind == CONTAINER_MAIN ? mem : 0;
                stay += c->kind != CONTAINER_INIT ? mem : 0;
                peak = c->kind == CONTAINER_INIT && mem > peak ? mem : peak;
        }
        if (said == main || said == stay || (stay == 0 && said == peak))
                return;
        (void) fault_set(next_difference(d), 0,
                         "annotation " ANNOTATION_OLD_POD " gives the pod %u of " RESOURCE_GPU_MEM
                         ", its limits are %llu together",
                         said, (unsigned long long) (stay > 0 ? stay : peak));
}

int pod_grant_compare(const Pod *pod, Arena *arena, Fault *fault) {
        static const Claim mem = {ANNOTATION_ALLOCATION, RESOURCE_GPU_MEM, false, false},
                           init = {ANNOTATION_INIT_ALLOCATION, RESOURCE_GPU_MEM, true, false},
                           core = {ANNOTATION_CORE, RESOURCE_GPU_CORE, false, true};
        const PodAnnotations *a = &pod->annotations;
        Fault first = FAULT_NULL;
        Differences d = {.first = &first};
        AnnotatedCards cards;
        int r;

        if (holds_nothing(pod) || pod_system_keys(pod) == 0)
                return 0;
        r = read_cards(pod, arena, &cards, NULL);
        if (r == 0)
                r = compare_key(pod, a->allocation, &mem, arena, &d);
        if (r == 0)
                r = compare_key(pod, a->init_allocation, &init, arena, &d);
        if (r == 0)
                r = compare_key(pod, a->core, &core, arena, &d);
        if (r < 0)
                return r;
        if (cards.main.n_entries == 0 && cards.has_older)
                compare_older(pod, &d);
        if (d.n == 0)
                return 0;
        if (d.n == 1)
                return fault_set(fault, POD_GRANT_E_DIFFERS, "%s", first.text);
        return fault_set(fault, POD_GRANT_E_DIFFERS, "%s; and %zu more differences", first.text, d.n - 1);
}
