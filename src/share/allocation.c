/* SPDX-License-Identifier: Apache-2.0 */
#include "share/allocation.h"

#include <errno.h>

#include "base/quantity.h"
#include "share/demand.h"
#include "wire/json_write.h"

/* ---- from a pod ---- */

/* Slices that are being collected; the array grows in the arena by doubling. */
typedef struct Collection {
        Arena *arena;
        Slice *slices;
        size_t n, capacity;
} Collection;

static Slice *collect(Collection *c, Slice slice) {
        if (c->n == c->capacity) {
                size_t capacity = c->capacity ? c->capacity * 2 : 8;
                Slice *slices = arena_new(c->arena, Slice, capacity);

                if (!slices)
                        return NULL;
                if (c->n > 0)
                        memcpy(slices, c->slices, c->n * sizeof *slices);
                c->slices = slices;
                c->capacity = capacity;
        }
        c->slices[c->n] = slice;
        return &c->slices[c->n++];
}

static uint32_t saturate(uint64_t value) {
        return value > UINT32_MAX ? UINT32_MAX : (uint32_t) value;
}

/* The API server lets only whole numbers through for these resources; anything else is nothing, and said. */
static uint32_t amount_of(ResourceAsk ask, const char *resource, Fault *fault) {
        uint64_t value = 0;

        if (ask.present && quantity_parse(ask.text, &value) != 0)
                (void) fault_set(fault, 0, "%s is \"" STR_FMT "\", must be a whole number: counted as 0",
                                 resource, STR_ARG(ask.text));
        return saturate(value);
}

/* The pod's list has the init containers first: both lists are indexed directly. */
static const PodContainer *container_of(const Pod *pod, size_t n_init, bool init, uint32_t index) {
        size_t i = init ? index : n_init + index;

        return i < (init ? n_init : pod->n_containers) ? &pod->containers[i] : NULL;
}

static size_t count_init(const Pod *pod) {
        size_t n = 0;

        while (n < pod->n_containers && pod->containers[n].kind != CONTAINER_MAIN)
                n++;
        return n;
}

/* One annotation of the current form. Containers that the pod does not have are counted as well: the node
 * obeyed the annotation. Returns 0, ANNOTATION_E_MALFORMED or -ENOMEM. */
static int collect_allocation(Collection *c, const Pod *pod, const char *key, Str text, bool init,
                              Fault *fault) {
        size_t n_init = count_init(pod);
        Allocation a;
        int r;

        if (str_is_empty(text))
                return 0;
        r = allocation_parse(text, c->arena, &a, fault);
        if (r != 0)
                return r < 0 ? r : fault_wrap(fault, r, "annotation %s", key);
        for (size_t i = 0; i < a.n_entries; i++) {
                const AllocationEntry *e = &a.entries[i];
                const PodContainer *container = container_of(pod, n_init, init, e->container);
                ContainerKind kind = container ? container->kind : init ? CONTAINER_INIT : CONTAINER_MAIN;

                if (!collect(c, (Slice){.card = e->card,
                                        .mem = e->amount,
                                        .container = (uint16_t) e->container,
                                        .kind = (uint8_t) kind}))
                        return -ENOMEM;
        }
        return 0;
}

static int compare_places(const void *a, const void *b) {
        const Slice *x = a, *y = b;

        if (x->container != y->container)
                return x->container < y->container ? -1 : 1;
        return (x->card > y->card) - (x->card < y->card);
}

/* first..end: the main containers' slices, in the order of the annotation. */
static int collect_core_entries(Collection *c, size_t first, const Allocation *a) {
        size_t end = c->n;

        for (size_t i = 0; i < a->n_entries; i++) {
                const AllocationEntry *e = &a->entries[i];
                Slice place = {.card = e->card, .container = (uint16_t) e->container, .kind = CONTAINER_MAIN},
                      *s = NULL;

                if (end > first)
                        s = bsearch(&place, c->slices + first, end - first, sizeof place, compare_places);
                if (!s)
                        s = collect(c, place); /* compute without memory: somebody else's, but taken */
                if (!s)
                        return -ENOMEM;
                s->core = e->amount;
        }
        return 0;
}

