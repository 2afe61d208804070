/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc_server.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/grpc/frame.h"
#include "net/grpc/metadata.h"
#include "net/grpc/rpc_socket.h"
#include "net/grpc/session.h"

enum {
        MAX_CONNECTIONS = 16,
        MAX_MESSAGE = 4 * 1024 * 1024,
        /* all unfinished requests hold at most so many times the limit of one message */
        MESSAGES_AT_ONCE = 8,
        /* accept() calls per second: without free descriptors they would fail in a busy loop */
        MAX_ACCEPTS = 1000,
};

#define REQUEST_TIMEOUT  (30 * USEC_PER_SEC) /* for a whole request over a local socket */
#define TIMEOUT_ACCURACY USEC_PER_MSEC

typedef struct Connection Connection;

/* A call has two owners: its stream, until that is closed, and the handler, from its call until it
 * answers. The last owner frees it. */
struct RpcCall {
        RpcStream stream; /* the first member, so that a stream can be cast to its call */
        RpcServer *server;
        RpcCall *next, **link; /* in ready or closed of the server */
        const RpcMethod *method;
        FrameReader in;
        size_t held; /* bytes of the request that server->held counts */
        bool is_post, is_grpc, has_path, in_service;
        /* request headers received; answer's headers sent; status decided */
        bool heard, begun, answered;
        RpcStatus status;
        Buf text;      /* value of the grpc-message trailer, percent-encoded */
        usec_t handed; /* when the handler got the call */
        /* grpc-timeout of the peer, 0: none; when the call expires (monotonic clock) */
        usec_t timeout, expires;
        sd_event_source *deadline;
        void (*on_close)(void *userdata);
        void *userdata;
};

struct Connection {
        RpcServer *server;
        RpcSession *session;
        Connection *next, **link; /* newest first */
};

struct RpcServer {
        sd_event *event;
        sd_event_source *accept, *work;
        RpcSocket socket;
        const RpcMethod *methods;
        size_t n_methods, max_message, held;
        usec_t request_timeout;
        void (*on_answered)(void *userdata, const RpcMethod *method, usec_t elapsed);
        void *userdata;
        Connection *connections;
        unsigned n_connections;
        RpcCall *ready, **ready_end; /* wait for their handlers, in order of arrival */
        RpcCall *closed;             /* wait for their on_close */
        bool working, freed;         /* freed inside a callback; on_work() completes that */
};

/* ---- calls ---- */

static RpcCall *call_of(RpcStream *stream) {
        return (RpcCall *) stream;
}

static void call_drop_message(RpcCall *call) {
        call->server->held -= call->held;
        call->held = 0;
        frame_reader_done(&call->in);
}

static void call_unlist(RpcCall *call) {
        if (!call->link)
                return;
        *call->link = call->next;
        if (call->next)
                call->next->link = call->link;
        else if (call->server->ready_end == &call->next)
                call->server->ready_end = call->link;
        call->next = NULL;
        call->link = NULL;
}

static void call_list_ready(RpcCall *call) {
        RpcServer *s = call->server;

        call->link = s->ready_end;
        *s->ready_end = call;
        s->ready_end = &call->next;
        /* cannot fail for a live loop */
        (void) sd_event_source_set_enabled(s->work, SD_EVENT_ONESHOT);
}

static void call_list_closed(RpcCall *call) {
        RpcServer *s = call->server;

        call->next = s->closed;
        call->link = &s->closed;
        if (call->next)
                call->next->link = &call->next;
        s->closed = call;
        (void) sd_event_source_set_enabled(s->work, SD_EVENT_ONESHOT);
}

static void call_free(RpcCall *call) {
        call_unlist(call);
        call_drop_message(call);
        sd_event_source_disable_unref(call->deadline);
        buf_done(&call->text);
        rpc_stream_done(&call->stream);
        free(call);
}

/* Ends the handler's ownership of the call. */
static void call_leave(RpcCall *call) {
        call->in_service = false;
        if (!call->stream.session)
                call_free(call);
}

static unsigned status_headers(const RpcCall *call, char digits[static 4], nghttp2_nv *ret) {
        unsigned n = 0;

        (void) snprintf(digits, 4, "%u", (unsigned) call->status % 100);
        ret[n++] = session_header("grpc-status", str_from(digits));
        if (call->text.len > 0)
                ret[n++] = session_header("grpc-message", buf_str(&call->text));
        return n;
}

