/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* gRPC status codes (grpc/doc/statuscodes.md): all of them, because a peer may say any. Enum and
 * names come from the one list. */

#include <stdint.h>

#define RPC_STATUS_LIST(X)                                                                                   \
        X(OK, 0)                                                                                             \
        X(CANCELLED, 1)                                                                                      \
        X(UNKNOWN, 2)                                                                                        \
        X(INVALID_ARGUMENT, 3)                                                                               \
        X(DEADLINE_EXCEEDED, 4)                                                                              \
        X(NOT_FOUND, 5)                                                                                      \
        X(ALREADY_EXISTS, 6)                                                                                 \
        X(PERMISSION_DENIED, 7)                                                                              \
        X(RESOURCE_EXHAUSTED, 8)                                                                             \
        X(FAILED_PRECONDITION, 9)                                                                            \
        X(ABORTED, 10)                                                                                       \
        X(OUT_OF_RANGE, 11)                                                                                  \
        X(UNIMPLEMENTED, 12)                                                                                 \
        X(INTERNAL, 13)                                                                                      \
        X(UNAVAILABLE, 14)                                                                                   \
        X(DATA_LOSS, 15)                                                                                     \
        X(UNAUTHENTICATED, 16)

#define RPC_STATUS_ENUM(name, code) RPC_##name = (code),
typedef enum RpcStatus { RPC_STATUS_LIST(RPC_STATUS_ENUM) } RpcStatus;
#undef RPC_STATUS_ENUM

const char *rpc_status_to_string(RpcStatus status); /* "RESOURCE_EXHAUSTED"; static */

/* What a number from the wire means: one that is not in the list is UNKNOWN, as in the other
 * implementations. */
RpcStatus rpc_status_from_wire(uint64_t code);

/* For an answer without grpc-status: what its HTTP status amounts to
 * (grpc/doc/http-grpc-status-mapping.md). */
RpcStatus rpc_status_from_http(uint64_t http);
