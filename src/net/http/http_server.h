/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP(S) server in the event loop: libmicrohttpd joined to sd-event by its epoll descriptor.
 * One thread. The server has the listening socket, the certificate and the limits of all requests.
 * A request and its answer are an exchange (http_exchange.h). */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "net/http/http_exchange.h"

enum { HTTP_E_CERTIFICATE = 1 };

typedef struct HttpServer HttpServer;

/* Called from the loop with each whole request. userdata as given to http_server_new(). */
typedef void (*HttpHandler)(void *userdata, HttpExchange *x, const HttpRequest *request);

typedef struct HttpServerOptions {
        const char *listen; /* "127.0.0.1:8080", "[::1]:0", ":9443" (every address) */
        /* larger bodies get 413 unbuffered; all connections together hold 8 times this, then 503 */
        size_t max_body;
        unsigned max_connections; /* 0: 1024 */
        unsigned max_of_address;  /* connections from one address; 0: all */
        unsigned idle_sec;        /* until a connection without bytes is closed; 0: 300 */
        /* For a request's head and body, beyond idle_sec, since the connection began or the last
         * answer ended; 0: 60. Without it, a byte now and then would keep a connection for ever.
         * The answer may take any time. */
        unsigned request_sec;
        const char *tls_cert, *tls_key; /* PEM text (not paths); both or neither */
        /* HTTPS without a certificate yet: handshakes fail until one is set */
        bool tls;
} HttpServerOptions;

/* Returns 0, or negative errno: -EADDRINUSE and other errors of sockets, -EINVAL for a malformed
 * listen address (fault names it), -ENOMEM. */
int http_server_new(sd_event *event, const HttpServerOptions *options, HttpHandler handler, void *userdata,
                    HttpServer **ret, Fault *fault);
/* Closes all connections; exchanges without an answer are cut. */
HttpServer *http_server_free(HttpServer *s);

/* The port on which the server listens, also where port 0 was asked for. */
uint16_t http_server_port(const HttpServer *s);

/* false: every answer from now on closes its connection, so that peers choose a server anew.
 * Initially true. */
void http_server_keep_alive(HttpServer *s, bool keep);

/* Sets the certificate (PEM, with its chain) of connections from now on; open ones keep theirs. The
 * server must be made with TLS. Returns 0, -ENOMEM, or HTTP_E_CERTIFICATE with a fault; the old
 * certificate then stays. */
int http_server_set_certificate(HttpServer *s, const char *cert, const char *key, Fault *fault);

DEFINE_CLEANUP(HttpServer *, http_server_free)