static void call_begin(RpcCall *call) {
        const nghttp2_nv headers[] = {session_header(":status", STR("200")),
                                      session_header("content-type", STR("application/grpc"))};

        if (call->begun)
                return;
        call->begun = true;
        rpc_stream_respond(&call->stream, headers, ELEMENTSOF(headers), true);
}

/* Answers with a status alone, in the form that gRPC calls Trailers-Only. */
static void call_send_status(RpcCall *call, Str http_status) {
        char digits[4];
        nghttp2_nv headers[4] = {session_header(":status", http_status),
                                 session_header("content-type", STR("application/grpc"))};
        unsigned n = 2 + status_headers(call, digits, headers + 2);

        call->begun = true;
        rpc_stream_respond(&call->stream, headers, n, false);
}

/* Decides the status of the call, whether its handler has run or not, and sends it. */
static void call_finish(RpcCall *call, RpcStatus status, Str text, Str http_status) {
        call_unlist(call);
        call_drop_message(call);
        call->deadline = sd_event_source_disable_unref(call->deadline);
        call->answered = true;
        call->status = status;
        metadata_encode_text(&call->text, text);
        if (buf_result(&call->text) < 0)
                buf_done(&call->text); /* out of memory: the number alone is sent */
        if (call->begun)
                rpc_stream_end(&call->stream);
        else
                call_send_status(call, http_status);
}

static void call_refuse(RpcCall *call, RpcStatus status, const char *text) {
        call_finish(call, status, str_from(text), STR("200"));
}

/* ---- what a peer says ---- */

static RpcStream *on_open(void *userdata) {
        Connection *c = userdata;
        RpcCall *call = calloc(1, sizeof *call);

        if (!call)
                return NULL;
        call->server = c->server;
        return &call->stream;
}

static void call_set_path(RpcCall *call, Str path) {
        const RpcServer *s = call->server;

        call->has_path = true;
        call->method = NULL;
        for (size_t i = 0; i < s->n_methods && !call->method; i++)
                if (str_eq(path, str_from(s->methods[i].path)))
                        call->method = &s->methods[i];
}

static void on_header(RpcStream *stream, Str name, Str value) {
        RpcCall *call = call_of(stream);

        if (call->heard)
                return; /* trailers, which gRPC clients do not send */
        if (str_eq(name, STR(":method")))
                call->is_post = str_eq(value, STR("POST"));
        else if (str_eq(name, STR(":path")))
                call_set_path(call, value);
        else if (str_eq(name, STR("content-type")))
                call->is_grpc = metadata_is_grpc(value);
        else if (str_eq(name, STR("grpc-timeout")) && !metadata_parse_timeout(value, &call->timeout))
                call->timeout = 0; /* a malformed grpc-timeout is ignored */
        else if (str_eq(name, STR("grpc-timeout")) && call->timeout == 0)
                call->timeout = 1; /* "0m" has expired, and 0 stands for no timeout */
}

/* Answers the peer and calls on_close, which may free the server. */
static int on_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        RpcCall *call = userdata;
        void (*on_close)(void *userdata) = call->in_service ? call->on_close : NULL;
        bool heard_all = call->in_service || call->link;
        void *closed = call->userdata;

        call_refuse(call, RPC_DEADLINE_EXCEEDED,
                    heard_all ? "the deadline of the call has passed" : "the request did not come in time");
        call->in_service = false;
        if (on_close)
                on_close(closed);
        return 0;
}

/* Sets the call's deadline: first for the complete request, then the peer's own, if it has one. */
static int call_arm(RpcCall *call) {
        usec_t now, end;
        int r;

        /* cannot fail for this clock */
        (void) sd_event_now(call->server->event, CLOCK_MONOTONIC, &now);
        if (call->timeout > 0)
                call->expires = now + call->timeout;
        end = now + call->server->request_timeout;
        if (call->expires > 0 && call->expires < end)
                end = call->expires;
        r = sd_event_add_time(call->server->event, &call->deadline, CLOCK_MONOTONIC, end, TIMEOUT_ACCURACY,
                              on_deadline, call);
        return r < 0 ? r : 0;
}

static void call_rearm(RpcCall *call) {
        if (call->expires == 0)
                call->deadline = sd_event_source_disable_unref(call->deadline);
        else
                /* cannot fail for a timer */
                (void) sd_event_source_set_time(call->deadline, call->expires);
}

