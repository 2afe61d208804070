/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unary gRPC calls over a unix socket, from the event loop. The connection is made with the first
 * call, kept, and made again when it broke; calls run side by side on it. Freeing a call cancels
 * it, and `done` is then never told. Nothing is repeated: whoever calls knows whether that is
 * right. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_status.h"

typedef struct RpcClient RpcClient;
typedef struct RpcRequest RpcRequest;

typedef struct RpcReply {
        RpcStatus
                status; /* UNAVAILABLE: no connection, or it broke; DEADLINE_EXCEEDED: ours, or the server's word */
        Str message; /* valid during the callback; empty unless RPC_OK */
        Fault fault; /* for people: method, path, status and what the peer said; "" when RPC_OK */
} RpcReply;

typedef void (*RpcDone)(void *userdata, const RpcReply *reply);

typedef struct RpcClientOptions {
        const char *path;   /* of the socket */
        size_t max_message; /* of a reply; a longer one is RESOURCE_EXHAUSTED; 0: 16 MiB */
} RpcClientOptions;

int rpc_client_new(sd_event *event, const RpcClientOptions *options,
                   RpcClient **ret);      /* 0, -ENAMETOOLONG, -ENOMEM */
RpcClient *rpc_client_free(RpcClient *c); /* cancels every call */

/* method: static; message is copied. `done` is called once, from the loop, never before this returns, and may make calls,
 * free calls (its own, too) and free the client. timeout: of the whole call, sent as grpc-timeout as well; 0: 10 s. 0,
 * -ENOMEM, or -ENOBUFS for a message over 16 MiB. ret may be NULL. */
int rpc_call(RpcClient *c, const char *method, Str message, usec_t timeout, RpcDone done, void *userdata,
             RpcRequest **ret);
RpcRequest *rpc_request_free(RpcRequest *r); /* until `done` was called */

DEFINE_CLEANUP(RpcClient *, rpc_client_free)
