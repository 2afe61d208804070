/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc_client.h"

#include <errno.h>
#include <sys/un.h>

#include "net/grpc/frame.h"
#include "net/grpc/metadata.h"
#include "net/grpc/rpc_socket.h"
#include "net/grpc/session.h"

enum {
        MAX_MESSAGE = 16 * 1024 * 1024,
        MAX_DETAIL = 384, /* bytes of the peer's text; the rest of a Fault is for method and path */
};

#define DEFAULT_TIMEOUT  (10 * USEC_PER_SEC)
#define TIMEOUT_ACCURACY USEC_PER_MSEC

/* Deadlines run after the I/O: a process that was stopped beyond one uses an answer that has
 * arrived. */
#define DEADLINE_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 1)

/* A request waits for a connection, or is a stream of the session, or is finished and waits until
 * its `done` is called. */
struct RpcRequest {
        RpcStream stream; /* the first member, so that a stream can be cast to its request */
        RpcClient *client;
        RpcRequest *next, **link; /* in the list of waiting or of finished requests */
        const char *method;
        usec_t timeout;
        sd_event_source *deadline;
        RpcDone done;
        void *userdata;
        FrameReader in;
        uint64_t http_status;
        bool has_status, delivering;
        RpcStatus status;
        char detail[MAX_DETAIL];
};

typedef struct Queue {
        RpcRequest *first, **end;
} Queue;

struct RpcClient {
        sd_event *event;
        sd_event_source *work;
        char *path;
        size_t max_message;
        RpcSession *session;
        Queue waiting, finished;
        bool working, freed; /* freed inside a callback; on_work() completes that */
};

/* ---- requests ---- */

static RpcRequest *request_of(RpcStream *stream) {
        return (RpcRequest *) stream;
}

static void client_work(RpcClient *c) {
        /* cannot fail for a live loop */
        (void) sd_event_source_set_enabled(c->work, SD_EVENT_ONESHOT);
}

static void queue_append(Queue *q, RpcRequest *r) {
        r->link = q->end;
        *q->end = r;
        q->end = &r->next;
        client_work(r->client);
}

static void queue_remove(RpcRequest *r) {
        RpcClient *c = r->client;

        if (!r->link)
                return;
        *r->link = r->next;
        if (r->next)
                r->next->link = r->link;
        else if (c->waiting.end == &r->next)
                c->waiting.end = r->link;
        else if (c->finished.end == &r->next)
                c->finished.end = r->link;
        r->next = NULL;
        r->link = NULL;
}

static void request_destroy(RpcRequest *r) {
        sd_event_source_disable_unref(r->deadline);
        rpc_stream_done(&r->stream);
        frame_reader_done(&r->in);
        free(r);
}

RpcRequest *rpc_request_free(RpcRequest *r) {
        if (!r || r->delivering) /* inside its own `done`, which frees it afterwards */
                return NULL;
        queue_remove(r);
        rpc_stream_reset(&r->stream, NGHTTP2_CANCEL);
        request_destroy(r);
        return NULL;
}

static void set_status(RpcRequest *r, RpcStatus status, const char *detail) {
        r->status = status;
        (void) snprintf(r->detail, sizeof r->detail, "%s", detail);
}

/* Ends a request with a known outcome; the loop then calls `done`. */
static void request_finish(RpcRequest *r) {
        r->deadline = sd_event_source_disable_unref(r->deadline);
        queue_remove(r);
        rpc_stream_reset(&r->stream, NGHTTP2_CANCEL);
        if (r->status != RPC_OK)
                frame_reader_done(&r->in);
        queue_append(&r->client->finished, r);
}

static void request_fail(RpcRequest *r, RpcStatus status, const char *detail) {
        set_status(r, status, detail);
        request_finish(r);
}

static int on_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        request_fail(userdata, RPC_DEADLINE_EXCEEDED, "no answer in time");
        return 0;
}

/* ---- what the server says ---- */

