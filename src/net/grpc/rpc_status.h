/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All gRPC status codes (grpc/doc/statuscodes.md), because a peer may send any. Enum and names come
 * from one list. */

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

/* Maps a number from the wire. A number that is not in the list is UNKNOWN, as in other
 * implementations. */
RpcStatus rpc_status_from_wire(uint64_t code);

/* Maps the HTTP status of an answer without grpc-status (grpc/doc/http-grpc-status-mapping.md). */
RpcStatus rpc_status_from_http(uint64_t http);
