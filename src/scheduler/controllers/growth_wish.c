/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/growth_wish.h"

#include <errno.h>
#include <stddef.h>

#include "share/ledger_growth.h"
#include "share/resize_request.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/json_write.h"
#include "wire/list_items.h"
#include "wire/pod.h"
#include "wire/resize_keys.h"

/* ---- sizes ---- */

static ResizeLimit *limit_of(ResizeLimit *limits, size_t n, uint32_t container) {
        for (size_t i = 0; i < n; i++)
                if (limits[i].index == container)
                        return &limits[i];
        return NULL;
}

/* Sums the slices of each main container to its limits. limits has room for one element per slice;
 * returns the number of containers. */
static size_t sum_up(const Slice *slices, size_t n_slices, ResizeLimit *limits) {
        size_t n = 0;

        for (size_t i = 0; i < n_slices; i++) {
                ResizeLimit *l = limit_of(limits, n, slices[i].container);

                if (slices[i].kind != CONTAINER_MAIN)
                        continue;
                if (!l) {
                        l = &limits[n++];
                        *l = (ResizeLimit){.index = slices[i].container, .grows = true};
                }
                l->mem += slices[i].mem;
                l->core += slices[i].core;
                l->cards++;
        }
        return n;
}

/* The part of size - limit that each card gets; 0 when it cannot be divided equally. */
static int32_t part_above(uint32_t size, uint32_t limit, uint32_t cards) {
        int64_t above = (int64_t) size - limit;

        if (above % cards != 0 || above > INT32_MAX || above < -INT32_MAX)
                return 0;
        return (int32_t) (above / cards);
}

static size_t make_entries(const Grant *grant, const ResizeLimit *limits, const ResizeSize *sizes, size_t n,
                           GrowthEntry *ret) {
        const Slice *slices;
        size_t n_slices, made = 0;

        slices = grant_slices(grant, &n_slices);
        for (size_t i = 0; i < n_slices; i++)
                for (size_t k = 0; k < n; k++) {
                        GrowthSize above = {part_above(sizes[k].mem, limits[k].mem, limits[k].cards),
                                            part_above(sizes[k].core, limits[k].core, limits[k].cards)};

                        if (slices[i].kind == CONTAINER_MAIN && slices[i].container == limits[k].index)
                                ret[made++] = (GrowthEntry){.uid = grant_uid(grant),
                                                            .container = limits[k].index,
                                                            .card = slices[i].card,
                                                            .size = above};
                }
        return made;
}

int growth_wish_entries(const Grant *grant, const GrowthWish *wish, Arena *arena, GrowthEntry **ret,
                        size_t *ret_n) {
        const Slice *slices;
        ResizeLimit *limits;
        ResizeSize *sizes;
        size_t n;
        int r;

        *ret_n = 0;
        slices = grant_slices(grant, &n);
        if (n == 0)
                return 0;
        limits = arena_new(arena, ResizeLimit, n);
        sizes = arena_new(arena, ResizeSize, n);
        *ret = arena_new(arena, GrowthEntry, n);
        if (!limits || !sizes || !*ret)
                return -ENOMEM;
        n = sum_up(slices, n, limits);
        r = resize_request_read(wish->mem, wish->core, limits, n, sizes, NULL);
        if (r == 0)
                *ret_n = make_entries(grant, limits, sizes, n, *ret);
        return r < 0 ? r : 0;
}

bool growth_wish_is_one(const Grant *grant, const GrowthWish *wish) {
        return !str_is_empty(wish->mem) || !str_is_empty(wish->core) ||
               ledger_growth_is_below(grant_node(grant), grant_uid(grant));
}

/* ---- the ledger ---- */

void growth_wish_beyond(const LedgerNode *n, const GrowthEntry *entries, size_t count, bool *ret_mem,
                        bool *ret_core) {
        *ret_mem = *ret_core = false;
        for (size_t i = 0; i < count; i++) {
                GrowthSize now = growth_excess(
                        ledger_growth_of(n, entries[i].uid, entries[i].container, entries[i].card));

                *ret_mem |= entries[i].size.mem > now.mem;
                *ret_core |= entries[i].size.core > now.core;
        }
}

bool growth_wish_shares_card(const Grant *grant, const GrowthEntry *entries, size_t count) {
        const Slice *slices;
        size_t n;

        slices = grant_slices(grant, &n);
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < count; k++)
                        if (slices[i].card == entries[k].card)
                                return true;
        return false;
}