/* Compute stands in an annotation of its own, main containers only; for the others, and where it is missing,
 * the container's limit says it, which the annotation repeats. */
static int collect_core(Collection *c, const Pod *pod, size_t first_main, Fault *fault) {
        size_t n_init = count_init(pod), until;
        Allocation a = {0};
        int r = 0;

        if (!str_is_empty(pod->annotations.core))
                r = allocation_parse(pod->annotations.core, c->arena, &a, fault);
        if (r > 0)
                (void) fault_wrap(fault, r, "annotation %s", ANNOTATION_CORE);
        if (r >= 0)
                r = collect_core_entries(c, first_main, &a);
        if (r < 0)
                return r;
        until = a.n_entries > 0 ? first_main : c->n;
        for (size_t i = 0; i < until; i++) {
                const PodContainer *container =
                        container_of(pod, n_init, i < first_main, c->slices[i].container);

                if (container)
                        c->slices[i].core = amount_of(container->gpu_core, RESOURCE_GPU_CORE, fault);
        }
        return 0;
}

static int collect_current(Collection *c, const Pod *pod, Fault *fault) {
        const PodAnnotations *a = &pod->annotations;
        size_t first_main;
        int r;

        r = collect_allocation(c, pod, ANNOTATION_INIT_ALLOCATION, a->init_allocation, true, fault);
        first_main = c->n;
        if (r == 0)
                r = collect_allocation(c, pod, ANNOTATION_ALLOCATION, a->allocation, false, fault);
        if (r < 0)
                return r;
        if (r > 0 || c->n == 0) {
                c->n = 0; /* not half of it: the older form, or pending, is the better truth */
                return 0;
        }
        return collect_core(c, pod, first_main, fault);
}

/* The older form knows one card for the whole pod; the amounts are the limits. */
static int collect_older(Collection *c, const Pod *pod, Fault *fault) {
        Str text = pod->annotations.old_idx;
        uint32_t card;

        if (str_is_empty(text))
                return 0;
        if (!str_to_u32(text, &card) || card > CARD_INDEX_MAX) {
                /* -1 is what the first generation wrote for "not yet". */
                if (!str_eq(text, STR("-1")))
                        (void) fault_set(fault, 0, "annotation %s is \"" STR_FMT "\", must be a card index",
                                         ANNOTATION_OLD_IDX, STR_ARG(text));
                return 0;
        }
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *p = &pod->containers[i];
                uint32_t mem = amount_of(p->gpu_mem, RESOURCE_GPU_MEM, fault);

                if (mem > 0 && !collect(c, (Slice){.card = card,
                                                   .mem = mem,
                                                   .core = amount_of(p->gpu_core, RESOURCE_GPU_CORE, fault),
                                                   .container = (uint16_t) p->index,
                                                   .kind = (uint8_t) p->kind}))
                        return -ENOMEM;
        }
        return 0;
}

/* Whatever card it gets, it takes no more than this there. */
static void collect_pending(const Pod *pod, GrantSpec *spec, Fault *fault) {
        Demand mem = {0}, core = {0};

        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                demand_add(&mem, c->kind, amount_of(c->gpu_mem, RESOURCE_GPU_MEM, fault));
                demand_add(&core, c->kind, amount_of(c->gpu_core, RESOURCE_GPU_CORE, fault));
        }
        spec->pending_mem = saturate(demand_total(&mem));
        spec->pending_core = saturate(demand_total(&core));
        spec->has_core = spec->pending_core > 0;
}

int grant_spec_from_pod(const Pod *pod, Arena *arena, GrantSpec *ret, Fault *fault) {
        Collection c = {.arena = arena};
        GrantSpec spec = {
                .namespace_ = pod->meta.namespace_,
                .name = pod->meta.name,
                .uid = pod->meta.uid,
                .node = pod->node_name,
                .app = str_is_empty(pod->meta.controller_uid) ? 0 : str_hash64(pod->meta.controller_uid, 0),
        };
        int r;

        if (str_is_empty(pod->node_name) || (pod_is_terminal(pod) && pod->containers_ended))
                return POD_GRANT_E_NONE;
        r = collect_current(&c, pod, fault);
        if (r < 0)
                return r;
        if (c.n == 0) {
                r = collect_older(&c, pod, fault);
                if (r < 0)
                        return r;
        }
        if (c.n == 0) {
                collect_pending(pod, &spec, fault);
                if (spec.pending_mem == 0)
                        return POD_GRANT_E_NONE;
        }
        for (size_t i = 0; i < c.n; i++)
                spec.has_core = spec.has_core || c.slices[i].core > 0;
        spec.slices = c.slices;
        spec.n_slices = c.n;
        *ret = spec;
        return 0;
}

