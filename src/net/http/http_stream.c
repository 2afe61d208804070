/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_stream.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "net/http/http_exchange-internal.h"
#include "net/http/http_server-internal.h"
#include "net/http/http_socket.h"

enum {
        STREAM_QUEUE_MAX = 64 * 1024 * 1024,
        STREAM_BLOCK = 64 * 1024,
};

struct HttpStream {
        HttpExchange *exchange;
        Buf queue;
        size_t sent; /* bytes of the queue that were sent */
        bool ended, cut;
        HttpStreamClosed on_close; /* NULL once the owner ended the stream */
        void (*on_drain)(void *userdata);
        void *userdata;
};

void http_stream_closed(HttpStream *s) {
        if (s->on_close)
                s->on_close(s->userdata);
}

HttpStream *http_stream_free(HttpStream *s) {
        if (!s)
                return NULL;
        buf_done(&s->queue);
        free(s);
        return NULL;
}

static ssize_t stream_read(void *userdata, uint64_t position, char *into, size_t max) {
        HttpStream *s = userdata;
        size_t n;

        if (s->exchange->gone)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (http_stream_queued(s) == 0 && s->on_close && s->on_drain)
                s->on_drain(s->userdata);
        n = http_stream_queued(s);
        if (n == 0) {
                if (s->cut)
                        return MHD_CONTENT_READER_END_WITH_ERROR;
                if (s->ended)
                        return MHD_CONTENT_READER_END_OF_STREAM;
                http_exchange_suspend(s->exchange);
                return 0;
        }
        n = n < max ? n : max;
        memcpy(into, s->queue.data + s->sent, n);
        s->sent += n;
        if (s->sent == s->queue.len) {
                s->sent = 0;
                buf_clear(&s->queue);
        }
        return (ssize_t) n;
}

HttpStream *http_stream_begin(HttpExchange *x, unsigned status, const char *content_type,
                              HttpStreamClosed on_close, void *userdata) {
        HttpStream *s = calloc(1, sizeof *s);
        struct MHD_Response *response;

        if (!s) {
                http_respond(x, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", STR("out of memory\n"));
                return NULL;
        }
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, stream_read, s, NULL);
        if (!response) {
                free(s);
                http_respond(x, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", STR("out of memory\n"));
                return NULL;
        }
        *s = (HttpStream){.exchange = x, .on_close = on_close, .userdata = userdata};
        x->stream = s;
        http_exchange_answer(x, status, content_type, response);
        return s;
}

/* Drops the sent bytes once they are the larger part, so that the queue of a steady reader stays
 * small. */
static void stream_compact(HttpStream *s) {
        if (s->sent < s->queue.len / 2)
                return;
        memmove(s->queue.data, s->queue.data + s->sent, s->queue.len - s->sent);
        s->queue.len -= s->sent;
        s->sent = 0;
}

int http_stream_write(HttpStream *s, Str bytes) {
        if (bytes.len > STREAM_QUEUE_MAX - http_stream_queued(s))
                return -ENOBUFS;
        if (s->sent > 0)
                stream_compact(s);
        buf_append_str(&s->queue, bytes);
        if (buf_result(&s->queue) < 0)
                return -ENOMEM;
        http_exchange_resume(s->exchange);
        return 0;
}

void http_stream_end(HttpStream *s) {
        s->ended = true;
        s->on_close = NULL;
        http_exchange_resume(s->exchange);
}

void http_stream_cut(HttpStream *s) {
        s->cut = true;
        s->on_close = NULL;
        http_exchange_resume(s->exchange);
}

/* The shutdown makes the socket ready, so that libmicrohttpd finds the stream cut at once. */
void http_stream_abort(HttpStream *s) {
        buf_done(&s->queue);
        s->sent = 0;
        (void) shutdown(http_socket_of(s->exchange->connection), SHUT_RDWR); /* the peer may be gone */
        http_stream_cut(s);
}

size_t http_stream_queued(const HttpStream *s) {
        return s->queue.len - s->sent;
}

size_t http_stream_unread(const HttpStream *s) {
        int n = 0;

        if (ioctl(http_socket_of(s->exchange->connection), SIOCOUTQ, &n) < 0)
                n = 0;
        return http_stream_queued(s) + (size_t) n;
}

void http_stream_on_drain(HttpStream *s, void (*on_drain)(void *userdata)) {
        s->on_drain = on_drain;
}
