/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http/http_server.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "base/metric_text.h"
#include "net/http/http_exchange-internal.h"
#include "net/http/http_listen.h"
#include "net/http/http_server-internal.h"

/* libmicrohttpd runs without threads of its own: its epoll descriptor is one source of our loop,
 * its next deadline another. */

#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

enum {
        CONNECTION_MEMORY = 32 * 1024, /* cleared after each request, so a larger pool is slower */
        /* longer than the 90 s of Go's clients, so that the peer closes first and no
         * request is lost */
        IDLE_TIMEOUT_SEC = 300,
        FIRST_SEC = 10,
        REQUEST_SEC = 60,
        CONNECTIONS_DEFAULT = 1024,
        /* A turn of libmicrohttpd accepts at most 11 connections, and closes those that were shut
         * down in the turn before. */
        CLOSING_MAX = 64,
};

/* ---- libmicrohttpd's callbacks ---- */

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

static bool announces_too_much(HttpServer *s, struct MHD_Connection *connection) {
        const char *length =
                MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
        uint64_t n;

        return length && (!str_to_u64(str_from(length), &n) || n > s->max_body);
}

static enum MHD_Result refuse_body(HttpServer *s, const HttpExchange *x) {
        http_connections_set(&s->connections, x->connection, HTTP_CONNECTION_SENDING);
        if (x->broken)
                return queue_text(x->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
        if (x->too_large)
                return queue_text(x->connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
        return queue_text(x->connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many bodies at once\n");
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **state) {
        HttpServer *s = userdata;
        HttpExchange *x = *state;

        if (!x) {
                if (s->closing)
                        return MHD_NO;
                if (announces_too_much(s, connection))
                        return queue_text(connection, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large\n");
                x = http_exchange_new(s, connection, method, url);
                *state = x;
                return x ? MHD_YES : MHD_NO;
        }
        if (*upload_size > 0) {
                http_exchange_receive(x, upload, *upload_size);
                *upload_size = 0;
                return x->broken ? MHD_NO : MHD_YES;
        }
        if (x->state != EXCHANGE_RECEIVING)
                return http_exchange_proceed(x);
        http_connections_set(&s->connections, connection, HTTP_CONNECTION_BUSY);
        if (x->broken || x->too_large || x->crowded)
                return refuse_body(s, x);
        return http_exchange_begin(x);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code) {
        HttpServer *s = userdata;
        HttpExchange *x = *state;

        http_connections_set(&s->connections, connection, HTTP_CONNECTION_IDLE);
        if (!x)
                return;
        *state = NULL;
        if (x->stream)
                http_stream_closed(x->stream);
        if (x->gone && !x->stream && x->on_close)
                x->on_close(x->on_close_userdata);
        http_exchange_free(x);
}

/* ---- joining the loop ---- */

void http_server_wake(HttpServer *s) {
        /* fails only for NULL */
        (void) sd_event_source_set_enabled(s->wake, SD_EVENT_ONESHOT);
}

static int server_set_timer(HttpServer *s, usec_t when) {
        int r;

        s->armed = when;
        r = sd_event_source_set_time(s->timer, when);
        return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* Sets the timer for libmicrohttpd's next deadline. Idle deadlines move with every request, but the
 * timer is only moved to an earlier time, and is set again when it fires too early. So a request
 * costs no system call for a timer.
 *
 * An expired deadline is a deferred source. */
static int server_arm(HttpServer *s) {
        MHD_UNSIGNED_LONG_LONG milliseconds;
        usec_t now, when;

        if (MHD_get_timeout(s->daemon, &milliseconds) != MHD_YES)
                return 0;
        if (milliseconds == 0)
                return sd_event_source_set_enabled(s->wake, SD_EVENT_ONESHOT);
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
        if (!s->closing)
                http_handshakes_suspend(&s->connections.handshakes);
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
        return server_turn(userdata);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpServer *s = userdata;

        s->armed = 0;
        return server_turn(s);
}

static int on_wake(sd_event_source *source, void *userdata) {
        return server_turn(userdata);
}

/* Adds the wake source, to run after other sources: a deferred source counts as pending since it
 * was made, and would always come first. */
static int server_add_wake(HttpServer *s) {
        int r = sd_event_add_defer(s->event, &s->wake, on_wake, s);

        if (r >= 0)
                r = sd_event_source_set_priority(s->wake, SD_EVENT_PRIORITY_NORMAL + 1);
        return r < 0 ? r : sd_event_source_set_enabled(s->wake, SD_EVENT_OFF);
}

static void on_wanted(void *userdata) {
        http_server_wake(userdata);
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
        r = http_connections_join(&s->connections, s->event, on_wanted, s);
        if (r >= 0)
                r = server_add_wake(s);
        if (r < 0)
                return r;
        return server_arm(s);
}

/* ---- the server ---- */

static void discard_log(void *userdata, const char *format, va_list args) {
        /* Errors of peers are not reported; our own failures are return values. */
}

static unsigned or_else(unsigned value, unsigned otherwise) {
        return value > 0 ? value : otherwise;
}

/* Half of the file limit at most: without a free descriptor accept() fails, and no old connection
 * is closed in favour of the new one. */
static unsigned connections_max(const HttpServerOptions *o) {
        unsigned max = or_else(o->max_connections, CONNECTIONS_DEFAULT);
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 2 < max)
                max = or_else((unsigned) files.rlim_cur / 2, 1);
        return max;
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
        s->daemon =
                MHD_start_daemon(flags, 0, NULL, NULL, on_request, s,                                    //
                                 MHD_OPTION_EXTERNAL_LOGGER, discard_log, NULL,                          //
                                 MHD_OPTION_LISTEN_SOCKET, listen_fd,                                    //
                                 MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,                           //
                                 MHD_OPTION_NOTIFY_CONNECTION, http_connections_notify, &s->connections, //
                                 MHD_OPTION_CONNECTION_LIMIT, s->connections.o.max + CLOSING_MAX,        //
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) CONNECTION_MEMORY,         //
                                 MHD_OPTION_CONNECTION_TIMEOUT, or_else(o->idle_sec, IDLE_TIMEOUT_SEC),  //
                                 MHD_OPTION_ARRAY, with_tls ? tls : none, MHD_OPTION_END);
        return s->daemon ? 0 : -EIO;
}

static void server_init(HttpServer *s, sd_event *event, const HttpServerOptions *o, HttpHandler handler,
                        void *userdata) {
        unsigned max = connections_max(o);
        HttpConnectionsOptions connections = {
                .name = o->name,
                .first = or_else(o->first_sec, FIRST_SEC) * USEC_PER_SEC,
                .idle = or_else(o->idle_sec, IDLE_TIMEOUT_SEC) * USEC_PER_SEC,
                .next = or_else(o->request_sec, REQUEST_SEC) * USEC_PER_SEC,
                .max = max,
                .max_of_address = or_else(o->max_of_address, max > 1 ? max / 2 : 1),
                .on_limit = o->on_limit,
                .userdata = userdata,
        };

        s->event = sd_event_ref(event);
        s->handler = handler;
        s->userdata = userdata;
        s->max_body = o->max_body;
        http_connections_init(&s->connections, &connections);
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
        server_init(s, event, options, handler, userdata);
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
                http_exchange_drop(x);
        http_connections_resume(&s->connections);
        if (s->daemon) {
                server_run(s);
                MHD_stop_daemon(s->daemon);
        }
        assert(!s->exchanges);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->wake);
        http_connections_done(&s->connections);
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
        http_connections_drain(&s->connections, !keep);
}

/* ---- the metric of closed connections ---- */

void http_server_write_closed(const HttpServer *const servers[], size_t n, const char *name, Buf *out) {
        metric_text_head(out, name, "counter",
                         "Connections that a listener closed before their time, by rule.");
        for (size_t i = 0; i < n; i++)
                for (int rule = 0; servers[i] && rule < HTTP_CLOSED_MAX_; rule++) {
                        buf_appendf(out, "%s{", name);
                        metric_text_label(out, "listener", servers[i]->connections.o.name);
                        metric_text_label(out, "rule", http_connections_closed_to_string((HttpClosed) rule));
                        buf_appendf(out, "} %llu\n",
                                    (unsigned long long) servers[i]->connections.closed[rule]);
                }
}
