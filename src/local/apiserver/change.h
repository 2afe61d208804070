/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What creates, updates, patches, bindings and deletions have in common. Each reads what it is
 * about, composes the object's next text under the next number, and commits it. Until the commit
 * nothing has happened, so that every refusal is a plain return. */

#include "local/apiserver/api.h"
#include "local/apiserver/valid.h"

typedef struct Change {
        StoreApi *api;
        const StoreRoute *route;
        StoreReply *reply;
        const StoreVersion *old; /* NULL in a create */
        Str key;
        StoreIdentity id;
} Change;

/* Finds the object; false after a 404. */
bool change_begin(Change *c);

/* kind and apiVersion may be absent, but not different; false after a 400. */
bool change_is_of_kind(Change *c, Str object);

/* Turns the result of a store_validate function into true, or an answer and false. */
bool change_valid(Change *c, int result, const StoreViolation *v);

/* Composes and commits; the object becomes the answer. An update that changes nothing takes no
 * number, as in the API server. */
void change_commit(Change *c, StoreChange change, Str metadata, Str base, Str status, unsigned code);

/* Commits a text. There is room for the answer first, so that what was carried out is never
 * answered by 500. */
int change_store(Change *c, StoreChange change, Str text);

void change_refuse_request(Change *c, const char *message); /* 400 */
void change_refuse_conflict(Change *c, const char *why);    /* 409 */
void change_refuse_uid(Change *c, Str wanted);              /* 409 */
