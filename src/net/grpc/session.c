/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/session.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "net/grpc/frame.h"

enum {
        /* per turn of the loop, so that no connection starves the others */
        READ_SIZE = 64 * 1024,
        /* frames are gathered up to this size, so that a small answer is one send() */
        WRITE_SIZE = 64 * 1024,
        WRITE_TURN = 1024 * 1024, /* bytes that are written per turn of the loop */
        KEEP_SIZE = 8 * 1024,     /* a buffer up to this size is kept */
};

struct RpcSession {
        nghttp2_session *h2;
        sd_event_source *io, *flush;
        const SessionOps *ops;
        void *userdata;
        RpcStream *streams;
        Buf wire; /* frames to be sent */
        size_t wire_sent;
        unsigned resets;
        int fd, error;
        bool want_out;
};

/* ---- streams ---- */

static void stream_link(RpcSession *s, RpcStream *stream, int32_t id) {
        stream->session = s;
        stream->id = id;
        stream->next = s->streams;
        stream->link = &s->streams;
        if (stream->next)
                stream->next->link = &stream->next;
        s->streams = stream;
}

static void stream_unlink(RpcStream *s) {
        *s->link = s->next;
        if (s->next)
                s->next->link = s->link;
        s->session = NULL;
        s->next = NULL;
        s->link = NULL;
}

static void close_stream(RpcStream *stream, uint32_t error) {
        const SessionOps *ops = stream->session->ops;

        stream_unlink(stream);
        ops->closed(stream, error);
}

static void close_streams(RpcSession *s) {
        while (s->streams)
                close_stream(s->streams, SESSION_LOST);
}

static size_t stream_waiting(const RpcStream *s) {
        return s->out.len - s->sent;
}

/* ---- what nghttp2 tells ---- */

static RpcStream *find_stream(nghttp2_session *h2, int32_t id) {
        return nghttp2_session_get_stream_user_data(h2, id);
}

/* Counts a reset call, which has cost us work and its peer nothing: an endless series is an attack
 * ("rapid reset"). Each call that ends well offsets one reset. */
static void count_reset(RpcSession *s) {
        if (++s->resets == SESSION_MAX_RESETS)
                /* or -ENOMEM, which ends the session later */
                (void) nghttp2_session_terminate_session(s->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream;

        if (!s->ops->open || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        stream = s->ops->open(s->userdata);
        if (!stream)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        stream_link(s, stream, frame->hd.stream_id);
        /* cannot fail: the stream exists */
        (void) nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, stream);
        return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream = find_stream(h2, frame->hd.stream_id);

        if (!stream)
                return 0;
        stream->header_bytes += name_len + value_len + 32; /* RFC 7541 4.1 */
        if (stream->header_bytes > SESSION_MAX_HEADERS)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        s->ops->header(stream, (Str){(const char *) name, name_len}, (Str){(const char *) value, value_len});
        return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream = find_stream(h2, id);

        if (stream)
                s->ops->data(stream, (Str){(const char *) data, len});
        return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream;

        if (frame->hd.type == NGHTTP2_RST_STREAM)
                count_reset(s);
        if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
                return 0;
        stream = find_stream(h2, frame->hd.stream_id);
        if (stream && frame->hd.type == NGHTTP2_HEADERS)
                s->ops->headers(stream);
        if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
                s->ops->end(stream);
        return 0;
}

static int on_frame_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *userdata) {
        RpcSession *s = userdata;
        bool body = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;

        if (frame->hd.type == NGHTTP2_RST_STREAM && frame->rst_stream.error_code != NGHTTP2_NO_ERROR)
                count_reset(s);
        /* A server that answers before the end of a request must tell the peer to stop sending (RFC
         * 9113 8.1). */
        /* on -ENOMEM the peer may go on sending */
        if (s->ops->open && body && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
            nghttp2_session_get_stream_remote_close(h2, frame->hd.stream_id) == 0)
                (void) nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                                 NGHTTP2_NO_ERROR);
        return 0;
}

/* Closes the stream of a request that was never sent because the peer sent GOAWAY: nghttp2 has no
 * stream that could close. */
static int on_frame_not_sent(nghttp2_session *h2, const nghttp2_frame *frame, int error, void *userdata) {
        RpcSession *s = userdata;

        if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
                return 0;
        for (RpcStream *stream = s->streams; stream; stream = stream->next)
                if (stream->id == frame->hd.stream_id) {
                        close_stream(stream, NGHTTP2_REFUSED_STREAM);
                        break;
                }
        return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream = find_stream(h2, id);

        if (error == NGHTTP2_NO_ERROR && s->resets > 0)
                s->resets--;
        if (stream)
                close_stream(stream, error);
        return 0;
}

/* ---- what nghttp2 asks for ---- */

