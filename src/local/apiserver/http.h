/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The store as its own files see it: the API, the server that speaks it, and who is connected. */

#include "base/clock.h"
#include "local/apiserver/fault.h"
#include "local/apiserver/watch.h"
#include "net/http/server.h"

typedef struct StoreStream StoreStream;   /* a watch and its connection */
typedef struct StoreDelayed StoreDelayed; /* a request that a fault holds back */

struct Store {
        sd_event *event;
        sd_event_source *pump; /* on when streams have something to read */
        HttpServer *server;    /* NULL while the store has vanished */
        char *listen, *url;
        StoreApi api;
        StoreFaults faults;
        StoreStream *streams;
        StoreDelayed *delayed;
};

void store_handle(void *userdata, HttpExchange *x, const HttpRequest *request); /* HttpHandler */

/* After anything that may have changed objects. */
void store_touch(Store *s);

/* Takes the watch over; it is done also when this fails. */
void store_stream_new(Store *s, HttpExchange *x, const char *path, StoreWatch *watch);
void store_streams_pump(Store *s);
