/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP/2 connection in the event loop, client or server: nghttp2 between a socket and streams of
 * messages. Of gRPC it knows the framing only.
 *
 * nghttp2 calls the operations in the middle of its work. They may write to, end or reset streams,
 * but never free the session; only `down` may, and must. Callbacks to other code wait for
 * the loop. */

#include <nghttp2/nghttp2.h>
#include <systemd/sd-event.h>

#include "base/buf.h"

typedef struct RpcSession RpcSession;
typedef struct RpcStream RpcStream;

enum {
        SESSION_MAX_STREAMS = 64,        /* streams that a peer may have open at once */
        SESSION_MAX_HEADERS = 16 * 1024, /* bytes of one call's headers, counted as HPACK does */
        SESSION_WINDOW = 1024 * 1024,    /* a request of 1 MiB arrives without a window update */
        SESSION_MAX_RESETS = 500,        /* resets in excess of calls that ended well: an attack */
        /* bytes queued in one stream for a peer that does not read */
        SESSION_MAX_WAITING = 16777216,
};

#define SESSION_LOST UINT32_MAX /* the connection broke; HTTP/2 has no such error code */

/* Embedded in an RpcCall or RpcRequest. */
struct RpcStream {
        RpcSession *session; /* NULL before the stream begins and after it is closed */
        RpcStream *next, **link;
        int32_t id;
        size_t header_bytes;
        Buf out;
        size_t sent; /* bytes of `out` that were sent */
        bool ending; /* the stream ends after `out` */
};

typedef struct SessionOps {
        /* a peer's call begins; NULL: out of memory. Clients have no such operation */
        RpcStream *(*open)(void *userdata);
        void (*header)(RpcStream *s, Str name, Str value);
        void (*headers)(RpcStream *s); /* a block is complete: headers or trailers */
        void (*data)(RpcStream *s, Str bytes);
        void (*end)(RpcStream *s); /* the peer has sent everything */
        /* `out` is sent and the stream ends: call rpc_stream_trailers(). Clients have no such
         * operation */
        void (*trailers)(RpcStream *s);
        /* the stream has ended; error: an NGHTTP2_ code or SESSION_LOST */
        void (*closed)(RpcStream *s, uint32_t error);
        /* the connection has ended; error: negative errno. Every stream was closed before */
        void (*down)(void *userdata, int error);
} SessionOps;

/* Takes fd, a connected non-blocking socket, even on failure. A session without `open` is a client.
 * Returns 0 or -ENOMEM. */
int session_new(sd_event *event, int fd, const SessionOps *ops, void *userdata, RpcSession **ret);
RpcSession *session_free(RpcSession *s);   /* calls `closed` for each stream, not `down` */
bool session_is_idle(const RpcSession *s); /* it has no stream */
bool session_can_request(const RpcSession *s);

/* Send headers (copied): of a new request, of an answer, and at the end of an answer. When memory
 * runs out, the connection breaks later by itself. */
void session_request(RpcSession *s, RpcStream *stream, const nghttp2_nv *headers, size_t n);
void rpc_stream_respond(RpcStream *s, const nghttp2_nv *headers, size_t n, bool with_data);
void rpc_stream_trailers(RpcStream *s, const nghttp2_nv *headers, size_t n);

/* Queues a message. Returns 0, -ENOMEM, or -ENOBUFS when more than SESSION_MAX_WAITING
 * would wait. */
int rpc_stream_write(RpcStream *s, Str message);
void rpc_stream_end(RpcStream *s);

/* Resets the stream. It belongs to its owner again, and `closed` is not called. */
void rpc_stream_reset(RpcStream *s, uint32_t error);
void rpc_stream_done(RpcStream *s); /* frees the queue; the stream must be closed */

nghttp2_nv session_header(const char *name, Str value);

DEFINE_CLEANUP(RpcSession *, session_free)
