/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP(S) server in the event loop: libmicrohttpd joined to sd-event by its epoll descriptor.
 * One thread; handlers are called from the loop with the whole request, answer now or later, and
 * exactly once. */

#include <systemd/sd-event.h>

#include "base/buf.h"
#include "base/fault.h"

enum { HTTP_E_CERTIFICATE = 1 };

typedef struct HttpServer HttpServer;
typedef struct HttpExchange HttpExchange; /* one request and the answer that is owed; dies with the answer */

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
        size_t max_body; /* larger ones: 413, before they are buffered; 8 times it over all connections: 503 */
        unsigned max_connections;       /* 0: 1024 */
        const char *tls_cert, *tls_key; /* PEM text (not paths); both or neither */
        bool tls;                       /* HTTPS whose certificate comes later: handshakes fail until then */
} HttpServerOptions;

/* 0, -EADDRINUSE and the like, -EINVAL for a malformed listen address (fault says which),
 * -ENOMEM. */
int http_server_new(sd_event *event, const HttpServerOptions *options, HttpHandler handler, void *userdata,
                    HttpServer **ret, Fault *fault);
HttpServer *http_server_free(HttpServer *s); /* open exchanges are cut */
uint16_t http_server_port(const HttpServer *s);

/* false: every answer from now on ends its connection, so that peers choose anew whom they call;
 * true at first. */
void http_server_keep_alive(HttpServer *s, bool keep);

/* The certificate (PEM, a chain if need be) that connections get from now on; those that are open
 * keep theirs. Of a server made with TLS. 0, HTTP_E_CERTIFICATE with a fault, the old one staying,
 * or -ENOMEM. */
int http_server_set_certificate(HttpServer *s, const char *cert, const char *key, Fault *fault);

/* One query parameter, decoded; NULL when absent. Lives as long as the exchange. */
const char *http_query(HttpExchange *x, const char *name);

/* Answers. body is copied. May be called in the handler or at any later time from the loop. */
void http_respond(HttpExchange *x, unsigned status, const char *content_type, Str body);
/* One more header, said before the answer: Retry-After and the like. */
void http_respond_header(HttpExchange *x, const char *name, const char *value);

/* An answer of unknown length (watch). The stream is freed by http_stream_end(), or by the server
 * when the peer went away: on_close is then called once, and the stream must not be used after
 * it. */
typedef struct HttpStream HttpStream;
typedef void (*HttpStreamClosed)(void *userdata);

/* NULL when out of memory; the exchange is then answered with 503. */
HttpStream *http_stream_begin(HttpExchange *x, unsigned status, const char *content_type,
                              HttpStreamClosed on_close, void *userdata);

/* Queued; -ENOBUFS once 64 MiB wait for a peer that does not read. */
int http_stream_write(HttpStream *s, Str bytes);
void http_stream_end(HttpStream *s); /* after what was written has gone out */
void http_stream_cut(
        HttpStream *s); /* the same, but the connection closes in the middle: for fault injection */

/* For those who have more to say than should wait in memory: what still waits, and a call (with
 * on_close's userdata) whenever nothing waits any more. It may write, end or cut. */
size_t http_stream_queued(const HttpStream *s);
void http_stream_on_drain(HttpStream *s, void (*on_drain)(void *userdata));

/* The peer, or the server, is gone before the answer: whoever keeps the exchange past its handler
 * must drop it here. */
void http_exchange_on_close(HttpExchange *x, void (*on_close)(void *userdata), void *userdata);

/* Closes the connection without any answer, for fault injection. */
void http_exchange_cut(HttpExchange *x);

DEFINE_CLEANUP(HttpServer *, http_server_free)