bool growth_wish_is_charged(const LedgerNode *n, const GrowthEntry *entries, size_t count) {
        for (size_t i = 0; i < count; i++) {
                GrowthSize now = ledger_growth_of(n, entries[i].uid, entries[i].container, entries[i].card);

                if (!growth_is_same(growth_larger(now, entries[i].size), now))
                        return false;
        }
        return true;
}

int growth_wish_reserve(LedgerNode *n, const GrowthEntry *entries, size_t count, Fault *fault) {
        int r = 0;

        for (size_t i = 0; i < count && r == 0; i++)
                r = ledger_growth_reserve(n, &entries[i], fault);
        if (r != 0)
                ledger_growth_release(n, entries[0].uid);
        return r;
}

/* ---- the permit ---- */

int growth_wish_raise(const Grant *grant, Arena *arena, Growth *growth) {
        const Slice *slices;
        size_t n;
        int raised = 0, r;

        slices = grant_slices(grant, &n);
        for (size_t i = 0; i < n; i++) {
                GrowthEntry e = {
                        .uid = grant_uid(grant), .container = slices[i].container, .card = slices[i].card};
                const GrowthEntry *there = growth_find(growth, e.uid, e.container, e.card);
                GrowthSize now = there ? there->size : (GrowthSize){0, 0};

                if (slices[i].kind != CONTAINER_MAIN)
                        continue;
                e.size = ledger_growth_reserved(grant_node(grant), e.uid, e.container, e.card);
                if (growth_is_same(growth_larger(now, e.size), now))
                        continue;
                r = growth_raise(growth, arena, &e);
                if (r < 0)
                        return r;
                raised++;
        }
        return raised;
}

void growth_wish_patch(const Growth *growth, Str version, Buf *out) {
        _cleanup_buf_ Buf text = BUF_NULL;
        JsonWriter w;

        growth_write(growth, &text);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_str(&w, "resourceVersion", version);
        json_write_object(&w, "annotations");
        json_write_str(&w, ANNOTATION_GROWTH, buf_str(&text));
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
        out->broken |= text.broken;
}

/* ---- quotas ---- */

typedef struct Quota {
        Str name;
        bool mem, core; /* whether spec.hard names the resource */
} Quota;

/* Whether a key of spec.hard ends in the resource's name. Kubernetes counts "requests.NAME" alone
 * for extended resources; the API server also accepts NAME and "limits.NAME", which mean the same
 * to their author. */
static bool names_resource(Str key, const char *resource) {
        size_t len = strlen(resource);

        return key.len >= len && memcmp(key.data + key.len - len, resource, len) == 0;
}

static void read_hard(JsonReader *r, Arena *arena, void *ret_quota) {
        Quota *q = ret_quota;
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                q->mem |= names_resource(key, RESOURCE_GPU_MEM);
                q->core |= names_resource(key, RESOURCE_GPU_CORE);
                json_skip(r);
        }
}

static const JsonField meta_fields[] = {JSON_FIELD(Quota, name, "name", json_field_str)};
JSON_DECODER(read_meta, meta_fields)

static const JsonField spec_fields[] = {JSON_NESTED("hard", read_hard)};
JSON_DECODER(read_spec, spec_fields)

static const JsonField quota_fields[] = {
        JSON_NESTED("metadata", read_meta),
        JSON_NESTED("spec", read_spec),
};

typedef struct Search {
        Arena *arena;
        bool mem, core; /* the resources that are to grow */
        Str found;
} Search;

static int visit_quota(void *userdata, Str item) {
        Search *s = userdata;
        Quota q = {.mem = false};
        int e = json_field_read(item, s->arena, quota_fields, ELEMENTSOF(quota_fields), &q, NULL);

        if (e == 0 && str_is_empty(s->found) && ((q.mem && s->mem) || (q.core && s->core)))
                s->found = str_is_empty(q.name) ? STR("?") : q.name;
        return e > 0 ? GROWTH_WISH_E_MALFORMED : e;
}

int growth_wish_quota(Str list, bool mem, bool core, Arena *arena, Str *ret_name, Fault *fault) {
        Search s = {.arena = arena, .mem = mem, .core = core};
        int r = list_items_each(list, visit_quota, &s, fault);

        *ret_name = s.found;
        return r;
}
