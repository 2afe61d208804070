/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_exchange.h"

#include <assert.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/epoll.h>

#include "net/http/http_exchange-internal.h"
#include "net/http/http_server-internal.h"
#include "net/http/http_socket.h"

enum { BODIES_AT_ONCE = 8 }; /* all connections hold at most so many times the limit of one body */

HttpExchange *http_exchange_new(HttpServer *s, struct MHD_Connection *connection, const char *method,
                                const char *path) {
        HttpExchange *x = calloc(1, sizeof *x);

        if (!x)
                return NULL;
        x->server = s;
        x->connection = connection;
        http_connections_set(&s->connections, connection, HTTP_CONNECTION_RECEIVING);
        x->method = str_dup(str_from(method));
        x->path = str_dup(str_from(path));
        x->link = &s->exchanges;
        x->next = s->exchanges;
        if (x->next)
                x->next->link = &x->next;
        s->exchanges = x;
        x->broken = !x->method || !x->path;
        return x;
}

static void exchange_drop_body(HttpExchange *x) {
        x->server->bodies -= x->body.len;
        buf_done(&x->body);
}

void http_exchange_free(HttpExchange *x) {
        *x->link = x->next;
        if (x->next)
                x->next->link = x->link;
        sd_event_source_disable_unref(x->hang_up);
        if (x->response)
                MHD_destroy_response(x->response);
        http_stream_free(x->stream);
        exchange_drop_body(x);
        for (size_t i = 0; i < x->n_headers; i++) {
                free(x->headers[i].name);
                free(x->headers[i].value);
        }
        free(x->method);
        free(x->path);
        free(x);
}

/* ---- suspending and resuming ---- */

void http_exchange_resume(HttpExchange *x) {
        if (!x->suspended)
                return;
        x->suspended = false;
        sd_event_source_disable_unref(TAKE_PTR(x->hang_up));
        MHD_resume_connection(x->connection);
        /* Only the next MHD_run() resumes it, and no descriptor becomes ready for that. */
        http_server_wake(x->server);
}

static void exchange_set_state(HttpExchange *x, ExchangeState state) {
        if (x->gone)
                return;
        assert(x->state < EXCHANGE_ANSWERED); /* answered exactly once */
        x->state = state;
        if (!x->in_handler)
                http_exchange_resume(x);
}

void http_exchange_drop(HttpExchange *x) {
        x->gone = true;
        if (!x->stream && x->state < EXCHANGE_ANSWERED)
                x->state = EXCHANGE_CUT;
        http_exchange_resume(x);
}

/* Runs when the peer hangs up before it was answered. */
static int on_hang_up(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        HttpExchange *x = userdata;

        http_exchange_drop(x);
        return 0;
}

void http_exchange_suspend(HttpExchange *x) {
        if (x->suspended)
                return;
        MHD_suspend_connection(x->connection);
        x->suspended = true;
        if (!x->stream && !x->on_close)
                return;
        /* Without this source the hang-up is noticed at the next write, which is late
         * but correct. */
        (void) sd_event_add_io(x->server->event, &x->hang_up, http_socket_of(x->connection), EPOLLRDHUP,
                               on_hang_up, x);
}

/* ---- the request ---- */

void http_exchange_receive(HttpExchange *x, const char *data, size_t n) {
        HttpServer *s = x->server;

        x->too_large = x->too_large || n > s->max_body - x->body.len;
        x->crowded = x->crowded || n > s->max_body * BODIES_AT_ONCE - s->bodies;
        if (x->too_large || x->crowded) {
                exchange_drop_body(x);
                return;
        }
        buf_append(&x->body, data, n);
        x->broken = x->broken || buf_result(&x->body) < 0;
        s->bodies += x->broken ? 0 : n;
}

enum MHD_Result http_exchange_proceed(HttpExchange *x) {
        switch (x->state) {
        case EXCHANGE_ANSWERED:
                if (!x->stream)
                        http_connections_set(&x->server->connections, x->connection, HTTP_CONNECTION_SENDING);
                return MHD_queue_response(x->connection, x->status, x->response);
        case EXCHANGE_CUT:
                return MHD_NO; /* closes the connection without an answer */
        case EXCHANGE_OPEN:
        case EXCHANGE_RECEIVING:
        default:
                http_exchange_suspend(x);
                return MHD_YES;
        }
}

enum MHD_Result http_exchange_begin(HttpExchange *x) {
        const char *type =
                MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
        HttpRequest request = {
                .method = x->method,
                .path = x->path,
                .content_type = type ? type : "",
                .body = buf_str(&x->body),
        };

        x->state = EXCHANGE_OPEN;
        x->in_handler = true;
        x->server->handler(x->server->userdata, x, &request);
        x->in_handler = false;
        return http_exchange_proceed(x);
}

const char *http_query(HttpExchange *x, const char *name) {
        return MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);
}

typedef struct Wanted {
        const char *name, *value;
        bool twice;
} Wanted;

static enum MHD_Result match_header(void *userdata, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
        Wanted *wanted = userdata;

        if (strcasecmp(key, wanted->name) == 0) {
                wanted->twice = wanted->value != NULL;
                wanted->value = value ? value : "";
        }
        return wanted->twice ? MHD_NO : MHD_YES;
}

const char *http_request_header(HttpExchange *x, const char *name) {
        Wanted wanted = {.name = name};

        (void) MHD_get_connection_values(x->connection, MHD_HEADER_KIND, match_header, &wanted);
        return wanted.twice ? "" : wanted.value;
}

/* ---- answers ---- */

void http_exchange_answer(HttpExchange *x, unsigned status, const char *content_type,
                          struct MHD_Response *response) {
        /* an answered exchange has no on_close, even when its peer is gone */
        x->on_close = NULL;
        if (x->gone) {
                if (response)
                        MHD_destroy_response(response);
                return;
        }
        if (!response) {
                exchange_set_state(x, EXCHANGE_CUT); /* out of memory, even for an error response */
                return;
        }
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
        if (x->server->ending)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
        for (size_t i = 0; i < x->n_headers; i++)
                if (x->headers[i].name && x->headers[i].value)
                        (void) MHD_add_response_header(response, x->headers[i].name, x->headers[i].value);
        x->response = response;
        x->status = status;
        exchange_set_state(x, EXCHANGE_ANSWERED);
}

void http_respond(HttpExchange *x, unsigned status, const char *content_type, Str body) {
        /* MUST_COPY does not write to the buffer, although the parameter is not const. */
        void *bytes = (void *) (uintptr_t) (body.len > 0 ? body.data : "");

        http_exchange_answer(x, status, content_type,
                             MHD_create_response_from_buffer(body.len, bytes, MHD_RESPMEM_MUST_COPY));
}

void http_respond_header(HttpExchange *x, const char *name, const char *value) {
        assert(x->n_headers < HTTP_HEADERS_MAX);
        x->headers[x->n_headers].name = str_dup(str_from(name));
        x->headers[x->n_headers].value = str_dup(str_from(value));
        x->n_headers++;
}

void http_exchange_cut(HttpExchange *x) {
        x->on_close = NULL;
        exchange_set_state(x, EXCHANGE_CUT);
}

void http_exchange_on_close(HttpExchange *x, void (*on_close)(void *userdata), void *userdata) {
        x->on_close = on_close;
        x->on_close_userdata = userdata;
}
