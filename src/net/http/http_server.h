/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP(S) server in the event loop: libmicrohttpd joined to sd-event by its epoll descriptor.
 * One thread. The server has the listening socket, the certificate and the limits of all requests.
 * A request and its answer are an exchange (http_exchange.h). */

#include <systemd/sd-event.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "net/http/http_exchange.h"

enum { HTTP_E_CERTIFICATE = 1 };

typedef struct HttpServer HttpServer;

/* Called from the loop with each whole request. userdata as given to http_server_new(). */
typedef void (*HttpHandler)(void *userdata, HttpExchange *x, const HttpRequest *request);

typedef struct HttpServerOptions {
        const char *listen; /* "127.0.0.1:8080", "[::1]:0", ":9443" (every address) */
        const char *name;   /* a literal, for on_limit and metrics */
        /* larger bodies get 413 unbuffered; all connections together hold 8 times this, then 503 */
        size_t max_body;
        unsigned max_connections; /* at most half of the files that the process may open; 0: 1024 */
        /* Connections from one address, without those whose request is being answered. Many clients
         * may be behind one address. 0: half of all. */
        unsigned max_of_address;
        unsigned first_sec; /* seconds from accept() to the first whole request; 0: 10 */
        /* seconds from an answer to the head of the next request, or without a byte; 0: 300 */
        unsigned idle_sec;
        unsigned request_sec; /* from that head to the whole request; 0: 60. Answers take any time. */
        /* Called when connections are closed at a limit, at most once a minute, with a text for the
         * log. userdata as for the handler. NULL: not told. */
        void (*on_limit)(void *userdata, const char *text);
        const char *tls_cert, *tls_key; /* PEM text (not paths); both or neither */
        /* HTTPS without a certificate yet: handshakes fail until one is set */
        bool tls;
} HttpServerOptions;

/* Returns 0, or negative errno: -EADDRINUSE and other errors of sockets, -EINVAL for a malformed
 * listen address (fault names it) or certificate, or one without a key; -ENOMEM. */
int http_server_new(sd_event *event, const HttpServerOptions *options, HttpHandler handler, void *userdata,
                    HttpServer **ret, Fault *fault);
/* Closes all connections; exchanges without an answer are cut. */
HttpServer *http_server_free(HttpServer *s);

/* The port on which the server listens, also where port 0 was asked for. */
uint16_t http_server_port(const HttpServer *s);

/* keep false: from now on every answer closes its connection, and idle connections are closed after
 * a second, so that clients connect anew, perhaps to another replica. Initially true. */
void http_server_keep_alive(HttpServer *s, bool keep);

/* Sets the certificate (PEM, with its chain) of connections from now on; open ones keep theirs. The
 * server must be made with TLS. Returns 0, -ENOMEM, or HTTP_E_CERTIFICATE with a fault; the old
 * certificate then stays. */
int http_server_set_certificate(HttpServer *s, const char *cert, const char *key, Fault *fault);

/* Appends the counter `name` of connections that were closed before their time, by listener and
 * rule (http_connections.h). NULLs are left out. */
void http_server_write_closed(const HttpServer *const servers[], size_t n, const char *name, Buf *out);

DEFINE_CLEANUP(HttpServer *, http_server_free)
