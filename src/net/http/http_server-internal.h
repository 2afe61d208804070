/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What exchanges and streams see of their server. http_server.c writes all of it, except for the
 * list of exchanges and the sum of their bodies, which http_exchange.c keeps. */

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "net/http/http_connections.h"
#include "net/http/http_server.h"
#include "net/http/tls.h"

struct HttpServer {
        struct MHD_Daemon *daemon;
        sd_event *event;
        sd_event_source *io, *timer, *wake;
        HttpConnections connections;
        HttpHandler handler;
        void *userdata;
        HttpExchange *exchanges;
        size_t max_body, bodies; /* of one request; of all current requests */
        usec_t armed;            /* when the timer fires */
        uint16_t port;
        bool closing, ending; /* the server closes; each connection ends after its next answer */
        TlsPair tls;
};

/* libmicrohttpd has a turn at once, although none of its descriptors is ready. */
void http_server_wake(HttpServer *s);
