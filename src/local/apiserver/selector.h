/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Selects the objects of a list or a watch: namespace, labelSelector, fieldSelector. */

#include "local/apiserver/text.h"

typedef enum StoreTest { STORE_TEST_IN, STORE_TEST_NOT_IN, STORE_TEST_EXISTS, STORE_TEST_ABSENT } StoreTest;

typedef struct StoreRequirement {
        char *key; /* a label, or a dotted field */
        StoreTest test;
        Str *values;
        size_t n_values;
} StoreRequirement;

enum { STORE_REQUIREMENTS_MAX = 64 };

typedef struct StoreSelector {
        Arena arena;
        Str key_prefix; /* "NAMESPACE/"; empty: every namespace */
        StoreRequirement *labels, *fields;
        size_t n_labels, n_fields;
} StoreSelector;

#define STORE_SELECTOR_NULL ((StoreSelector){.arena = ARENA_NULL})

enum { STORE_SELECTOR_E_MALFORMED = 1 };

/* Selectors may be NULL. Returns 0, STORE_SELECTOR_E_MALFORMED with the API server's message, or
 * -ENOMEM. */
int store_selector_init(StoreSelector *s, const StoreKind *kind, Str namespace_, const char *label_selector,
                        const char *field_selector, Fault *fault);
void store_selector_done(StoreSelector *s);

bool store_selector_matches_key(const StoreSelector *s, Str key);
bool store_selector_matches(const StoreSelector *s, Str key, Str object);
