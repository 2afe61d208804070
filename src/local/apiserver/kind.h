/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that the server knows, and how they differ. All other data of an object is its
 * text. */

#include "base/str.h"

enum { STORE_SELECTABLE_MAX = 7 };

typedef struct StoreKind {
        Str group, plural, kind; /* group "" is the core */
        Str version;             /* v1 when empty */
        Str api_version;
        /* how each stored object begins; items of a list omit it, as in the API server */
        Str head;
        const char *singular, *short_name;
        bool namespaced;
        /* has the /status subresource; the main resource then ignores status */
        bool status;
        bool must_name_version; /* an update without resourceVersion is refused */
        /* field selectors besides metadata.name and .namespace */
        const char *selectable[STORE_SELECTABLE_MAX];
} StoreKind;

enum { STORE_N_KINDS = 18 };

extern const StoreKind store_kinds[STORE_N_KINDS];

static inline size_t store_kind_index(const StoreKind *kind) {
        return (size_t) (kind - store_kinds);
}

/* Pods have rules of their own: bindings, defaults, grace period, immutable spec. */
static inline bool store_kind_is_pod(const StoreKind *kind) {
        return str_eq(kind->plural, STR("pods"));
}

/* Find a kind by its resource, or by the `kind` of an object; NULL when unknown. */
const StoreKind *store_kind_by_plural(Str group, Str plural);
const StoreKind *store_kind_by_kind(Str api_version, Str kind);

static inline Str store_kind_version(const StoreKind *kind) {
        return str_is_empty(kind->version) ? STR("v1") : kind->version;
}

/* "pods", "deployments.apps": the name of a resource in the API server's messages. */
void store_kind_qualified(const StoreKind *kind, char *into, size_t size);