/* The headers are complete: decides whether they begin a valid call. */
static void on_headers(RpcStream *stream) {
        RpcCall *call = call_of(stream);

        if (call->heard)
                return;
        call->heard = true;
        if (!call->is_post) {
                call_finish(call, RPC_INTERNAL, STR("gRPC calls are POST requests"), STR("405"));
                return;
        }
        if (!call->is_grpc) {
                call_finish(call, RPC_INVALID_ARGUMENT, STR("the content type must be application/grpc"),
                            STR("415"));
                return;
        }
        if (!call->method)
                call_refuse(call, RPC_UNIMPLEMENTED,
                            call->has_path ? "no such method here" : "no method named");
        else if (call_arm(call) < 0)
                call_refuse(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
}

static void on_data(RpcStream *stream, Str bytes) {
        RpcCall *call = call_of(stream);
        RpcServer *s = call->server;
        int e;

        if (call->answered)
                return;
        if (bytes.len > s->max_message * MESSAGES_AT_ONCE - s->held) {
                call_refuse(call, RPC_RESOURCE_EXHAUSTED, "too many unfinished requests at once");
                return;
        }
        call->held += bytes.len;
        s->held += bytes.len;
        e = frame_reader_feed(&call->in, bytes, s->max_message);
        if (e == FRAME_E_COMPRESSED)
                call_refuse(call, RPC_UNIMPLEMENTED, frame_error_to_string(e));
        else if (e == FRAME_E_TOO_LONG || e < 0)
                call_refuse(call, RPC_RESOURCE_EXHAUSTED, frame_error_to_string(e));
        else if (e != 0)
                call_refuse(call, RPC_INTERNAL, frame_error_to_string(e));
}

static void on_end(RpcStream *stream) {
        RpcCall *call = call_of(stream);
        int e;

        if (call->answered)
                return;
        e = frame_reader_finish(&call->in);
        if (e != 0) {
                call_refuse(call, RPC_INTERNAL, frame_error_to_string(e));
                return;
        }
        call_rearm(call);
        call_list_ready(call);
}

static void on_trailers(RpcStream *stream) {
        const RpcCall *call = call_of(stream);
        char digits[4];
        nghttp2_nv trailers[2];

        rpc_stream_trailers(stream, trailers, status_headers(call, digits, trailers));
}

static void on_closed(RpcStream *stream, uint32_t error) {
        RpcCall *call = call_of(stream);

        if (!call->in_service) {
                call_free(call);
                return;
        }
        call->deadline = sd_event_source_disable_unref(call->deadline);
        call_list_closed(call);
}

/* ---- connections ---- */

static void connection_free(Connection *c) {
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        c->server->n_connections--;
        session_free(c->session);
        free(c);
}

static void on_down(void *userdata, int error) {
        connection_free(userdata);
}

static const SessionOps ops = {
        .open = on_open,
        .header = on_header,
        .headers = on_headers,
        .data = on_data,
        .end = on_end,
        .trailers = on_trailers,
        .closed = on_closed,
        .down = on_down,
};

/* Closes the oldest connection without calls. Clients connect again, and idle connections cannot
 * keep others out. */
static bool make_room(RpcServer *s) {
        Connection *idle = NULL;

        if (s->n_connections < MAX_CONNECTIONS)
                return true;
        for (Connection *c = s->connections; c; c = c->next)
                if (session_is_idle(c->session))
                        idle = c;
        if (idle)
                connection_free(idle);
        return idle;
}

int rpc_server_adopt(RpcServer *s, int fd) {
        _cleanup_close_ int owned = fd;
        _cleanup_free_ Connection *c = NULL;
        int r;

        if (!make_room(s))
                return -EBUSY;
        c = calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        r = session_new(s->event, TAKE_FD(owned), &ops, c, &c->session);
        if (r < 0)
                return r;
        c->server = s;
        c->next = s->connections;
        c->link = &s->connections;
        if (c->next)
                c->next->link = &c->next;
        s->connections = c;
        s->n_connections++;
        c = NULL;
        return 0;
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer >= 0)
                /* on failure the peer sees that the connection closes */
                (void) rpc_server_adopt(userdata, peer);
        return 0;
}

/* ---- the only place from which handlers and on_close are called, but for deadlines ---- */

static void call_notify_closed(RpcCall *call) {
        void (*on_close)(void *userdata) = call->on_close;
        void *userdata = call->userdata;

        call_free(call);
        if (on_close)
                on_close(userdata);
}

