/* SPDX-License-Identifier: Apache-2.0 */
#include "share/request.h"

#include <errno.h>

#include "base/quantity.h"
#include "share/demand.h"
#include "wire/annotation.h"

enum { CORE_STEP = 5, CORE_MAX = 100 }; /* percent */

/* The pod that is decoded, and where a refusal goes. */
typedef struct Reading {
        const Pod *pod;
        Refusal *refusal;
} Reading;

static int refuse_request(const Reading *r, RefusalCode code, Str container, Str text) {
        *r->refusal = (Refusal){.code = code, .container = container, .text = text};
        return REQUEST_E_REFUSED;
}

/* Reads a whole number, small enough that the sum over all containers cannot overflow; absent: 0.
 * core: the resource that a refusal names. */
static int read_amount(const Reading *r, Str container, ResourceAsk ask, bool core, uint32_t *ret) {
        uint64_t value;
        int q;

        *ret = 0;
        if (!ask.present)
                return 0;
        q = quantity_parse(ask.text, &value);
        if (q == 0 && value <= UINT32_MAX / REQUEST_MAX_CONTAINERS) {
                *ret = (uint32_t) value;
                return 0;
        }
        (void) refuse_request(r, q == 0 || q == QUANTITY_E_RANGE ? REFUSAL_RANGE : REFUSAL_MALFORMED,
                              container, ask.text);
        r->refusal->core = core;
        return REQUEST_E_REFUSED;
}

static int read_core(const Reading *r, const PodContainer *c, uint32_t *ret) {
        int q = read_amount(r, c->name, c->gpu_core, true, ret);

        if (q != 0)
                return q;
        if (c->gpu_core.present && (*ret == 0 || *ret > CORE_MAX || *ret % CORE_STEP != 0))
                return refuse_request(r, REFUSAL_CORE_STEP, c->name, c->gpu_core.text);
        return 0;
}

static int refuse_count(const Reading *r, Str container, Str text) {
        return refuse_request(r, REFUSAL_COUNT_MALFORMED, container, text);
}

static int read_label(const Reading *r, uint32_t *ret) {
        Str label = r->pod->gpu_count_label;

        *ret = 0;
        if (str_is_empty(label))
                return 0;
        if (!str_to_u32(label, ret) || *ret == 0 || *ret > CARD_INDEX_MAX + 1)
                return refuse_count(r, (Str){NULL, 0}, label);
        return 0;
}

/* Reads the number of cards. Some manifests have gpu-count in a container's limits instead of the
 * label. Label and limits must agree. A limit of 0 is no request, as for every extended
 * resource. */
static int read_cards(const Reading *r, uint32_t *ret) {
        uint32_t cards;
        int q = read_label(r, &cards);

        for (size_t i = 0; i < r->pod->n_containers && q == 0; i++) {
                const PodContainer *c = &r->pod->containers[i];
                uint64_t count = 0;

                if (!c->gpu_count.present)
                        continue;
                if (quantity_parse(c->gpu_count.text, &count) != 0 || count > CARD_INDEX_MAX + 1)
                        return refuse_count(r, c->name, c->gpu_count.text);
                if (count == 0)
                        continue;
                if (cards > 0 && count != cards) {
                        (void) refuse_count(r, c->name, c->gpu_count.text);
                        r->refusal->cards = cards;
                        return REQUEST_E_REFUSED;
                }
                cards = (uint32_t) count;
        }
        if (q == 0)
                *ret = cards > 0 ? cards : 1;
        return q;
}

/* The containers of a pod must all ask for compute, or none. */
static int check_kinds(const Reading *r, const PodContainer *c, const PodContainer *first) {
        return c->gpu_core.present == first->gpu_core.present
                       ? 0
                       : refuse_request(r, REFUSAL_MIXED_KINDS, c->name, first->name);
}

static int check_container(const Reading *r, const PodContainer *c, uint32_t cards, RequestContainer *ret) {
        uint32_t mem, core;
        int q;

        q = read_amount(r, c->name, c->gpu_mem, false, &mem);
        if (q != 0)
                return q;
        q = read_core(r, c, &core);
        if (q != 0)
                return q;
        if (core > 0 && mem == 0)
                return refuse_request(r, REFUSAL_CORE_WITHOUT_MEM, c->name, c->gpu_core.text);
        if (mem % cards != 0) {
                (void) refuse_request(r, REFUSAL_COUNT_UNEVEN, c->name, c->gpu_mem.text);
                r->refusal->cards = cards;
                return REQUEST_E_REFUSED;
        }
        *ret = (RequestContainer){.kind = c->kind, .index = c->index, .mem = mem / cards, .core = core};
        return 0;
}

