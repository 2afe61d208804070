/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_server.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/http/http_listen.h"
#include "net/http/tls.h"

/* libmicrohttpd runs without threads of its own: its epoll descriptor is one source of our loop,
 * its next deadline another. A request passes through three states of its exchange:
 *
 *     receiving   body pieces are collected, up to the limit
 *     open        the handler has it; until it answers, the connection is suspended
 *     answered    a response (or the decision to cut) is set; the resumed connection picks it up
 *
 * libmicrohttpd closes a connection on which no byte came for some time. A peer that sends a byte
 * now and then meets a deadline of ours: connections without a whole request are in a list, in the
 * order of their deadlines.
 *
 * libmicrohttpd does not poll a suspended connection, so it would not notice that the peer is gone.
 * For exchanges with an on_close we watch the socket for a hang-up ourselves. */

#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum {
        STREAM_QUEUE_MAX = 64 * 1024 * 1024,
        STREAM_BLOCK = 64 * 1024,
        CONNECTION_MEMORY = 32 * 1024, /* cleared after each request, so a larger pool is slower */
        /* longer than the 90 s of Go's clients, so that the peer closes first and no
         * request is lost */
        IDLE_TIMEOUT_SEC = 300,
        REQUEST_SEC = 60,
        CONNECTIONS_DEFAULT = 1024,
        BODIES_AT_ONCE = 8, /* times the limit of one body: the bound of all connections */
};

typedef enum ExchangeState {
        EXCHANGE_RECEIVING,
        EXCHANGE_OPEN,
        EXCHANGE_ANSWERED,
        EXCHANGE_CUT
} ExchangeState;

struct HttpStream {
        HttpExchange *exchange;
        Buf queue;
        size_t sent; /* bytes of the queue that were sent */
        bool ended, cut;
        HttpStreamClosed on_close; /* NULL once the owner ended the stream */
        void (*on_drain)(void *userdata);
        void *userdata;
};

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
        } headers[HTTP_HEADERS_MAX]; /* of the answer */
        size_t n_headers;
        HttpStream *stream;
        void (*on_close)(void *userdata);
        void *on_close_userdata;
        sd_event_source *hang_up;
};

/* A connection while it has no whole request. */
typedef struct Incoming {
        struct Incoming *next, **link; /* link is NULL: a request is being answered */
        struct MHD_Connection *connection;
        usec_t until;
} Incoming;

struct HttpServer {
        struct MHD_Daemon *daemon;
        sd_event *event;
        sd_event_source *io, *timer, *wake;
        sd_event_source *deadline; /* of the first connection in the list, or earlier */
        Incoming *first, **end;    /* all have the same time, so that the last begun comes last */
        usec_t incoming;           /* that time */
        HttpHandler handler;
        void *userdata;
        HttpExchange *exchanges;
        size_t max_body, bodies; /* of one request; of all current requests */
        usec_t armed;            /* when the timer fires */
        unsigned idle_turns;     /* turns in a row with an expired deadline and no progress */
        uint16_t port;
        bool watching;        /* the deadline is set */
        bool closing, ending; /* the server closes; each connection ends after its next answer */
        TlsPair tls;
};

/* ---- requests that are still coming ---- */

static void incoming_remove(HttpServer *s, Incoming *c) {
        if (!c->link)
                return;
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        else
                s->end = c->link;
        c->link = NULL;
}

/* A timer that is set is not moved: it fires too early and is set again. So a request costs no
 * system call for it. */
static void incoming_add(HttpServer *s, Incoming *c) {
        incoming_remove(s, c);
        c->until = clock_monotonic_usec() + s->incoming;
        c->next = NULL;
        c->link = s->end;
        *s->end = c;
        s->end = &c->next;
        if (s->watching)
                return;
        s->watching = true;
        /* these fail only for sources that do not exist */
        (void) sd_event_source_set_time(s->deadline, c->until);
        (void) sd_event_source_set_enabled(s->deadline, SD_EVENT_ONESHOT);
}