/* ---- to annotations ---- */

static int compare_entries(const void *a, const void *b) {
        const AllocationEntry *x = a, *y = b;

        if (x->container != y->container)
                return x->container < y->container ? -1 : 1;
        return (x->card > y->card) - (x->card < y->card);
}

typedef enum Form { FORM_MEM, FORM_CORE, FORM_INIT } Form;

static void write_allocation(JsonWriter *w, const char *key, const Slice *slices, size_t n, Form form,
                             AllocationEntry *entries) {
        _cleanup_buf_ Buf text = BUF_NULL;
        size_t used = 0;

        for (size_t i = 0; i < n; i++) {
                uint32_t amount = form == FORM_CORE ? slices[i].core : slices[i].mem;

                if ((slices[i].kind != CONTAINER_MAIN) == (form == FORM_INIT) && amount > 0)
                        entries[used++] = (AllocationEntry){slices[i].container, slices[i].card, amount};
        }
        if (used == 0 && form != FORM_MEM)
                return;
        qsort(entries, used, sizeof *entries, compare_entries);
        allocation_format(entries, used, &text);
        if (buf_result(&text) < 0)
                w->out->broken = true;
        json_write_str(w, key, buf_str(&text));
}

static void write_number(JsonWriter *w, const char *key, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) value);
        json_write_text(w, key, text);
}

static uint32_t card_units_of(const LedgerNode *node, uint32_t card) {
        const LedgerCard *cards = ledger_node_cards(node);

        for (size_t i = 0; i < ledger_node_n_cards(node); i++)
                if (cards[i].index == card)
                        return cards[i].units;
        return 0;
}

static void write_older(JsonWriter *w, const Slice *slices, size_t n, const LedgerNode *node, bool assigned,
                        uint64_t assume_time_nsec) {
        Demand init = {0}, all = {0};

        for (size_t i = 0; i < n; i++) {
                if (slices[i].card != slices[0].card)
                        return; /* it has one index only */
                demand_add(slices[i].kind == CONTAINER_INIT ? &init : &all, slices[i].kind, slices[i].mem);
        }
        write_number(w, ANNOTATION_OLD_IDX, slices[0].card);
        write_number(w, ANNOTATION_OLD_DEV, card_units_of(node, slices[0].card));
        write_number(w, ANNOTATION_OLD_POD,
                     demand_total(&all) > 0 ? demand_total(&all) : demand_total(&init));
        json_write_text(w, ANNOTATION_OLD_ASSIGNED, assigned ? "true" : "false");
        write_number(w, ANNOTATION_OLD_ASSUME_TIME, assume_time_nsec);
}

void grant_annotations_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                             uint64_t assume_time_nsec, Buf *out) {
        _cleanup_free_ AllocationEntry *entries = calloc(n_slices > 0 ? n_slices : 1, sizeof *entries);
        JsonWriter w;

        if (!entries) {
                out->broken = true;
                return;
        }
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        write_allocation(&w, ANNOTATION_ALLOCATION, slices, n_slices, FORM_MEM, entries);
        write_allocation(&w, ANNOTATION_CORE, slices, n_slices, FORM_CORE, entries);
        write_allocation(&w, ANNOTATION_INIT_ALLOCATION, slices, n_slices, FORM_INIT, entries);
        json_write_text(&w, ANNOTATION_ASSIGNED, assigned ? "true" : "false");
        write_number(&w, ANNOTATION_ASSUME_TIME, assume_time_nsec);
        if (n_slices > 0)
                write_older(&w, slices, n_slices, node, assigned, assume_time_nsec);
        json_write_object_end(&w);
}
