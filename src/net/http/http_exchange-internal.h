/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An exchange as the server and its stream see it. libmicrohttpd's callbacks in http_server.c make
 * it, feed it and free it. It passes through these states:
 *
 *     receiving   pieces of the body are collected, up to the limit
 *     open        the handler has it; until it answers, the connection is suspended
 *     answered    a response (or the decision to cut) is set; the resumed connection picks it up
 *
 * libmicrohttpd does not poll a suspended connection, so it would not notice that the peer is gone.
 * For exchanges with an on_close or a stream the socket is watched for a hang-up here. */

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "base/buf.h"
#include "net/http/http_server.h"
#include "net/http/http_stream.h"

typedef enum ExchangeState {
        EXCHANGE_RECEIVING,
        EXCHANGE_OPEN,
        EXCHANGE_ANSWERED,
        EXCHANGE_CUT
} ExchangeState;

struct HttpExchange {
        HttpServer *server;
        HttpExchange *next, **link;
        struct MHD_Connection *connection;
        ExchangeState state;
        bool suspended, in_handler;
        bool gone; /* the peer hung up; an answer is dropped */
        char *method, *path;
        Buf body;
        bool too_large, crowded, broken;
        struct MHD_Response *response;
        unsigned status;
        struct {
                char *name, *value;
        } headers[HTTP_HEADERS_MAX]; /* headers of the answer */
        size_t n_headers;
        HttpStream *stream;
        void (*on_close)(void *userdata);
        void *on_close_userdata;
        sd_event_source *hang_up;
};

/* Returns NULL when the exchange cannot be allocated. When only the copy of method or path cannot,
 * it is returned with `broken` set. */
HttpExchange *http_exchange_new(HttpServer *s, struct MHD_Connection *connection, const char *method,
                                const char *path);
void http_exchange_free(HttpExchange *x);

/* Takes a piece of the body. One over a limit is read to its end and dropped, so that the peer
 * receives the error; too_large or crowded is set then, and broken when out of memory. */
void http_exchange_receive(HttpExchange *x, const char *data, size_t n);

/* Calls the handler with the whole request, then proceeds. */
enum MHD_Result http_exchange_begin(HttpExchange *x);
/* Sends the answer, or suspends the connection until there is one. Returns MHD_NO when the
 * connection must be closed. */
enum MHD_Result http_exchange_proceed(HttpExchange *x);

/* Suspend and resume the connection in libmicrohttpd. Each does nothing if that is its state
 * already. */
void http_exchange_suspend(HttpExchange *x);
void http_exchange_resume(HttpExchange *x);

/* Closes the connection in its next turn, because the peer or the server goes away. */
void http_exchange_drop(HttpExchange *x);

/* Sets the answer and resumes the connection. Takes over the response; NULL cuts the connection. */
void http_exchange_answer(HttpExchange *x, unsigned status, const char *content_type,
                          struct MHD_Response *response);

/* ---- streams ---- */

/* Calls the stream's on_close, unless the owner has ended the stream. */
void http_stream_closed(HttpStream *s);
HttpStream *http_stream_free(HttpStream *s);
