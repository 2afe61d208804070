/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unary gRPC calls over a unix socket, from the event loop. The first call connects; the connection
 * is kept and made again after it broke. Calls run side by side on it. Freeing a call cancels it,
 * and its `done` is then never called. No call is repeated: only the caller knows whether that is
 * safe. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_status.h"

typedef struct RpcClient RpcClient;
typedef struct RpcRequest RpcRequest;

typedef struct RpcReply {
        /* UNAVAILABLE: no connection, or it broke; DEADLINE_EXCEEDED: our deadline or the
         * server's */
        RpcStatus status;
        Str message; /* valid during the callback; empty unless RPC_OK */
        Fault fault; /* method, path, status and the peer's text; "" when RPC_OK */
} RpcReply;

typedef void (*RpcDone)(void *userdata, const RpcReply *reply);

typedef struct RpcClientOptions {
        const char *path;   /* of the socket */
        size_t max_message; /* bytes of a reply; 0: 16 MiB. A longer one is RESOURCE_EXHAUSTED */
} RpcClientOptions;

int rpc_client_new(sd_event *event, const RpcClientOptions *options,
                   RpcClient **ret);      /* 0, -ENAMETOOLONG, -ENOMEM */
RpcClient *rpc_client_free(RpcClient *c); /* cancels every call */

/* Starts a call. method: static; message is copied. timeout: of the whole call, also sent as
 * grpc-timeout; 0: 10 s. ret may be NULL.
 *
 * `done` is called once, from the loop, never before this returns. It may make calls, free calls
 * (its own, too) and free the client. Returns 0, -ENOMEM, or -ENOBUFS for a message over 16 MiB. */
int rpc_call(RpcClient *c, const char *method, Str message, usec_t timeout, RpcDone done, void *userdata,
             RpcRequest **ret);
RpcRequest *rpc_request_free(RpcRequest *r); /* allowed until `done` was called */

DEFINE_CLEANUP(RpcClient *, rpc_client_free)
