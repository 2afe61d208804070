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
        void (*wake)(void *userdata); /* has MHD_run() called soon */
        void *userdata;
        struct HttpHandshake *running; /* handshakes to be suspended after this turn */
} HttpHandshakes;

/* Part of a connection. All functions do nothing for one without TLS. */
typedef struct HttpHandshake {
        struct HttpHandshake *next, **link; /* NULL link: suspended, or over */
        HttpHandshakes *owner;              /* NULL: over */
        struct MHD_Connection *connection;
        sd_event_source *watch; /* resumes a suspended one when its socket is ready */
} HttpHandshake;

/* Begins to track the handshake of a new connection. *x is zeroed, and must not move before
 * http_handshake_end(). */
void http_handshake_begin(HttpHandshakes *h, HttpHandshake *x, struct MHD_Connection *connection);
/* Ends the tracking, and resumes a suspended connection. Call it when the connection ends, or
 * before it is closed. */
void http_handshake_end(HttpHandshake *x);

/* Call it after each turn of libmicrohttpd. Without memory a handshake is not suspended. */
void http_handshakes_suspend(HttpHandshakes *h);
