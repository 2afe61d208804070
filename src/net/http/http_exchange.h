/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One request to the server and its answer. A handler answers exactly once: by http_respond(), by
 * http_stream_begin() (http_stream.h), or by http_exchange_cut(). It does so within the call, or
 * later from the loop. The answer ends the exchange. */

#include "base/buf.h"

typedef struct HttpExchange HttpExchange;

/* Lives until the exchange is answered, with all that it points to. */
typedef struct HttpRequest {
        const char *method;
        const char *path;         /* without the query, percent-decoded */
        const char *content_type; /* "" when absent */
        Str body;
} HttpRequest;

/* Returns one query parameter, decoded; NULL when absent. Valid as long as the exchange. */
const char *http_query(HttpExchange *x, const char *name);

/* Returns one header of the request; NULL when absent, and "" when it stands there more than once.
 * Valid as long as the exchange. */
const char *http_request_header(HttpExchange *x, const char *name);

/* Adds one header to the answer, at most HTTP_HEADERS_MAX; call it before the answer. Name and
 * value are copied. A header for which there is no memory is left out. */
enum { HTTP_HEADERS_MAX = 8 };
void http_respond_header(HttpExchange *x, const char *name, const char *value);

/* Answers with a body, which is copied. Without memory for the answer the connection is closed
 * instead. */
void http_respond(HttpExchange *x, unsigned status, const char *content_type, Str body);

/* Closes the connection without an answer, for fault injection. */
void http_exchange_cut(HttpExchange *x);

/* on_close is called once when the peer or the server goes away before the answer. A handler that
 * keeps the exchange must drop it there. Without on_close a peer that hung up is noticed only when
 * the answer is written. */
void http_exchange_on_close(HttpExchange *x, void (*on_close)(void *userdata), void *userdata);