/* Computes the sums over the pod's containers, and checks the rules for them. */
static int check_sums(const Reading *r, Request *request) {
        Demand mem = {0}, core = {0};

        for (size_t i = 0; i < request->n_containers; i++) {
                const RequestContainer *c = &request->containers[i];
                demand_add(&mem, c->kind, c->mem);
                demand_add(&core, c->kind, c->core);
        }
        if (demand_total(&mem) > UINT32_MAX)
                return refuse_request(r, REFUSAL_RANGE, (Str){NULL, 0}, (Str){NULL, 0});
        request->mem = (uint32_t) demand_total(&mem);
        if (demand_total(&core) > CORE_MAX) {
                (void) refuse_request(r, REFUSAL_CORE_SUM, (Str){NULL, 0}, (Str){NULL, 0});
                r->refusal->core = (uint32_t) demand_total(&core);
                return REQUEST_E_REFUSED;
        }
        request->core = (uint32_t) demand_total(&core);
        if (request->core > 0 && request->cards > 1) {
                (void) refuse_request(r, REFUSAL_COUNT_WITH_CORE, (Str){NULL, 0}, (Str){NULL, 0});
                r->refusal->cards = request->cards;
                return REQUEST_E_REFUSED;
        }
        return 0;
}

static bool asks_something(const PodContainer *c) {
        uint64_t mem;

        /* 0 of an extended resource is no request, but 0 percent is refused as a wrong value. */
        if (c->gpu_core.present)
                return true;
        return c->gpu_mem.present && (quantity_parse(c->gpu_mem.text, &mem) != 0 || mem > 0);
}

/* Refuses cards without memory: the pod would start without a GPU. */
static int counts_cards_only(const Reading *r) {
        for (size_t i = 0; i < r->pod->n_containers; i++) {
                const PodContainer *c = &r->pod->containers[i];
                uint64_t count;

                if (c->gpu_count.present && (quantity_parse(c->gpu_count.text, &count) != 0 || count > 0))
                        return refuse_request(r, REFUSAL_COUNT_WITHOUT_MEM, c->name, c->gpu_count.text);
        }
        return REQUEST_E_NONE;
}

/* ---- whole cards ---- */

static bool asks_whole(const PodContainer *c) {
        uint64_t n;

        return c->gpu.present && (quantity_parse(c->gpu.text, &n) != 0 || n > 0);
}

static const PodContainer *whole_container(const Pod *pod) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (asks_whole(&pod->containers[i]))
                        return &pod->containers[i];
        return NULL;
}

static int refuse_whole(const Reading *r, const PodContainer *c, const char *rule) {
        (void) refuse_request(r, REFUSAL_WHOLE, c->name, c->gpu.text);
        r->refusal->rule = rule;
        return REQUEST_E_REFUSED;
}

/* Reads a request for whole cards. One main container gets all cards of the pod, because two would
 * need different ones. */
static int read_whole(const Reading *r, const PodContainer *c, Arena *arena, Request *ret) {
        uint64_t n = 0;

        for (size_t i = 0; i < r->pod->n_containers; i++) {
                const PodContainer *other = &r->pod->containers[i];

                if (asks_something(other) || other->gpu_count.present)
                        return refuse_whole(r, c, "must not come together with another resource of a GPU");
                if (other != c && asks_whole(other))
                        return refuse_whole(r, c, "must be of one container only");
        }
        if (!str_is_empty(r->pod->gpu_count_label))
                return refuse_whole(r, c, "must not come together with the label " LABEL_POD_COUNT);
        if (c->kind != CONTAINER_MAIN)
                return refuse_whole(r, c, "must not be of an init container");
        if (quantity_parse(c->gpu.text, &n) != 0 || n > CARD_INDEX_MAX + 1)
                return refuse_whole(r, c, "must be a whole number from 1 to 256");
        *ret = (Request){.mem = 1, .cards = (uint32_t) n, .whole = true, .n_containers = 1};
        ret->containers = arena_new(arena, RequestContainer, 1);
        if (!ret->containers)
                return -ENOMEM;
        ret->containers[0] = (RequestContainer){.kind = c->kind, .index = c->index, .mem = 1};
        return 0;
}

