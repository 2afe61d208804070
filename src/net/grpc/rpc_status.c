/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/rpc_status.h"

#include "base/cleanup.h"

#define RPC_STATUS_NAME(name, code) [code] = #name,
static const char *const names[] = {RPC_STATUS_LIST(RPC_STATUS_NAME)};
#undef RPC_STATUS_NAME

const char *rpc_status_to_string(RpcStatus status) {
        return (size_t) status < ELEMENTSOF(names) ? names[status] : "UNKNOWN";
}

RpcStatus rpc_status_from_wire(uint64_t code) {
        return code < ELEMENTSOF(names) ? (RpcStatus) code : RPC_UNKNOWN;
}

RpcStatus rpc_status_from_http(uint64_t http) {
        switch (http) {
        case 400:
                return RPC_INTERNAL;
        case 401:
                return RPC_UNAUTHENTICATED;
        case 403:
                return RPC_PERMISSION_DENIED;
        case 404:
                return RPC_UNIMPLEMENTED;
        case 429:
        case 502:
        case 503:
        case 504:
                return RPC_UNAVAILABLE;
        default:
                return RPC_UNKNOWN;
        }
}
