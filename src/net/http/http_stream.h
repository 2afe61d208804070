/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An answer of unknown length: the body of a watch, or of a long list. Bytes are queued in memory
 * and sent as the peer reads them. The owner ends the stream by http_stream_end(), _cut() or
 * _abort(), and must not use it afterwards. The server frees it. */

#include "net/http/http_exchange.h"

typedef struct HttpStream HttpStream;
typedef void (*HttpStreamClosed)(void *userdata);

/* Answers the exchange with a stream. on_close is called once when the peer or the server goes away
 * before the owner ended the stream. The stream is freed after it. Returns NULL when out of memory;
 * the exchange is then answered with 503. */
HttpStream *http_stream_begin(HttpExchange *x, unsigned status, const char *content_type,
                              HttpStreamClosed on_close, void *userdata);

/* Queues a copy of the bytes. Returns 0, -ENOMEM, or -ENOBUFS when 64 MiB wait for a peer that does
 * not read. */
int http_stream_write(HttpStream *s, Str bytes);

/* Ends the answer once everything queued is sent. */
void http_stream_end(HttpStream *s);

/* Sends what is queued, then closes the connection in the middle of the answer, for fault
 * injection. */
void http_stream_cut(HttpStream *s);

/* The same for a peer that does not read: what is queued is dropped, and the connection is shut
 * down at once. */
void http_stream_abort(HttpStream *s);

/* Bytes that are queued. */
size_t http_stream_queued(const HttpStream *s);
/* Bytes that are queued, and those that the kernel still holds for the peer. */
size_t http_stream_unread(const HttpStream *s);

/* For answers that should not wait in memory as a whole: on_drain is called with the userdata of
 * on_close whenever the queue is empty. It may write, end or cut. */
void http_stream_on_drain(HttpStream *s, void (*on_drain)(void *userdata));
