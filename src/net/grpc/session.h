/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP/2 connection in the event loop, either side: nghttp2 between a socket and streams of
 * messages. Nothing of gRPC but its framing is known here.
 *
 * The operations are called in the middle of nghttp2's work: they take notes, may write to, end or
 * reset streams, and never free the session (`down` may, and must). Whoever wants to call out does
 * it later, from the loop. */

#include <nghttp2/nghttp2.h>
#include <systemd/sd-event.h>

#include "base/buf.h"

typedef struct RpcSession RpcSession;
typedef struct RpcStream RpcStream;

enum {
        SESSION_MAX_STREAMS = 64,        /* that a peer may open at once */
        SESSION_MAX_HEADERS = 16 * 1024, /* of one call, counted as HPACK does */
        SESSION_WINDOW = 1024 * 1024,    /* a request of 1 MiB comes in one go */
        SESSION_MAX_RESETS = 500,        /* more than the calls that ended well: somebody plays */
        SESSION_MAX_WAITING = 16777216,  /* of one stream, for a peer that does not read */
};

#define SESSION_LOST UINT32_MAX /* the connection went: an error code that HTTP/2 does not have */

/* Embedded in the call or the request it carries. */
struct RpcStream {
        RpcSession *session; /* NULL when the stream is over, or not begun */
        RpcStream *next, **link;
        int32_t id;
        size_t header_bytes;
        Buf out;
        size_t sent; /* of out */
        bool ending; /* nothing comes behind out */
};

typedef struct SessionOps {
        RpcStream *(*open)(void *userdata); /* a peer's call begins; NULL: out of memory. A client has none */
        void (*header)(RpcStream *s, Str name, Str value);
        void (*headers)(RpcStream *s); /* a block of them is complete: headers, or trailers */
        void (*data)(RpcStream *s, Str bytes);
        void (*end)(RpcStream *s);      /* the peer has said all */
        void (*trailers)(RpcStream *s); /* out is gone and ending: rpc_stream_trailers(). A client has none */
        void (*closed)(RpcStream *s, uint32_t error); /* NGHTTP2_NO_ERROR and the like, SESSION_LOST */
        void (*down)(void *userdata, int error); /* negative errno; every stream has been closed before */
} SessionOps;

/* Takes fd, a connected non-blocking socket, also when it fails. A session without `open` is a
 * client. 0, -ENOMEM. */
int session_new(sd_event *event, int fd, const SessionOps *ops, void *userdata, RpcSession **ret);
RpcSession *session_free(RpcSession *s);   /* `closed` is told for each stream, `down` is not */
bool session_is_idle(const RpcSession *s); /* no stream */
bool session_can_request(const RpcSession *s);

/* Headers are copied. Out of memory breaks the connection, later and by itself. */
void session_request(RpcSession *s, RpcStream *stream, const nghttp2_nv *headers, size_t n);
void rpc_stream_respond(RpcStream *s, const nghttp2_nv *headers, size_t n, bool with_data);
void rpc_stream_trailers(RpcStream *s, const nghttp2_nv *headers, size_t n);

/* A message behind those that wait. 0, -ENOMEM, -ENOBUFS when more than SESSION_MAX_WAITING would
 * wait. */
int rpc_stream_write(RpcStream *s, Str message);
void rpc_stream_end(RpcStream *s);

/* Gives the stream up: it belongs to its owner again, `closed` is not told. */
void rpc_stream_reset(RpcStream *s, uint32_t error);
void rpc_stream_done(RpcStream *s); /* the queue; the stream must be over */

nghttp2_nv session_header(const char *name, Str value);

DEFINE_CLEANUP(RpcSession *, session_free)
