/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The connections of a server: how long each may stay in a state, how many there may be, and which
 * one is closed when there are too many.
 *
 *     state       since                                      closed
 *     fresh       it was accepted; no request was whole yet  after `first`
 *     idle        the last answer ended                      after `idle`; in a drain after 1 s
 *     receiving   the head of another request is whole       after `next`
 *     sending     the answer waits for the peer              when no byte goes (libmicrohttpd)
 *     busy        the request is whole and has no answer     never
 *
 * Where its address has too many connections, without the busy ones, or the server has, a new
 * connection is accepted and another one closed. That is the oldest fresh one, of the address or of
 * all. So a peer that sends its request at once is not cut. While at most half of the places are
 * fresh, the oldest one that is idle, receiving or sending is closed instead. One request on each
 * connection therefore does not keep new peers out, and a client can open a closed idle connection
 * again. The new connection itself is refused only when all others are busy.
 *
 * libmicrohttpd has an option for the connections of an address, but it closes the new one. */

#include <microhttpd.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/told.h"
#include "net/http/http_handshake.h"

/* Why a connection was closed before its time. One list: enum, label of the metric. */
#define HTTP_CLOSED_LIST(X)                                                                                  \
        X(ADDRESS, "address")   /* its address had too many */                                               \
        X(LISTENER, "listener") /* the server had too many */                                                \
        X(REFUSED, "refused")   /* the same, all others were being answered, and this was the new one */     \
        X(LATE, "late")         /* no whole request in time */

typedef enum HttpClosed {
#define X(name, label) HTTP_CLOSED_##name,
        HTTP_CLOSED_LIST(X)
#undef X
                HTTP_CLOSED_MAX_,
} HttpClosed;

const char *http_connections_closed_to_string(HttpClosed rule);

typedef enum HttpConnectionState {
        HTTP_CONNECTION_FRESH, /* accepted, and no whole request yet; includes the TLS handshake */
        HTTP_CONNECTION_IDLE,
        HTTP_CONNECTION_RECEIVING,
        HTTP_CONNECTION_SENDING,
        /* its request is whole and has no answer yet, or it carries a stream */
        HTTP_CONNECTION_BUSY,
        HTTP_CONNECTION_STATES_,
} HttpConnectionState;

typedef struct HttpConnectionsOptions {
        const char *name; /* name of the listener, for the text of on_limit */
        usec_t first, idle, next;
        unsigned max, max_of_address;                       /* each at least 1 */
        void (*on_limit)(void *userdata, const char *text); /* at most once a minute; may be NULL */
        void *userdata;
} HttpConnectionsOptions;

typedef struct HttpConnections {
        HttpConnectionsOptions o;
        struct HttpConnectionList {
                /* oldest first, by the time of entering this state */
                struct HttpConnection *first, **end;
                unsigned n;
        } lists[HTTP_CONNECTION_STATES_];
        HttpHandshakes handshakes;
        struct HttpPeer *peers; /* the addresses that have connections */
        sd_event_source *source;
        usec_t armed; /* when the source fires; 0: it is off */
        Told told;    /* when on_limit was last called */
        bool draining;
        uint64_t closed[HTTP_CLOSED_MAX_];
} HttpConnections;

/* Ready for connections; none is closed by time before _join(). */
void http_connections_init(HttpConnections *c, const HttpConnectionsOptions *options);
/* Adds the timer for deadlines to the loop. wake: has MHD_run() called soon. Returns 0, or the
 * negative errno of sd-event. */
int http_connections_join(HttpConnections *c, sd_event *event, void (*wake)(void *userdata), void *userdata);
/* Resumes the connections that wait for their handshake. Call it before libmicrohttpd stops. */
void http_connections_resume(HttpConnections *c);
/* Call it after libmicrohttpd has stopped, and so has ended all connections. */
void http_connections_done(HttpConnections *c);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the HttpConnections as userdata. A connection for which
 * there is no memory is closed. */
void http_connections_notify(void *userdata, struct MHD_Connection *connection, void **context,
                             enum MHD_ConnectionNotificationCode code);

/* Moves the connection to this state. A fresh one can only become busy. */
void http_connections_set(HttpConnections *c, struct MHD_Connection *connection, HttpConnectionState state);

/* drain: idle connections are closed after a second; false: after `idle`. */
void http_connections_drain(HttpConnections *c, bool drain);
