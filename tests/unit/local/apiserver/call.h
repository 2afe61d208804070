/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of the pure API, with the query in the path. */

#include "local/apiserver/watch.h"

typedef struct StoreQuery {
        struct {
                char name[32], value[256];
        } parameters[8];
        size_t n;
        char path[512];
} StoreQuery;

static inline const char *store_query_find(void *userdata, const char *name) {
        StoreQuery *q = userdata;

        for (size_t i = 0; i < q->n; i++)
                if (strcmp(q->parameters[i].name, name) == 0)
                        return q->parameters[i].value;
        return NULL;
}

static inline void store_query_copy(char *into, size_t size, Str text) {
        size_t n = text.len < size - 1 ? text.len : size - 1;

        if (n > 0)
                memcpy(into, text.data, n);
        into[n] = '\0';
}

static inline StoreCall store_call(StoreQuery *q, const char *method, const char *url, Str body) {
        Str query = str_from(url);

        *q = (StoreQuery){0};
        store_query_copy(q->path, sizeof q->path, str_split(&query, '?'));
        for (; query.len > 0 && q->n < ELEMENTSOF(q->parameters); q->n++) {
                Str value = str_split(&query, '&');

                store_query_copy(q->parameters[q->n].name, sizeof q->parameters[0].name,
                                 str_split(&value, '='));
                store_query_copy(q->parameters[q->n].value, sizeof q->parameters[0].value, value);
        }
        return (StoreCall){
                .method = method,
                .path = q->path,
                .content_type = strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : "",
                .body = body,
                .query = store_query_find,
                .userdata = q,
        };
}