bool request_is_whole(const Pod *pod) {
        return whole_container(pod) != NULL;
}

static uint32_t milli_of(Str text) {
        int64_t milli = 0;

        (void) (!str_is_empty(text) && quantity_parse_milli(text, &milli));
        return milli > UINT32_MAX ? UINT32_MAX : (uint32_t) milli;
}

uint32_t request_cpu_of_pod(const Pod *pod) {
        Demand demand = {0};
        uint64_t total;

        for (size_t i = 0; i < pod->n_containers; i++)
                demand_add(&demand, pod->containers[i].kind, milli_of(pod->containers[i].cpu));
        total = str_is_empty(pod->cpu) ? demand_total(&demand) : milli_of(pod->cpu);
        total += milli_of(pod->overhead_cpu);
        return total > UINT32_MAX ? UINT32_MAX : (uint32_t) total;
}

static uint64_t app_of(const Pod *pod) {
        return str_is_empty(pod->meta.controller_uid) ? 0 : str_hash64(pod->meta.controller_uid, 0);
}

int request_amounts_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal) {
        Reading r = {.pod = pod, .refusal = ret_refusal};
        Request request = {0};
        const PodContainer *first = NULL, *whole = whole_container(pod);
        size_t n = 0;
        int q;

        if (whole) {
                q = read_whole(&r, whole, arena, ret);
                ret->app = q == 0 ? app_of(pod) : 0;
                return q;
        }
        for (size_t i = 0; i < pod->n_containers; i++)
                n += asks_something(&pod->containers[i]);
        if (n == 0)
                return counts_cards_only(&r);
        if (n > REQUEST_MAX_CONTAINERS)
                return refuse_request(&r, REFUSAL_TOO_MANY_CONTAINERS, (Str){NULL, 0}, (Str){NULL, 0});
        q = read_cards(&r, &request.cards);
        if (q != 0)
                return q;
        request.containers = arena_new(arena, RequestContainer, n);
        if (!request.containers)
                return -ENOMEM;
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                if (!asks_something(c))
                        continue;
                q = check_container(&r, c, request.cards, &request.containers[request.n_containers++]);
                first = first ? first : c;
                if (q == 0)
                        q = check_kinds(&r, c, first);
                if (q != 0)
                        return q;
        }
        q = check_sums(&r, &request);
        if (q != 0)
                return q;
        request.app = app_of(pod);
        *ret = request;
        return 0;
}

int request_from_pod(const Pod *pod, Arena *arena, Request *ret, Refusal *ret_refusal) {
        Reading r = {.pod = pod, .refusal = ret_refusal};
        CardChoiceFault fault;
        Request request;
        int q;

        q = request_amounts_from_pod(pod, arena, &request, ret_refusal);
        if (q != 0)
                return q;
        q = card_choice_read(&pod->annotations, arena, &request.choice, &fault);
        if (q > 0) {
                (void) refuse_request(&r, REFUSAL_CARD_LIST, str_from(fault.key), fault.entry);
                r.refusal->rule = fault.rule;
                return REQUEST_E_REFUSED;
        }
        if (q == 0) {
                request.cpu = request_cpu_of_pod(pod);
                *ret = request;
        }
        return q;
}

/* The copy has the containers behind the request, then the choice. */
static size_t containers_size(const Request *r) {
        return r->n_containers * sizeof *r->containers;
}

_Static_assert(_Alignof(RequestContainer) <= _Alignof(Request) &&
                       _Alignof(CardChoice) <= _Alignof(RequestContainer),
               "each part of a copy is aligned");

size_t request_size(const Request *r) {
        return sizeof *r + containers_size(r) + (r->choice ? r->choice->size : 0);
}

Request *request_copy(const Request *r, void *at) {
        Request *copy = at;

        *copy = *r;
        copy->containers = (RequestContainer *) (copy + 1);
        memcpy(copy->containers, r->containers, containers_size(r));
        if (r->choice)
                copy->choice =
                        memcpy((char *) copy->containers + containers_size(r), r->choice, r->choice->size);
        return copy;
}
