/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects in all the versions that may still be requested, as in etcd. There is one counter; every
 * change takes the next number and makes one version.
 *
 * Watches read the last `history` versions in the order of their numbers. A list at an older
 * resourceVersion reads the versions of each object, newest first. All pages of a list therefore
 * show one moment, until that moment is forgotten; then lists and watches get 410.
 *
 * Pure: no clock, no sockets. */

#include "base/cleanup.h"
#include "local/apiserver/kind.h"

typedef struct StoreEntry StoreEntry;

typedef enum StoreChange { STORE_CREATED, STORE_MODIFIED, STORE_DELETED } StoreChange;

typedef struct StoreVersion {
        uint64_t number; /* resourceVersion */
        StoreEntry *entry;
        struct StoreVersion *older; /* NULL also when it is forgotten */
        StoreChange change;
        /* the watch event as sent: {"type":"ADDED","object":{...}} and a newline */
        Str line;
        Str text; /* the object in it; for a deletion its last state */
        char bytes[];
} StoreVersion;

struct StoreEntry {
        const StoreKind *kind;
        Str key; /* NAMESPACE/NAME, or NAME; compared by bytes, as etcd's keys are */
        StoreVersion *newest;
        unsigned height;
        StoreEntry *next[]; /* skip list in key order */
};

typedef struct StoreObjects StoreObjects;

int store_objects_new(size_t history, StoreObjects **ret); /* 0 or -ENOMEM */
StoreObjects *store_objects_free(StoreObjects *o);

/* store_version(): the number of the last change (1 before the first). store_horizon(): the oldest
 * number that can still be read. */
uint64_t store_version(const StoreObjects *o);
uint64_t store_horizon(const StoreObjects *o);

/* The current object; NULL when there is none. */
StoreVersion *store_find(const StoreObjects *o, const StoreKind *kind, Str key);

/* store_seek(): the first entry at or after `key`, to walk from by next[0]. store_at(): the state
 * of an entry at a number, NULL when it did not exist. */
StoreEntry *store_seek(const StoreObjects *o, const StoreKind *kind, Str key);
StoreVersion *store_at(const StoreEntry *entry, uint64_t number);

/* The change of this number; NULL when it is forgotten or in the future. */
StoreVersion *store_event(const StoreObjects *o, uint64_t number);

/* Commits a change under the next number. The text must carry that number; it is copied. The caller
 * has checked that the object exists, or for CREATED that it does not. Returns 0, or -ENOMEM: no
 * object has changed, but the oldest version may be forgotten. */
int store_commit(StoreObjects *o, const StoreKind *kind, Str key, StoreChange change, Str text);

/* Forgets every state but the current one. */
void store_objects_forget(StoreObjects *o);

DEFINE_CLEANUP(StoreObjects *, store_objects_free)
