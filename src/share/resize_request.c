/* SPDX-License-Identifier: Apache-2.0 */
#include "share/resize_request.h"

#include <errno.h>
#include <stdlib.h>

#include "wire/annotation.h"
#include "wire/json.h"
#include "wire/resize_keys.h"

enum { VALUE_SHOWN = 64, CORE_STEP = 5 };

/* One of the two annotations. */
typedef struct Key {
        const char *name, *resource;
        bool is_core;
} Key;

static uint32_t limit_of(const Key *key, const ResizeLimit *l) {
        return key->is_core ? l->core : l->mem;
}

static uint32_t *size_of(const Key *key, ResizeSize *s) {
        return key->is_core ? &s->core : &s->mem;
}

/* The smallest amount that check_amount() accepts. */
static uint32_t least_of(const Key *key, const ResizeLimit *l) {
        if (key->is_core)
                return CORE_STEP;
        return l->cards > 1 ? l->cards : 1;
}

static int check_amount(const Key *key, const ResizeLimit *l, uint64_t amount, Fault *fault) {
        unsigned long long shown = amount;

        if (amount == 0)
                return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                                 "annotation %s gives container %u (\"%.*s\") 0, must be %u at least",
                                 key->name, l->index, STR_ARG(l->name), least_of(key, l));
        if (amount > (l->grows ? UINT32_MAX : limit_of(key, l)))
                return fault_set(
                        fault, RESIZE_REQUEST_E_REFUSED,
                        "annotation %s gives container %u (\"%.*s\") %llu, and its limit of %s is %u: "
                        "a slice does not grow beyond its limit",
                        key->name, l->index, STR_ARG(l->name), shown, key->resource, limit_of(key, l));
        if (key->is_core && amount % CORE_STEP != 0)
                return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                                 "annotation %s gives container %u (\"%.*s\") %llu, must be a multiple of %d",
                                 key->name, l->index, STR_ARG(l->name), shown, CORE_STEP);
        if (!key->is_core && l->cards > 1 && amount % l->cards != 0 && amount != l->mem)
                return fault_set(
                        fault, RESIZE_REQUEST_E_REFUSED,
                        "annotation %s gives container %u (\"%.*s\") %llu, must be a multiple of its "
                        "%u cards",
                        key->name, l->index, STR_ARG(l->name), shown, l->cards);
        return 0;
}

static int malformed_key(const Key *key, Str text, Fault *fault) {
        return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                         "annotation %s is \"%.*s\", must be a whole number, or one for each container as "
                         "{\"0\":6}",
                         key->name, STR_CUT(text, VALUE_SHOWN));
}

/* Reads a number without an index, which is for the only container with such a limit. */
static int read_number(const Key *key, Str text, const ResizeLimit *limits, size_t n, ResizeSize *sizes,
                       Fault *fault) {
        size_t found = 0, at = 0;
        uint64_t amount;
        int r;

        if (!str_to_u64(text, &amount))
                return malformed_key(key, text, fault);
        for (size_t i = 0; i < n; i++)
                if (limit_of(key, &limits[i]) > 0) {
                        at = i;
                        found++;
                }
        if (found != 1)
                return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                                 "annotation %s is \"%.*s\", and %zu containers of the pod have a limit of "
                                 "%s: %s",
                                 key->name, STR_CUT(text, VALUE_SHOWN), found, key->resource,
                                 found > 1 ? "it must name each as {\"0\":6}" : "there is nothing to resize");
        r = check_amount(key, &limits[at], amount, fault);
        if (r == 0)
                *size_of(key, &sizes[at]) = (uint32_t) amount;
        return r;
}

/* Reads the amount of one container. named: the containers that the annotation has named so far. */
static int read_member(const Key *key, Str index, uint64_t amount, const ResizeLimit *limits, size_t n,
                       ResizeSize *sizes, bool *named, Fault *fault) {
        uint32_t number;
        int r;

        for (size_t i = 0; str_to_u32(index, &number) && i < n; i++) {
                if (limits[i].index != number || limit_of(key, &limits[i]) == 0)
                        continue;
                if (named[i])
                        return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                                         "annotation %s names container %u twice", key->name, number);
                named[i] = true;
                r = check_amount(key, &limits[i], amount, fault);
                if (r == 0)
                        *size_of(key, &sizes[i]) = (uint32_t) amount;
                return r;
        }
        return fault_set(fault, RESIZE_REQUEST_E_REFUSED,
                         "annotation %s names container %.*s, which has no limit of %s", key->name,
                         STR_CUT(index, VALUE_SHOWN), key->resource);
}

static int read_object(const Key *key, Str text, const ResizeLimit *limits, size_t n, ResizeSize *sizes,
                       bool *named, Fault *fault) {
        JsonReader reader;
        Str index;
        int r = 0, e;

        json_init(&reader, text);
        if (json_object_begin(&reader))
                while (r == 0 && json_object_next(&reader, &index)) {
                        uint64_t amount = 0;

                        json_u64(&reader, &amount);
                        if (!json_failed(&reader))
                                r = read_member(key, index, amount, limits, n, sizes, named, fault);
                }
        if (r != 0)
                return r;
        e = json_finish(&reader, NULL);
        return e > 0 ? malformed_key(key, text, fault) : e;
}

static int read_key(const Key *key, Str text, const ResizeLimit *limits, size_t n, ResizeSize *sizes,
                    Fault *fault) {
        _cleanup_free_ bool *named = NULL;

        text = str_trim(text);
        if (str_is_empty(text))
                return 0;
        if (text.data[0] != '{')
                return read_number(key, text, limits, n, sizes, fault);
        named = calloc(n > 0 ? n : 1, sizeof *named);
        return named ? read_object(key, text, limits, n, sizes, named, fault) : -ENOMEM;
}

int resize_request_read(Str mem, Str core, const ResizeLimit *limits, size_t n, ResizeSize *ret,
                        Fault *fault) {
        static const Key mem_key = {ANNOTATION_RESIZE_MEM, RESOURCE_GPU_MEM, false},
                         core_key = {ANNOTATION_RESIZE_CORE, RESOURCE_GPU_CORE, true};
        _cleanup_free_ ResizeSize *sizes = calloc(n > 0 ? n : 1, sizeof *sizes);
        int r;

        if (!sizes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sizes[i] = (ResizeSize){limits[i].mem, limits[i].core};
        r = read_key(&mem_key, mem, limits, n, sizes, fault);
        if (r == 0)
                r = read_key(&core_key, core, limits, n, sizes, fault);
        for (size_t i = 0; r == 0 && i < n; i++)
                ret[i] = sizes[i];
        return r;
}
