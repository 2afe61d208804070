/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the server share: store.c (the store and its life), http.c (requests) and
 * stream.c (watches and their connections). */

#include "base/clock.h"
#include "local/apiserver/store.h"
#include "local/apiserver/watch.h"
#include "net/http/http_server.h"

typedef struct StoreStream StoreStream;   /* a watch and its connection */
typedef struct StoreDelayed StoreDelayed; /* a request that a fault holds back */

struct Store {
        sd_event *event;
        sd_event_source *pump; /* enabled while streams have something to read */
        HttpServer *server;    /* NULL while the store has vanished */
        char *listen, *url;
        StoreApi api;
        StoreFaults faults;
        StoreStream *streams;
        StoreDelayed *delayed;
};

/* In http.c: an HttpHandler. */
void store_handle(void *userdata, HttpExchange *x, const HttpRequest *request);

/* In store.c: call it after anything that may have changed objects. */
void store_touch(Store *s);

/* In stream.c: answers x with the events of the watch, which it owns from now on, also on failure.
 * path: for faults. */
void store_stream_new(Store *s, HttpExchange *x, const char *path, StoreWatch *watch);
void store_streams_pump(Store *s);
