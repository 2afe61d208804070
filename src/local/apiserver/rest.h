/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The REST API: one request in, one answer out, as the API server gives it; watches are in watch.h.
 * No sockets and no clock, so that tests and the fuzzer call it directly. Each verb has its file:
 * bind.c, create.c, delete.c, patch.c, read.c (get and list) and update.c; discovery.c answers what
 * the server serves, status_reply.c writes refusals. */

#include "local/apiserver/object_versions.h"
#include "local/apiserver/selector.h"

enum { STORE_BODY_MAX = 3 * 1024 * 1024 }; /* the API server's limit on a request body */

typedef struct StoreCall {
        const char *method, *path, *content_type; /* content_type "" when absent */
        Str body;
        const char *(*query)(void *userdata, const char *name); /* NULL when absent */
        void *userdata;
} StoreCall;

typedef struct StoreReply {
        unsigned status;
        Buf body;      /* JSON; when it is broken, the answer is 500 without a body */
        Fault message; /* of a refusal, for callers in this process */
} StoreReply;

#define STORE_REPLY_NULL ((StoreReply){.body = BUF_NULL})

typedef struct StoreRoute {
        const StoreKind *kind;
        Str namespace_, name, subresource; /* empty when the path has none */
} StoreRoute;

typedef struct StoreApi {
        StoreObjects *objects;
        /* seconds since the epoch, set by the owner before each call */
        uint64_t now;
        uint64_t seed;                  /* seed of UIDs and generated names */
        Arena arena;                    /* memory of one call */
        Buf admitted, merged, composed; /* texts of one call; their memory is kept */
} StoreApi;

int store_api_init(StoreApi *a, size_t history, uint64_t seed);
void store_api_done(StoreApi *a);

/* Appends the answer to *reply, which must be empty. */
void store_answer(StoreApi *a, const StoreCall *call, StoreReply *reply);

/* Creates an object from a manifest, by its kind and namespace. */
void store_answer_apply(StoreApi *a, Str manifest, StoreReply *reply);

/* Returns false when the path is no resource of ours. */
bool store_route(const char *path, StoreRoute *ret);
const char *store_query(const StoreCall *call, const char *name);
bool store_query_is_true(const StoreCall *call, const char *name);

/* The rest is shared by the files of the API. */

/* Write a Status object. kind may be NULL, name empty. */
void store_refuse(StoreReply *reply, unsigned code, const char *reason, const StoreKind *kind, Str name,
                  const char *format, ...) _printf_(6, 7);
void store_refuse_invalid(StoreReply *reply, const StoreKind *kind, Str name, const char *field,
                          const char *reason, const char *rule);
void store_refuse_broken(StoreReply *reply, int error);
void store_refuse_not_found(StoreReply *reply, const StoreKind *kind, Str name);
void store_refuse_expired(StoreReply *reply, const char *message);

/* The verbs. Bodies are admitted text; store_update() is PUT. */
void store_get(StoreApi *a, const StoreRoute *route, StoreReply *reply);
void store_list(StoreApi *a, const StoreRoute *route, const StoreCall *call, StoreReply *reply);
void store_create(StoreApi *a, const StoreRoute *where, Str object, StoreReply *reply);
void store_update(StoreApi *a, const StoreRoute *route, Str object, StoreReply *reply);
void store_patch(StoreApi *a, const StoreRoute *route, Str patch, bool strategic, StoreReply *reply);
void store_delete(StoreApi *a, const StoreRoute *route, const StoreCall *call, Str body, StoreReply *reply);
void store_bind(StoreApi *a, const StoreRoute *route, Str binding, StoreReply *reply);
bool store_discover(const char *path, StoreReply *reply); /* false: not a discovery path */

/* NAMESPACE/NAME or NAME; data NULL when out of memory. */
Str store_key(StoreApi *a, const StoreRoute *route);
Str store_time(uint64_t seconds, Arena *arena); /* RFC 3339 */