static ssize_t on_read(nghttp2_session *h2, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
                       nghttp2_data_source *source, void *userdata) {
        RpcSession *s = userdata;
        RpcStream *stream = find_stream(h2, id);
        size_t n;

        if (!stream)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* its call was given up meanwhile */
        n = stream_waiting(stream) < max ? stream_waiting(stream) : max;
        if (n > 0)
                memcpy(bytes, stream->out.data + stream->sent, n);
        stream->sent += n;
        if (stream_waiting(stream) > 0)
                return (ssize_t) n;
        /* frees the queue: a message can be long, and the next one days away */
        buf_done(&stream->out);
        stream->sent = 0;
        if (!stream->ending)
                return n > 0 ? (ssize_t) n : NGHTTP2_ERR_DEFERRED;
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (s->ops->trailers) {
                *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
                s->ops->trailers(stream);
        }
        return (ssize_t) n;
}

static const nghttp2_data_provider provider = {.read_callback = on_read};

static void set_callbacks(nghttp2_session_callbacks *c) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(c, on_header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame);
        nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_sent);
        nghttp2_session_callbacks_set_on_frame_not_send_callback(c, on_frame_not_sent);
        nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
}

DEFINE_CLEANUP(nghttp2_session_callbacks *, nghttp2_session_callbacks_del)
DEFINE_CLEANUP(nghttp2_option *, nghttp2_option_del)

/* Kubelets up to 1.25 send a socket's path as :authority, for which nghttp2's HTTP checks would
 * reset every call. These checks are off; rpc_server.c and rpc_client.c check what matters. */
static int make_h2(RpcSession *s) {
        _cleanup_(nghttp2_session_callbacks_delp) nghttp2_session_callbacks *callbacks = NULL;
        _cleanup_(nghttp2_option_delp) nghttp2_option *option = NULL;
        int r;

        if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
                return -ENOMEM;
        set_callbacks(callbacks);
        nghttp2_option_set_no_http_messaging(option, 1);
        /* closed streams serve priorities, which gRPC does not use */
        nghttp2_option_set_no_closed_streams(option, 1);
        /* the limit of streams until the peer's SETTINGS arrive */
        nghttp2_option_set_peer_max_concurrent_streams(option, SESSION_MAX_STREAMS);
        r = s->ops->open ? nghttp2_session_server_new2(&s->h2, callbacks, s, option)
                         : nghttp2_session_client_new2(&s->h2, callbacks, s, option);
        return r == 0 ? 0 : -ENOMEM;
}

static int send_settings(RpcSession *s) {
        const nghttp2_settings_entry settings[] = {
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, SESSION_WINDOW},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, SESSION_MAX_HEADERS},
                {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SESSION_MAX_STREAMS},
                /* only a client may send this, so it is last in the list */
                {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        };

        if (nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings,
                                    ELEMENTSOF(settings) - (s->ops->open ? 1 : 0)) != 0 ||
            nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW) != 0)
                return -ENOMEM;
        return 0;
}

/* ---- the socket ---- */

static int from_h2(ssize_t e) {
        return e == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
}

static int session_read(RpcSession *s) {
        uint8_t bytes[READ_SIZE];
        ssize_t n = recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -ECONNRESET;
        n = nghttp2_session_mem_recv(s->h2, bytes, (size_t) n);
        return n < 0 ? from_h2(n) : 0;
}

static int gather_frames(RpcSession *s) {
        while (s->wire.len < WRITE_SIZE) {
                const uint8_t *bytes;
                ssize_t n = nghttp2_session_mem_send(s->h2, &bytes);

                if (n < 0)
                        return from_h2(n);
                if (n == 0)
                        break;
                buf_append(&s->wire, bytes, (size_t) n);
        }
        return buf_result(&s->wire);
}

static void forget_sent(RpcSession *s) {
        if (s->wire_sent < s->wire.len)
                return;
        s->wire_sent = 0;
        if (s->wire.capacity > KEEP_SIZE)
                buf_done(&s->wire);
        else
                buf_clear(&s->wire);
}

/* Returns 0 when everything is sent, 1 when more is to be sent once the socket accepts it. */
static int session_write(RpcSession *s) {
        for (size_t written = 0; written < WRITE_TURN;) {
                ssize_t n;
                int r = s->wire.len > 0 ? 0 : gather_frames(s);

                if (r < 0 || s->wire.len == 0)
                        return r;
                n = send(s->fd, s->wire.data + s->wire_sent, s->wire.len - s->wire_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0)
                        return errno == EAGAIN || errno == EINTR ? 1 : -errno;
                s->wire_sent += (size_t) n;
                written += (size_t) n;
                forget_sent(s);
        }
        return 1;
}

