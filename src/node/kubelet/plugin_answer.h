/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answers of a device plugin to the kubelet, as v1beta1 messages. Each function answers its
 * call, with RESOURCE_EXHAUSTED when there is no memory for the message. */

#include "base/str.h"
#include "net/grpc/rpc_server.h"

typedef struct PluginVariable {
        const char *name;
        Str value;
} PluginVariable;

typedef struct PluginMount {
        const char *container_path, *host_path;
        bool read_only;
} PluginMount;

typedef struct PluginAllocation {
        const PluginVariable *environment;
        size_t n_environment;
        const PluginMount *mounts;
        size_t n_mounts;
        const char *const *cdi_devices; /* "aliquot.dev/gpu=GPU-..." */
        size_t n_cdi_devices;
} PluginAllocation;

void plugin_answer_preferred(RpcCall *call, const Str *ids, size_t n);
void plugin_answer_allocate(RpcCall *call, const PluginAllocation *a);
void plugin_answer_prestart(RpcCall *call);
