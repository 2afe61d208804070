/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch is a place in the history, and nothing is queued for it: who has room reads on from
 * there. A watcher that falls behind what is remembered gets 410 and lists again, as with etcd; so
 * a slow one costs no memory. */

#include "local/apiserver/rest.h"

typedef struct StoreWatch {
        StoreObjects *objects;
        const StoreKind *kind;
        StoreSelector selector;
        uint64_t position; /* the last number that has been read; while listing: the moment that is listed */
        bool listing;      /* no resourceVersion was given: first what there is, as ADDED */
        bool ended;        /* an ERROR has been written, nothing follows */
        bool bookmarks;
        uint64_t timeout; /* seconds, 0: none asked for */
        Buf behind;       /* the last key that was listed */
} StoreWatch;

bool store_is_watch(const StoreCall *call, StoreRoute *ret_route);

/* False after a refusal. The watch must be done with store_watch_done() in either case. */
bool store_watch_init(StoreWatch *w, StoreApi *a, const StoreRoute *route, const StoreCall *call,
                      StoreReply *reply);
void store_watch_done(StoreWatch *w);

/* Appends events, one line each, until `out` holds `room` bytes (the last one may go over) or the
 * present is reached. */
void store_watch_read(StoreWatch *w, Buf *out, size_t room);
void store_watch_bookmark(StoreWatch *w, Buf *out); /* nothing while it lists */
