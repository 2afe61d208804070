/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP(S) server in the event loop: libmicrohttpd joined to sd-event by its epoll descriptor.
 * One thread. The loop calls a handler with the whole request; the handler answers exactly once, at
 * once or later. */

#include <systemd/sd-event.h>

#include "base/buf.h"
#include "base/fault.h"

enum { HTTP_E_CERTIFICATE = 1 };

typedef struct HttpServer HttpServer;
/* one request that is to be answered; it ends with the answer */
typedef struct HttpExchange HttpExchange;

typedef struct HttpRequest {
        const char *method;
        const char *path;         /* without the query, percent-decoded */
        const char *content_type; /* "" when absent */
        Str body;
} HttpRequest;

/* userdata as given to http_server_new(). The request and its body live until the exchange is
 * answered. */
typedef void (*HttpHandler)(void *userdata, HttpExchange *x, const HttpRequest *request);

typedef struct HttpServerOptions {
        const char *listen; /* "127.0.0.1:8080", "[::1]:0", ":9443" (every address) */
        /* larger bodies get 413 unbuffered; all connections together hold 8 times this, then 503 */
        size_t max_body;
        unsigned max_connections; /* 0: 1024 */
        unsigned max_of_peer;     /* connections from one address; 0: all */
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
HttpServer *http_server_free(HttpServer *s); /* cuts open exchanges */
uint16_t http_server_port(const HttpServer *s);

/* false: every answer from now on closes its connection, so that peers choose a server anew.
 * Initially true. */
void http_server_keep_alive(HttpServer *s, bool keep);

/* Sets the certificate (PEM, with its chain) of connections from now on; open ones keep theirs. The
 * server must be made with TLS. Returns 0, -ENOMEM, or HTTP_E_CERTIFICATE with a fault; the old
 * certificate then stays. */
int http_server_set_certificate(HttpServer *s, const char *cert, const char *key, Fault *fault);

/* One query parameter, decoded; NULL when absent. Valid as long as the exchange. */
const char *http_query(HttpExchange *x, const char *name);

/* One header of the request; NULL when absent, and "" when it stands there more than once. Valid as
 * long as the exchange. */
const char *http_request_header(HttpExchange *x, const char *name);

/* Answers. body is copied. Call it in the handler or later from the loop. */
void http_respond(HttpExchange *x, unsigned status, const char *content_type, Str body);
/* Adds one header, of at most HTTP_HEADERS_MAX; call it before the answer. */
enum { HTTP_HEADERS_MAX = 8 };
void http_respond_header(HttpExchange *x, const char *name, const char *value);

/* An answer of unknown length (watch). http_stream_end() frees the stream. When the peer has gone,
 * the server calls on_close once and frees it. */
typedef struct HttpStream HttpStream;
typedef void (*HttpStreamClosed)(void *userdata);

/* Returns NULL when out of memory; the exchange is then answered with 503. */
HttpStream *http_stream_begin(HttpExchange *x, unsigned status, const char *content_type,
                              HttpStreamClosed on_close, void *userdata);

/* Queues bytes. Returns 0, -ENOMEM, or -ENOBUFS when 64 MiB wait for a peer that does not read. */
int http_stream_write(HttpStream *s, Str bytes);
void http_stream_end(HttpStream *s); /* ends it once everything queued is sent */
/* closes the connection in the middle of the answer, for fault injection */
void http_stream_cut(HttpStream *s);
/* The same for a peer that does not read: what is queued is dropped. */
void http_stream_abort(HttpStream *s);

/* For answers that should not wait in memory as a whole: how many bytes are queued, and a callback
 * (with on_close's userdata) whenever the queue is empty. It may write, end or cut. */
size_t http_stream_queued(const HttpStream *s);
/* The same with what the kernel still holds for the peer. */
size_t http_stream_unread(const HttpStream *s);
void http_stream_on_drain(HttpStream *s, void (*on_drain)(void *userdata));

/* on_close is called when the peer or the server goes away before the answer. A handler that keeps
 * the exchange must drop it there. */
void http_exchange_on_close(HttpExchange *x, void (*on_close)(void *userdata), void *userdata);

/* Closes the connection without an answer, for fault injection. */
void http_exchange_cut(HttpExchange *x);

DEFINE_CLEANUP(HttpServer *, http_server_free)
