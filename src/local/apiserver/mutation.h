/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What creates, updates, patches, bindings and deletions have in common. Each reads what it is
 * about, composes the object's next text under the next number, and commits it. Until the commit
 * nothing has happened, so that every refusal is a plain return. */

#include "local/apiserver/rest.h"
#include "local/apiserver/validation.h"

typedef struct Mutation {
        StoreApi *api;
        const StoreRoute *route;
        StoreReply *reply;
        const StoreVersion *old; /* NULL in a create */
        Str key;
        StoreIdentity id;
} Mutation;

/* Finds the object; false after a 404. */
bool mutation_begin(Mutation *c);

/* kind and apiVersion may be absent, but not different; false after a 400. */
bool mutation_is_of_kind(Mutation *c, Str object);

/* Turns the result of a store_validate function into true, or an answer and false. */
bool mutation_valid(Mutation *c, int result, const StoreViolation *v);

/* Composes and commits; the object becomes the answer. An update that changes nothing takes no
 * number, as in the API server. */
void mutation_commit(Mutation *c, StoreChange change, Str metadata, Str base, Str status, unsigned code);

/* Commits a text. There is room for the answer first, so that what was carried out is never
 * answered by 500. */
int mutation_store(Mutation *c, StoreChange change, Str text);

void mutation_refuse_request(Mutation *c, const char *message); /* 400 */
void mutation_refuse_conflict(Mutation *c, const char *why);    /* 409 */
void mutation_refuse_uid(Mutation *c, Str wanted);              /* 409 */