static Incoming *incoming_of(struct MHD_Connection *connection) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        HttpServer *s = userdata;
        Incoming *c = *context;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                c = calloc(1, sizeof *c); /* without it the connection has no deadline */
                *context = c;
                if (!c)
                        return;
                c->connection = connection;
                incoming_add(s, c);
        } else if (c) {
                incoming_remove(s, c);
                free(c);
                *context = NULL;
        }
}

/* The shutdown makes the socket ready, and libmicrohttpd reads the end of the request there. */
static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        usec_t now = clock_monotonic_usec();
        HttpServer *s = userdata;
        int r;

        while (s->first && s->first->until <= now) {
                const union MHD_ConnectionInfo *info =
                        MHD_get_connection_info(s->first->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

                if (info)
                        (void) shutdown(info->connect_fd, SHUT_RDWR); /* the peer may be gone */
                incoming_remove(s, s->first);
        }
        s->watching = s->first != NULL;
        if (!s->watching)
                return 0;
        r = sd_event_source_set_time(source, s->first->until);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* ---- exchanges ---- */

static HttpExchange *exchange_new(HttpServer *s, struct MHD_Connection *connection, const char *method,
                                  const char *path) {
        HttpExchange *x = calloc(1, sizeof *x);

        if (!x)
                return NULL;
        x->server = s;
        x->connection = connection;
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

static void exchange_free(HttpExchange *x) {
        *x->link = x->next;
        if (x->next)
                x->next->link = x->link;
        sd_event_source_disable_unref(x->hang_up);
        if (x->response)
                MHD_destroy_response(x->response);
        if (x->stream) {
                buf_done(&x->stream->queue);
                free(x->stream);
        }
        exchange_drop_body(x);
        for (size_t i = 0; i < x->n_headers; i++) {
                free(x->headers[i].name);
                free(x->headers[i].value);
        }
        free(x->method);
        free(x->path);
        free(x);
}

static void exchange_resume(HttpExchange *x) {
        if (!x->suspended)
                return;
        x->suspended = false;
        sd_event_source_disable_unref(TAKE_PTR(x->hang_up));
        MHD_resume_connection(x->connection);
        /* Only the next MHD_run() resumes it, and no descriptor becomes ready for that. */
        x->server->idle_turns = 0;
        /* fails only for NULL */
        (void) sd_event_source_set_enabled(x->server->wake, SD_EVENT_ONESHOT);
}

static void exchange_set_state(HttpExchange *x, ExchangeState state) {
        if (x->gone)
                return;
        assert(x->state < EXCHANGE_ANSWERED); /* answered exactly once */
        x->state = state;
        if (!x->in_handler)
                exchange_resume(x);
}

static void exchange_drop(HttpExchange *x) {
        x->gone = true;
        if (!x->stream && x->state < EXCHANGE_ANSWERED)
                x->state = EXCHANGE_CUT;
        exchange_resume(x);
}

/* The peer hung up before it was answered. */
static int on_hang_up(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        HttpExchange *x = userdata;

        exchange_drop(x);
        return 0;
}

static void exchange_suspend(HttpExchange *x) {
        const union MHD_ConnectionInfo *info;

        if (x->suspended)
                return;
        MHD_suspend_connection(x->connection);
        x->suspended = true;
        if (!x->stream && !x->on_close)
                return;
        info = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        /* Without this source the hang-up is noticed at the next write, which is late
         * but correct. */
        if (info)
                (void) sd_event_add_io(x->server->event, &x->hang_up, info->connect_fd, EPOLLRDHUP,
                                       on_hang_up, x);
}

static enum MHD_Result queue_text(struct MHD_Connection *connection, unsigned status, const char *text) {
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(text), (void *) (uintptr_t) text, MHD_RESPMEM_PERSISTENT);
        enum MHD_Result r;

        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
        r = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return r;
}

/* Sends the answer, or suspends the connection until there is one. */
static enum MHD_Result exchange_proceed(HttpExchange *x) {
        switch (x->state) {
        case EXCHANGE_ANSWERED:
                return MHD_queue_response(x->connection, x->status, x->response);
        case EXCHANGE_CUT:
                return MHD_NO; /* closes the connection without an answer */
        case EXCHANGE_OPEN:
        case EXCHANGE_RECEIVING:
        default:
                exchange_suspend(x);
                return MHD_YES;
        }
}

static enum MHD_Result exchange_begin(HttpExchange *x) {
        Incoming *c = incoming_of(x->connection);
        const char *type =
                MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
        HttpRequest request = {
                .method = x->method,
                .path = x->path,
                .content_type = type ? type : "",
                .body = buf_str(&x->body),
        };

        x->state = EXCHANGE_OPEN;
        if (c)
                incoming_remove(x->server, c);
        x->in_handler = true;
        x->server->handler(x->server->userdata, x, &request);
        x->in_handler = false;
        return exchange_proceed(x);
}

/* ---- libmicrohttpd's callbacks ---- */

static bool announces_too_much(HttpServer *s, struct MHD_Connection *connection) {
        const char *length =
                MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
        uint64_t n;

        return length && (!str_to_u64(str_from(length), &n) || n > s->max_body);
}

/* A body over the limit is read to its end and dropped, so that the peer receives the error. */
static void exchange_receive(HttpExchange *x, const char *data, size_t n) {
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

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state) {
        HttpServer *s = userdata;
        HttpExchange *x = *state;

        s->idle_turns = 0;
        if (!x) {
                if (s->closing)
                        return MHD_NO;
                if (announces_too_much(s, connection))
                        return queue_text(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
                x = exchange_new(s, connection, method, url);
                *state = x;
                return x ? MHD_YES : MHD_NO;
        }
        if (*upload_size > 0) {
                exchange_receive(x, upload, *upload_size);
                *upload_size = 0;
                return x->broken ? MHD_NO : MHD_YES;
        }
        if (x->state != EXCHANGE_RECEIVING)
                return exchange_proceed(x);
        if (x->broken)
                return queue_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
        if (x->too_large)
                return queue_text(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
        if (x->crowded)
                return queue_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies at once\n");
        return exchange_begin(x);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code) {
        Incoming *c = incoming_of(connection);
        HttpExchange *x = *state;

        if (c)
                incoming_add(userdata, c);
        if (!x)
                return;
        *state = NULL;
        if (x->stream && x->stream->on_close)
                x->stream->on_close(x->stream->userdata);
        if (x->gone && !x->stream && x->on_close)
                x->on_close(x->on_close_userdata);
        exchange_free(x);
}

/* ---- joining the loop ---- */

enum {
        TURNS_AT_ONCE = 4,
        TURN_DELAY_MAX_MSEC = 64,
};

static int server_set_timer(HttpServer *s, usec_t when) {
        int r;

        s->armed = when;
        r = sd_event_source_set_time(s->timer, when);
        return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Idle deadlines move with every request, but the timer is only moved to an earlier time. When it
 * fires too early, it is set again. So a request costs no system call for a timer.
 *
 * An expired deadline is a deferred source. libmicrohttpd 0.9.75 reports one also for a TLS
 * handshake that waits for the peer, without end: turns without progress therefore slow down. */
static int server_arm(HttpServer *s) {
        MHD_UNSIGNED_LONG_LONG milliseconds;
        usec_t now, when;

        if (MHD_get_timeout(s->daemon, &milliseconds) != MHD_YES)
                return 0;
        if (milliseconds == 0) {
                if (s->idle_turns++ < TURNS_AT_ONCE)
                        return sd_event_source_set_enabled(s->wake, SD_EVENT_ONESHOT);
                milliseconds = s->idle_turns < 64 ? s->idle_turns - TURNS_AT_ONCE : TURN_DELAY_MAX_MSEC;
        }
        now = clock_monotonic_usec();
        when = now + milliseconds * USEC_PER_MSEC;
        if (s->armed > now && s->armed <= when)
                return 0;
        return server_set_timer(s, when);
}

/* GnuTLS asks for a certificate without naming the server. Handshakes happen only inside MHD_run()
 * and there is one thread, so this is the server that runs. */
static HttpServer *in_turn;

static void server_run(HttpServer *s) {
        HttpServer *outer = in_turn;

        in_turn = s;
        (void) MHD_run(s->daemon); /* its errors concern single connections, which it closes */
        in_turn = outer;
}

static int on_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **ret, unsigned *ret_n, gnutls_ocsp_data_st **ret_ocsp,
                          unsigned *ret_n_ocsp, gnutls_privkey_t *ret_key, unsigned *ret_flags) {
        *ret_ocsp = NULL;
        *ret_n_ocsp = 0;
        return in_turn ? tls_pair_retrieve(&in_turn->tls, ret, ret_n, ret_key, ret_flags) : -1;
}

static int server_turn(HttpServer *s) {
        server_run(s);
        return server_arm(s);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        HttpServer *s = userdata;

        s->idle_turns = 0;
        return server_turn(s);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpServer *s = userdata;

        s->armed = 0;
        return server_turn(s);
}

static int on_wake(sd_event_source *source, void *userdata) {
        return server_turn(userdata);
}

/* After other sources: a deferred source counts as pending since it was made, and would always come
 * first. */
static int server_add_wake(HttpServer *s) {
        int r = sd_event_add_defer(s->event, &s->wake, on_wake, s);

        if (r >= 0)
                r = sd_event_source_set_priority(s->wake, SD_EVENT_PRIORITY_NORMAL + 1);
        return r < 0 ? r : sd_event_source_set_enabled(s->wake, SD_EVENT_OFF);
}

static int server_join(HttpServer *s) {
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (!info)
                return -EOPNOTSUPP;
        r = sd_event_add_io(s->event, &s->io, info->epoll_fd, EPOLLIN, on_io, s);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(s->event, &s->timer, CLOCK_MONOTONIC, 0, 1, on_timer, s);
        if (r < 0)
                return r;
        r = sd_event_add_time(s->event, &s->deadline, CLOCK_MONOTONIC, 0, USEC_PER_SEC, on_deadline, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->deadline, SD_EVENT_OFF);
        if (r >= 0)
                r = server_add_wake(s);
        if (r < 0)
                return r;
        return server_arm(s);
}

static void discard_log(void *userdata, const char *format, va_list args) {
        /* Errors of peers are not reported; our own failures are return values. */
}

static int server_start(HttpServer *s, const HttpServerOptions *o, int listen_fd) {
        bool with_tls = o->tls || o->tls_cert;
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
        struct MHD_OptionItem tls[] = {
                {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *) (uintptr_t) on_certificate},
                {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *) (uintptr_t) TLS_PRIORITIES},
                {MHD_OPTION_END, 0, NULL},
        };
        struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

        if (with_tls)
                flags |= MHD_USE_TLS;
        s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,                               //
                                     MHD_OPTION_EXTERNAL_LOGGER, discard_log, NULL,                     //
                                     MHD_OPTION_LISTEN_SOCKET, listen_fd,                               //
                                     MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,                      //
                                     MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,                    //
                                     MHD_OPTION_CONNECTION_LIMIT,                                       //
                                     o->max_connections > 0 ? o->max_connections : CONNECTIONS_DEFAULT, //
                                     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_MEMORY,    //
                                     MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_of_peer,                //
                                     MHD_OPTION_CONNECTION_TIMEOUT,                                     //
                                     o->idle_sec > 0 ? o->idle_sec : IDLE_TIMEOUT_SEC,                  //
                                     MHD_OPTION_ARRAY, with_tls ? tls : none, MHD_OPTION_END);
        return s->daemon ? 0 : -EIO;
}

