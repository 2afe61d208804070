/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects in all the versions that somebody may still ask for, as etcd keeps them. There is one
 * counter; every change takes the next number and makes one version. The last `history` versions in
 * the order of their numbers are what watches read; the versions of one object, newest first, are
 * what a list at an older resourceVersion reads. Pages of one list thus show one moment, however
 * long the reader takes, until that moment is forgotten: then both get 410.
 *
 * Pure: no clock, no sockets. */

#include "base/cleanup.h"
#include "local/apiserver/kind.h"

typedef struct StoreEntry StoreEntry;

typedef enum StoreChange { STORE_CREATED, STORE_MODIFIED, STORE_DELETED } StoreChange;

typedef struct StoreVersion {
        uint64_t number; /* resourceVersion */
        StoreEntry *entry;
        struct StoreVersion *older; /* NULL also when it has been forgotten */
        StoreChange change;
        Str line; /* the watch event as it goes out: {"type":"ADDED","object":{...}} and a newline */
        Str text; /* the object in it; of a deletion: its last state */
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

/* The number of the last change (1 before the first), and the oldest moment that is still
 * remembered. */
uint64_t store_version(const StoreObjects *o);
uint64_t store_horizon(const StoreObjects *o);
size_t store_count(const StoreObjects *o, const StoreKind *kind);

/* The object as it is now; NULL when there is none. */
StoreVersion *store_find(const StoreObjects *o, const StoreKind *kind, Str key);

/* The first entry at or behind `key`, for walks by next[0]; and what an entry was at a moment, NULL
 * when nothing. */
StoreEntry *store_seek(const StoreObjects *o, const StoreKind *kind, Str key);
StoreVersion *store_at(const StoreEntry *entry, uint64_t number);

/* The change that took this number; NULL when it is forgotten or has not happened. */
StoreVersion *store_event(const StoreObjects *o, uint64_t number);

/* Takes the next number. The text must carry that number already; it is copied. The caller has
 * looked: CREATED needs that there is no such object, the others that there is. Returns 0 or
 * -ENOMEM, and nothing happened. */
int store_commit(StoreObjects *o, const StoreKind *kind, Str key, StoreChange change, Str text);

/* Only the present remains; every earlier number is forgotten. */
void store_objects_forget(StoreObjects *o);

DEFINE_CLEANUP(StoreObjects *, store_objects_free)