static void on_header(RpcStream *stream, Str name, Str value) {
        RpcRequest *r = request_of(stream);
        uint64_t n;

        if (str_eq(name, STR(":status")) && str_to_u64(value, &n))
                r->http_status = n;
        else if (str_eq(name, STR("grpc-message")))
                metadata_decode_text(value, r->detail, sizeof r->detail);
        else if (str_eq(name, STR("grpc-status"))) {
                r->has_status = true;
                r->status = str_to_u64(value, &n) ? rpc_status_from_wire(n) : RPC_UNKNOWN;
        }
}

static void on_headers(RpcStream *stream) {
}

static void on_data(RpcStream *stream, Str bytes) {
        RpcRequest *r = request_of(stream);
        int e;

        if (r->http_status != 200)
                return; /* not a gRPC message, perhaps an error page */
        e = frame_reader_feed(&r->in, bytes, r->client->max_message);
        if (e == 0)
                return;
        request_fail(r, e == FRAME_E_TOO_LONG || e < 0 ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL,
                     frame_error_to_string(e));
}

static void on_end(RpcStream *stream) {
}

/* Without a gRPC status, maps the HTTP/2 error as grpc/doc/PROTOCOL-HTTP2.md does. */
static void settle_by_error(RpcRequest *r, uint32_t error) {
        switch (error) {
        case SESSION_LOST:
                set_status(r, RPC_UNAVAILABLE, "the connection broke");
                return;
        case NGHTTP2_REFUSED_STREAM:
                set_status(r, RPC_UNAVAILABLE, "the server takes no calls");
                return;
        case NGHTTP2_CANCEL:
                set_status(r, RPC_CANCELLED, "the server cancelled the call");
                return;
        case NGHTTP2_ENHANCE_YOUR_CALM:
                set_status(r, RPC_RESOURCE_EXHAUSTED, "the server asks to be left in peace");
                return;
        case NGHTTP2_NO_ERROR:
                break;
        default:
                set_status(r, RPC_INTERNAL, nghttp2_http2_strerror(error));
                return;
        }
        if (r->http_status != 0 && r->http_status != 200) {
                r->status = rpc_status_from_http(r->http_status);
                (void) snprintf(r->detail, sizeof r->detail, "HTTP status %u",
                                (unsigned) (r->http_status % 1000));
                return;
        }
        set_status(r, RPC_UNKNOWN, "the answer has no status");
}

static void on_closed(RpcStream *stream, uint32_t error) {
        RpcRequest *r = request_of(stream);

        if (!r->has_status)
                settle_by_error(r, error);
        else if (r->status == RPC_OK && frame_reader_finish(&r->in) != 0)
                set_status(r, RPC_INTERNAL, frame_error_to_string(FRAME_E_CUT));
        request_finish(r);
}

static void on_down(void *userdata, int error) {
        RpcClient *c = userdata;

        c->session = session_free(c->session);
        client_work(c); /* waiting requests may connect again */
}

static const SessionOps ops = {
        .header = on_header,
        .headers = on_headers,
        .data = on_data,
        .end = on_end,
        .closed = on_closed,
        .down = on_down,
};

/* ---- the loop ---- */

static int client_connect(RpcClient *c) {
        int fd = rpc_socket_connect(c->path);

        return fd < 0 ? fd : session_new(c->event, fd, &ops, c, &c->session);
}

static void request_submit(RpcRequest *r) {
        char timeout[METADATA_TIMEOUT_SIZE];
        nghttp2_nv headers[] = {
                session_header(":method", STR("POST")),
                session_header(":scheme", STR("http")),
                session_header(":path", str_from(r->method)),
                session_header(":authority", STR("localhost")),
                session_header("te", STR("trailers")),
                session_header("content-type", STR("application/grpc")),
                session_header("user-agent", STR("aliquot/" ALIQUOT_VERSION)),
                {0},
        };

        metadata_format_timeout(r->timeout, timeout);
        headers[ELEMENTSOF(headers) - 1] = session_header("grpc-timeout", str_from(timeout));
        queue_remove(r);
        session_request(r->client->session, &r->stream, headers, ELEMENTSOF(headers));
}

