/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch is a position in the history; nothing is queued for it. The connection reads on whenever
 * it has room. A watch that falls behind the remembered history gets 410 and its client lists
 * again, as with etcd, so a slow client costs no memory. */

#include "local/apiserver/rest.h"

typedef struct StoreWatch {
        StoreObjects *objects;
        const StoreKind *kind;
        StoreSelector selector;
        /* the last resourceVersion that was read; while listing: that of the list */
        uint64_t position;
        bool listing; /* no resourceVersion was given: existing objects come first, as ADDED */
        bool ended;   /* an ERROR was written, nothing follows */
        bool bookmarks;
        uint64_t timeout; /* seconds; 0: none */
        Buf behind;       /* the last key that was listed */
} StoreWatch;

bool store_is_watch(const StoreCall *call, StoreRoute *ret_route);

/* Returns false after a refusal. Call store_watch_done() in either case. */
bool store_watch_init(StoreWatch *w, StoreApi *a, const StoreRoute *route, const StoreCall *call,
                      StoreReply *reply);
void store_watch_done(StoreWatch *w);

/* Appends events, one line each, until `out` holds `room` bytes (the last event may exceed it) or
 * the present is reached. */
void store_watch_read(StoreWatch *w, Buf *out, size_t room);
void store_watch_bookmark(StoreWatch *w, Buf *out); /* writes nothing while it lists */
