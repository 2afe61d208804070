/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS handshakes that wait for their peer. libmicrohttpd (0.9.75 to 1.0.1, MHD_run_tls_handshake_)
 * does not note that a handshake found no byte, and tries it again at every turn, as long as it
 * lasts. A thousand of them make each turn slow. After a turn, those that are not over are
 * therefore suspended, and resumed when their socket has something.
 *
 * libmicrohttpd documents suspending as safe in two of its callbacks only. Its source shows that
 * the lists of connections are used within MHD_run() alone, so that between two turns of one thread
 * it is safe as well. */

#include <microhttpd.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct HttpHandshakes {
        sd_event *event;
        void (*wake)(void *userdata); /* gives libmicrohttpd a turn */
        void *userdata;
        struct HttpHandshake *running; /* since the last turn */
} HttpHandshakes;

/* Part of a connection. All functions do nothing for one without TLS. */
typedef struct HttpHandshake {
        struct HttpHandshake *next, **link; /* NULL link: suspended, or over */
        HttpHandshakes *owner;              /* NULL: over */
        struct MHD_Connection *connection;
        sd_event_source *watch; /* of a suspended one */
} HttpHandshake;

/* *x is zero, and stays in place. */
void http_handshake_begin(HttpHandshakes *h, HttpHandshake *x, struct MHD_Connection *connection);
/* The connection ends, or is about to: it is not suspended any more. */
void http_handshake_end(HttpHandshake *x);

/* Call it after each turn of libmicrohttpd. Without memory a handshake is not suspended. */
void http_handshakes_suspend(HttpHandshakes *h);
