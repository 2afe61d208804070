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
        size_t max_body, bodies; /* bytes: the limit for one body; all bodies now */
        usec_t armed;            /* time at which the timer fires */
        uint16_t port;
        bool closing, ending; /* the server closes; each connection ends after its next answer */
        TlsPair tls;
};

/* Has MHD_run() called in the next turn of the loop, although no descriptor of libmicrohttpd is
 * ready. */
void http_server_wake(HttpServer *s);