int http_server_new(sd_event *event, const HttpServerOptions *options, HttpHandler handler, void *userdata,
                    HttpServer **ret, Fault *fault) {
        _cleanup_(http_server_freep) HttpServer *s = calloc(1, sizeof *s);
        _cleanup_close_ int fd = -1;
        int r;

        if (!s)
                return -ENOMEM;
        if (!options->tls_cert != !options->tls_key)
                return fault_set(fault, -EINVAL,
                                 "a TLS certificate needs its key, and a key its certificate");
        if (options->tls_cert) {
                r = tls_pair_set(&s->tls, options->tls_cert, options->tls_key, fault);
                if (r != 0)
                        return r < 0 ? r : -EINVAL;
        }
        fd = http_listen(options->listen, &s->port, fault);
        if (fd < 0)
                return fd;
        s->event = sd_event_ref(event);
        s->handler = handler;
        s->userdata = userdata;
        s->max_body = options->max_body;
        s->end = &s->first;
        s->incoming = ((options->idle_sec > 0 ? options->idle_sec : IDLE_TIMEOUT_SEC) +
                       (options->request_sec > 0 ? options->request_sec : REQUEST_SEC)) *
                      USEC_PER_SEC;
        r = server_start(s, options, fd);
        if (r < 0)
                return fault_set(fault, r, "the HTTP server on %s does not start", options->listen);
        (void) TAKE_FD(fd); /* the daemon closes it */
        r = server_join(s);
        if (r < 0)
                return fault_set(fault, r, "the HTTP server on %s cannot join the event loop",
                                 options->listen);
        *ret = TAKE_PTR(s);
        return 0;
}

