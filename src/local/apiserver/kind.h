/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources the store knows, and what distinguishes them. Everything else about an object is
 * its text. */

#include "base/str.h"

enum { STORE_SELECTABLE_MAX = 7 };

typedef struct StoreKind {
        Str group, plural, kind; /* group "" is the core; every version is v1 */
        Str api_version;
        Str head; /* how each stored object begins; left out of the items of a list, as the API server does */
        const char *singular, *short_name;
        bool namespaced;
        bool status; /* has the /status subresource: the main resource then keeps its hands off it */
        bool must_name_version; /* an update without resourceVersion is refused */
        const char
                *selectable[STORE_SELECTABLE_MAX]; /* field selectors beside metadata.name and .namespace */
} StoreKind;

enum { STORE_N_KINDS = 16 };

extern const StoreKind store_kinds[STORE_N_KINDS];

static inline size_t store_kind_index(const StoreKind *kind) {
        return (size_t) (kind - store_kinds);
}

/* Pods have rules of their own: bindings, defaults, grace, a spec that is fixed. */
static inline bool store_kind_is_pod(const StoreKind *kind) {
        return str_eq(kind->plural, STR("pods"));
}

/* NULL when unknown. */
const StoreKind *store_kind_by_plural(Str group, Str plural);
const StoreKind *store_kind_by_kind(Str api_version, Str kind);

/* "pods", "deployments.apps": how the API server's messages name a resource. */
void store_kind_qualified(const StoreKind *kind, char *into, size_t size);