static void call_handle(RpcCall *call) {
        const RpcServer *s = call->server;
        _cleanup_buf_ Buf message = call->in.message;

        call->in.message = BUF_NULL;
        call_unlist(call);
        call_drop_message(call);
        call->in_service = true;
        call->handed = clock_monotonic_usec();
        call->method->handle(s->userdata, call, buf_str(&message));
        /* A handler that returned without an answer needs on_close, or it would never learn that
         * the call is gone. The stream keeps the call until the loop's next turn. */
        assert(s->freed || !call->in_service || call->on_close);
}

static int on_work(sd_event_source *source, void *userdata) {
        RpcServer *s = userdata;

        s->working = true;
        while (s->closed)
                call_notify_closed(s->closed);
        while (s->ready)
                call_handle(s->ready);
        s->working = false;
        if (s->freed)
                free(s);
        return 0;
}

/* ---- the server ---- */

static int server_listen(RpcServer *s, const char *path, Fault *fault) {
        int r = rpc_socket_listen(path, &s->socket, fault);

        if (r < 0)
                return r;
        r = sd_event_add_io(s->event, &s->accept, s->socket.fd, EPOLLIN, on_accept, s);
        if (r >= 0)
                r = sd_event_source_set_ratelimit(s->accept, USEC_PER_SEC, MAX_ACCEPTS);
        return r < 0 ? fault_set(fault, r, "cannot listen on %s: %s", path, strerror(-r)) : 0;
}

int rpc_server_new(sd_event *event, const RpcServerOptions *options, void *userdata, RpcServer **ret,
                   Fault *fault) {
        _cleanup_(rpc_server_freep) RpcServer *s = calloc(1, sizeof *s);
        int r;

        if (!s)
                return fault_set(fault, -ENOMEM, "out of memory");
        *s = (RpcServer){.event = sd_event_ref(event),
                         .socket = RPC_SOCKET_NULL,
                         .methods = options->methods,
                         .n_methods = options->n_methods,
                         .max_message = options->max_message > 0 ? options->max_message : MAX_MESSAGE,
                         .request_timeout =
                                 options->request_timeout > 0 ? options->request_timeout : REQUEST_TIMEOUT,
                         .on_answered = options->on_answered,
                         .userdata = userdata};
        s->ready_end = &s->ready;
        r = sd_event_add_defer(event, &s->work, on_work, s);
        if (r < 0)
                return fault_set(fault, r, "cannot join the event loop: %s", strerror(-r));
        if (options->path) {
                r = server_listen(s, options->path, fault);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(s);
        return 0;
}

RpcServer *rpc_server_free(RpcServer *s) {
        if (!s || s->freed) /* freed by an on_close that was called here */
                return NULL;
        s->freed = true;
        sd_event_source_disable_unref(s->accept);
        rpc_socket_done(&s->socket);
        while (s->connections)
                connection_free(s->connections);
        while (s->closed)
                call_notify_closed(s->closed);
        sd_event_source_disable_unref(s->work);
        sd_event_unref(s->event);
        if (!s->working)
                free(s);
        return NULL;
}

/* ---- answers ---- */

static void tell_answered(const RpcCall *call) {
        const RpcServer *s = call->server;

        if (s->on_answered)
                s->on_answered(s->userdata, call->method, clock_monotonic_usec() - call->handed);
}

void rpc_fail(RpcCall *call, RpcStatus status, const char *text) {
        assert(call->in_service && status != RPC_OK);
        if (call->stream.session) {
                tell_answered(call);
                call_refuse(call, status, text);
        }
        call_leave(call);
}

int rpc_send(RpcCall *call, Str message) {
        int r;

        assert(call->in_service);
        if (!call->stream.session)
                return 0; /* on_close follows */
        r = rpc_stream_write(&call->stream, message);
        if (r == 0)
                call_begin(call);
        return r;
}

void rpc_end(RpcCall *call) {
        assert(call->in_service);
        if (call->stream.session) {
                tell_answered(call);
                call_begin(call);
                call_finish(call, RPC_OK, STR(""), STR("200"));
        }
        call_leave(call);
}

void rpc_reply(RpcCall *call, Str message) {
        int r = rpc_send(call, message);

        if (r < 0)
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED,
                         r == -ENOMEM ? "out of memory" : "the answer is too long");
        else
                rpc_end(call);
}

void rpc_call_on_close(RpcCall *call, void (*on_close)(void *userdata), void *userdata) {
        call->on_close = on_close;
        call->userdata = userdata;
}