HttpServer *http_server_free(HttpServer *s) {
        if (!s)
                return NULL;
        s->closing = true;
        /* libmicrohttpd aborts when it is stopped with suspended connections, so all are resumed
         * first. */
        for (HttpExchange *x = s->exchanges; x; x = x->next)
                exchange_drop(x);
        if (s->daemon) {
                server_run(s);
                MHD_stop_daemon(s->daemon);
        }
        assert(!s->exchanges);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->wake);
        sd_event_source_disable_unref(s->deadline);
        sd_event_unref(s->event);
        tls_pair_done(&s->tls);
        free(s);
        return NULL;
}

int http_server_set_certificate(HttpServer *s, const char *cert, const char *key, Fault *fault) {
        int r = tls_pair_set(&s->tls, cert, key, fault);

        return r > 0 ? HTTP_E_CERTIFICATE : r;
}

uint16_t http_server_port(const HttpServer *s) {
        return s->port;
}

void http_server_keep_alive(HttpServer *s, bool keep) {
        s->ending = !keep;
}

/* ---- answers ---- */

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

static void exchange_answer(HttpExchange *x, unsigned status, const char *content_type,
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

        exchange_answer(x, status, content_type,
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

/* ---- streams ---- */

static ssize_t stream_read(void *userdata, uint64_t position, char *into, size_t max) {
        HttpStream *s = userdata;
        size_t n;

        s->exchange->server->idle_turns = 0;
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
                exchange_suspend(s->exchange);
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
        exchange_answer(x, status, content_type, response);
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
        exchange_resume(s->exchange);
        return 0;
}

void http_stream_end(HttpStream *s) {
        s->ended = true;
        s->on_close = NULL;
        exchange_resume(s->exchange);
}

void http_stream_cut(HttpStream *s) {
        s->cut = true;
        s->on_close = NULL;
        exchange_resume(s->exchange);
}

/* The shutdown makes the socket ready, so that libmicrohttpd finds the stream cut at once. */
void http_stream_abort(HttpStream *s) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(s->exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        buf_done(&s->queue);
        s->sent = 0;
        if (info)
                (void) shutdown(info->connect_fd, SHUT_RDWR); /* fails when the peer is gone already */
        http_stream_cut(s);
}

size_t http_stream_queued(const HttpStream *s) {
        return s->queue.len - s->sent;
}

size_t http_stream_unread(const HttpStream *s) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(s->exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        int n = 0;

        if (info && ioctl(info->connect_fd, SIOCOUTQ, &n) < 0)
                n = 0;
        return http_stream_queued(s) + (size_t) n;
}

void http_stream_on_drain(HttpStream *s, void (*on_drain)(void *userdata)) {
        s->on_drain = on_drain;
}
