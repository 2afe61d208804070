/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What create, update, patch, bind and delete share. Each reads the object, composes its next text
 * under the next number, and commits it. Before the commit nothing has changed, so every refusal is
 * a plain return. */

#include "local/apiserver/rest.h"
#include "local/apiserver/validation.h"

typedef struct Mutation {
        StoreApi *api;
        const StoreRoute *route;
        StoreReply *reply;
        const StoreVersion *old; /* NULL for a create */
        Str key;
        StoreIdentity id;
} Mutation;

/* Finds the object. Returns false after answering 404, or 500 when out of memory. */
bool mutation_begin(Mutation *c);

/* Checks kind and apiVersion, which may be absent but not wrong. Returns false after
 * answering 400. */
bool mutation_is_of_kind(Mutation *c, Str object);

/* Takes the result of a store_validate function. Returns true, or false after answering. */
bool mutation_valid(Mutation *c, int result, const StoreViolation *v);

/* Composes the text and commits it; the object becomes the answer. An update without a change takes
 * no number, as in the API server. */
void mutation_commit(Mutation *c, StoreChange change, Str metadata, Str base, Str status, unsigned code);

/* Commits a text. Memory for the answer is reserved first, so that a change that was carried out is
 * never answered by 500. Returns 0 or -ENOMEM. */
int mutation_store(Mutation *c, StoreChange change, Str text);

void mutation_refuse_request(Mutation *c, const char *message); /* 400 */
void mutation_refuse_conflict(Mutation *c, const char *why);    /* 409 */
void mutation_refuse_uid(Mutation *c, Str wanted);              /* 409 */
