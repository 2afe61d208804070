/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A gRPC server on a unix socket, in the event loop: HTTP/2 by nghttp2, one thread. A handler gets
 * the whole request message and answers now or later, once; a stream is answered many times.
 * Everything a peer can make us hold is bounded: 16 connections (a new one takes the place of one
 * without calls), 64 calls on each, 16 KiB of headers, 30 s until the request is there, and all
 * unfinished requests together 8 times max_message. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_status.h"

typedef struct RpcServer RpcServer;
typedef struct RpcCall
        RpcCall; /* one call and the answer that is owed; dies with the answer, or with its peer */

/* message: the request, valid until the handler returns. A handler that does not answer at once
 * must have said rpc_call_on_close() when it returns. */
typedef void (*RpcHandler)(void *userdata, RpcCall *call, Str message);

typedef struct RpcMethod {
        const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
        RpcHandler handle;
} RpcMethod;

typedef struct RpcServerOptions {
        const char *path; /* of the socket; a socket that stands there is replaced. Mode 0600. NULL: none */
        const RpcMethod *methods; /* static; others are answered UNIMPLEMENTED */
        size_t n_methods;
        size_t max_message; /* of a request; a longer one is RESOURCE_EXHAUSTED before it is buffered; 0: 4 MiB */
        usec_t request_timeout; /* until it is there; 0: 30 s */
} RpcServerOptions;

/* 0, -ENAMETOOLONG, -EEXIST (something that is no socket stands there) and the like with a fault that names the path,
 * -ENOMEM. */
int rpc_server_new(sd_event *event, const RpcServerOptions *options, void *userdata, RpcServer **ret,
                   Fault *fault);

/* Cuts open calls (on_close is told) and unlinks the socket, if it is still ours. Handlers and
 * on_close may call it. */
RpcServer *rpc_server_free(RpcServer *s);

/* One more connection, by other ways than our socket: a connected, non-blocking one, taken in any case. 0,
 * -EBUSY when all 16 have calls, -ENOMEM. */
int rpc_server_adopt(RpcServer *s, int fd);

/* The one answer, or with rpc_send() before it the last one. message is copied, at most 16 MiB. The
 * call is gone afterwards. */
void rpc_reply(RpcCall *call, Str message);
void rpc_fail(RpcCall *call, RpcStatus status,
              const char *text); /* text: UTF-8, the first 2,000 bytes; status not RPC_OK */

/* One of many; the stream stays open. 0, -ENOMEM, or -ENOBUFS when more than 16 MiB would wait for
 * a peer that does not read. rpc_end() closes it in peace. */
int rpc_send(RpcCall *call, Str message);
void rpc_end(RpcCall *call);

/* The peer cancelled, its deadline (grpc-timeout) passed, or its connection went: whoever keeps a
 * call past its handler must drop it here; it cannot be answered any more. Called from the loop, or
 * by rpc_server_free(). */
void rpc_call_on_close(RpcCall *call, void (*on_close)(void *userdata), void *userdata);

DEFINE_CLEANUP(RpcServer *, rpc_server_free)