static int session_flush(RpcSession *s) {
        int r = s->error < 0 ? s->error : session_write(s);

        if (r < 0)
                return r;
        if (r == 0 && !nghttp2_session_want_read(s->h2) && !nghttp2_session_want_write(s->h2))
                return -ECONNRESET; /* GOAWAY was sent, and all calls have ended */
        if (s->want_out == (r > 0))
                return 0;
        s->want_out = r > 0;
        return sd_event_source_set_io_events(s->io, s->want_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void session_down(RpcSession *s, int error) {
        close_streams(s);
        s->ops->down(s->userdata, error);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        RpcSession *s = userdata;
        int r = events & ~(uint32_t) EPOLLOUT ? session_read(s) : 0;

        if (r == 0)
                r = session_flush(s);
        if (r < 0)
                session_down(s, r);
        return 0;
}

static int on_flush(sd_event_source *source, void *userdata) {
        RpcSession *s = userdata;
        int r = session_flush(s);

        if (r < 0)
                session_down(s, r);
        return 0;
}

/* Has answers that were made inside callbacks sent in the loop's next turn. */
static void session_kick(RpcSession *s) {
        /* cannot fail for a live loop */
        (void) sd_event_source_set_enabled(s->flush, SD_EVENT_ONESHOT);
}

static void session_check(RpcSession *s, int h2_error) {
        if (h2_error != 0 && s->error == 0)
                s->error = from_h2(h2_error);
        session_kick(s);
}

int session_new(sd_event *event, int fd, const SessionOps *ops, void *userdata, RpcSession **ret) {
        _cleanup_(session_freep) RpcSession *s = calloc(1, sizeof *s);
        int r;

        if (!s) {
                (void) close(fd);
                return -ENOMEM;
        }
        *s = (RpcSession){.fd = fd, .ops = ops, .userdata = userdata};
        r = make_h2(s);
        if (r == 0)
                r = send_settings(s);
        if (r == 0)
                r = sd_event_add_io(event, &s->io, fd, EPOLLIN, on_io, s);
        if (r >= 0)
                r = sd_event_add_defer(event, &s->flush, on_flush, s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

RpcSession *session_free(RpcSession *s) {
        if (!s)
                return NULL;
        close_streams(s);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->flush);
        nghttp2_session_del(s->h2);
        buf_done(&s->wire);
        (void) close(s->fd);
        free(s);
        return NULL;
}

bool session_is_idle(const RpcSession *s) {
        return !s->streams;
}

bool session_can_request(const RpcSession *s) {
        return s->error == 0 && nghttp2_session_check_request_allowed(s->h2);
}

/* ---- sending ---- */

nghttp2_nv session_header(const char *name, Str value) {
        /* nghttp2 takes no const here; it copies both */
        return (nghttp2_nv){.name = (uint8_t *) (uintptr_t) name,
                            .namelen = strlen(name),
                            .value = (uint8_t *) (uintptr_t) value.data,
                            .valuelen = value.len};
}

void session_request(RpcSession *s, RpcStream *stream, const nghttp2_nv *headers, size_t n) {
        int32_t id = nghttp2_submit_request(s->h2, NULL, headers, n, &provider, stream);

        stream_link(s, stream, id); /* an invalid stream is closed with the connection */
        session_check(s, id < 0 ? id : 0);
}

void rpc_stream_respond(RpcStream *s, const nghttp2_nv *headers, size_t n, bool with_data) {
        session_check(s->session, nghttp2_submit_response(s->session->h2, s->id, headers, n,
                                                          with_data ? &provider : NULL));
}

void rpc_stream_trailers(RpcStream *s, const nghttp2_nv *headers, size_t n) {
        int e = nghttp2_submit_trailer(s->session->h2, s->id, headers, n);

        if (e != 0 && s->session->error == 0)
                s->session->error = from_h2(e);
}

static void stream_resume(RpcStream *s) {
        /* an error means that the stream did not wait */
        (void) nghttp2_session_resume_data(s->session->h2, s->id);
        session_kick(s->session);
}

int rpc_stream_write(RpcStream *s, Str message) {
        if (message.len > SESSION_MAX_WAITING || stream_waiting(s) + message.len > SESSION_MAX_WAITING)
                return -ENOBUFS;
        /* sent bytes are dropped when they are the larger part */
        if (s->sent > s->out.len / 2) {
                memmove(s->out.data, s->out.data + s->sent, stream_waiting(s));
                s->out.len -= s->sent;
                s->sent = 0;
        }
        frame_append(&s->out, message);
        if (buf_result(&s->out) < 0) {
                s->out.broken = false; /* the bytes before the failed append are intact */
                return -ENOMEM;
        }
        if (s->session)
                stream_resume(s);
        return 0;
}

void rpc_stream_end(RpcStream *s) {
        s->ending = true;
        if (s->session)
                stream_resume(s);
}

void rpc_stream_reset(RpcStream *s, uint32_t error) {
        RpcSession *session = s->session;

        if (!session)
                return;
        /* fails only for a stream that is gone */
        (void) nghttp2_session_set_stream_user_data(session->h2, s->id, NULL);
        stream_unlink(s);
        session_check(session, nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, s->id, error));
}

void rpc_stream_done(RpcStream *s) {
        assert(!s->session);
        buf_done(&s->out);
}
