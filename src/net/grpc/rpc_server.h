/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A gRPC server on a unix socket, in the event loop: HTTP/2 by nghttp2, one thread. A handler gets
 * the whole request message and answers once, at once or later; a streaming call is answered many
 * times.
 *
 * Peers are bounded: 16 connections (a new one replaces one without calls), 64 calls on each, 16
 * KiB of headers, 30 s for a request. All unfinished requests together hold at most 8 times
 * max_message. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_status.h"

typedef struct RpcServer RpcServer;
/* one call; it ends with its answer, or with its peer */
typedef struct RpcCall RpcCall;

/* message: the request, valid until the handler returns. A handler that has not answered when it
 * returns must have called rpc_call_on_close(). */
typedef void (*RpcHandler)(void *userdata, RpcCall *call, Str message);

typedef struct RpcMethod {
        const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
        RpcHandler handle;
} RpcMethod;

typedef struct RpcServerOptions {
        /* path of the socket, mode 0600, which replaces one of this name. NULL: no socket */
        const char *path;
        const RpcMethod *methods; /* static; others are answered UNIMPLEMENTED */
        size_t n_methods;
        /* bytes of a request; 0: 4 MiB. A longer one gets RESOURCE_EXHAUSTED without being
         * buffered */
        size_t max_message;
        usec_t request_timeout; /* for receiving a request; 0: 30 s */
        /* Called when a handler has answered a call, or ended a stream. elapsed: since it got the
         * call. May be NULL. */
        void (*on_answered)(void *userdata, const RpcMethod *method, usec_t elapsed);
} RpcServerOptions;

/* Returns 0, -ENOMEM, or negative errno with a fault that names the path: -ENAMETOOLONG, -EEXIST (a
 * file that is no socket has this name) and the errors of sockets. */
int rpc_server_new(sd_event *event, const RpcServerOptions *options, void *userdata, RpcServer **ret,
                   Fault *fault);

/* Cuts open calls (on_close is called) and removes the socket's name while it is ours. Handlers and
 * on_close may call this. */
RpcServer *rpc_server_free(RpcServer *s);

/* Serves a connected, non-blocking socket that did not come through our own. Takes the descriptor
 * even on failure. Returns 0, -EBUSY when all 16 connections have calls, or -ENOMEM. */
int rpc_server_adopt(RpcServer *s, int fd);

/* Sends the one answer, or the last one after rpc_send(). message is copied, at most 16 MiB. The
 * call is freed. */
void rpc_reply(RpcCall *call, Str message);
/* text: UTF-8, the first 2,000 bytes are sent; status: not RPC_OK */
void rpc_fail(RpcCall *call, RpcStatus status, const char *text);

/* Sends one of many answers; the stream stays open. Returns 0, -ENOMEM, or -ENOBUFS when more than
 * 16 MiB would wait for a peer that does not read. rpc_end() ends the stream with RPC_OK. */
int rpc_send(RpcCall *call, Str message);
void rpc_end(RpcCall *call);

/* on_close is called when the peer cancelled, its deadline (grpc-timeout) passed or its connection
 * ended. The call cannot be answered any more: a handler that keeps it must drop it here. Called
 * from the loop, or by rpc_server_free(). */
void rpc_call_on_close(RpcCall *call, void (*on_close)(void *userdata), void *userdata);

DEFINE_CLEANUP(RpcServer *, rpc_server_free)