/* Sends the waiting requests. A connection that takes no more calls stays until its calls have
 * ended or reached their deadlines; it is closed once it has none. */
static void client_submit(RpcClient *c) {
        if (c->session && !session_can_request(c->session)) {
                if (!session_is_idle(c->session))
                        return;
                c->session = session_free(c->session);
        }
        if (!c->session) {
                int r = client_connect(c);

                while (r < 0 && c->waiting.first)
                        request_fail(c->waiting.first, RPC_UNAVAILABLE, strerror(-r));
        }
        while (c->waiting.first)
                request_submit(c->waiting.first);
}

static void request_deliver(RpcRequest *r) {
        RpcReply reply = {.status = r->status, .fault = FAULT_NULL};

        queue_remove(r);
        r->delivering = true;
        if (r->status == RPC_OK)
                reply.message = buf_str(&r->in.message);
        else
                (void) fault_set(&reply.fault, 0, "%s on %s: %s: %s", r->method, r->client->path,
                                 rpc_status_to_string(r->status), r->detail);
        r->done(r->userdata, &reply);
        request_destroy(r);
}

static int on_work(sd_event_source *source, void *userdata) {
        RpcClient *c = userdata;

        if (c->waiting.first)
                client_submit(c);
        c->working = true;
        while (c->finished.first)
                request_deliver(c->finished.first);
        c->working = false;
        if (c->freed)
                free(c);
        return 0;
}

/* ---- the client ---- */

int rpc_client_new(sd_event *event, const RpcClientOptions *options, RpcClient **ret) {
        _cleanup_(rpc_client_freep) RpcClient *c = NULL;
        int r;

        if (strlen(options->path) >= sizeof((struct sockaddr_un *) NULL)->sun_path)
                return -ENAMETOOLONG;
        c = calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        *c = (RpcClient){.event = sd_event_ref(event),
                         .path = str_dup(str_from(options->path)),
                         .max_message = options->max_message > 0 ? options->max_message : MAX_MESSAGE};
        c->waiting.end = &c->waiting.first;
        c->finished.end = &c->finished.first;
        if (!c->path)
                return -ENOMEM;
        r = sd_event_add_defer(event, &c->work, on_work, c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

RpcClient *rpc_client_free(RpcClient *c) {
        if (!c || c->freed)
                return NULL;
        c->freed = true;
        session_free(c->session); /* which finishes its requests */
        while (c->waiting.first)
                rpc_request_free(c->waiting.first);
        while (c->finished.first)
                rpc_request_free(c->finished.first);
        sd_event_source_disable_unref(c->work);
        sd_event_unref(c->event);
        free(c->path);
        if (!c->working)
                free(c);
        return NULL;
}

int rpc_call(RpcClient *c, const char *method, Str message, usec_t timeout, RpcDone done, void *userdata,
             RpcRequest **ret) {
        RpcRequest *r = calloc(1, sizeof *r);
        int e;

        if (!r)
                return -ENOMEM;
        *r = (RpcRequest){.client = c,
                          .method = method,
                          .timeout = timeout > 0 ? timeout : DEFAULT_TIMEOUT,
                          .done = done,
                          .userdata = userdata};
        e = rpc_stream_write(&r->stream, message);
        if (e == 0)
                e = sd_event_add_time_relative(c->event, &r->deadline, CLOCK_MONOTONIC, r->timeout,
                                               TIMEOUT_ACCURACY, on_deadline, r);
        if (e >= 0)
                e = sd_event_source_set_priority(r->deadline, DEADLINE_PRIORITY);
        if (e < 0) {
                request_destroy(r);
                return e;
        }
        rpc_stream_end(&r->stream);
        queue_append(&c->waiting, r);
        if (ret)
                *ret = r;
        return 0;
}
