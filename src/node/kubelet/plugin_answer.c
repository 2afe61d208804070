/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/plugin_answer.h"

#include "node/kubelet/plugin_message.h"
#include "node/kubelet/proto.h"

/* Field numbers of k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1. */
enum {
        CONTAINER = 1, /* of the answers to GetPreferredAllocation and Allocate */
        PREFERRED_IDS = 1,
        ALLOCATED_ENVIRONMENT = 1,
        ALLOCATED_MOUNTS = 2,
        ALLOCATED_CDI = 5,
        ENTRY_KEY = 1,
        ENTRY_VALUE = 2,
        MOUNT_CONTAINER_PATH = 1,
        MOUNT_HOST_PATH = 2,
        MOUNT_READ_ONLY = 3,
        CDI_NAME = 1,
};

/* The answer is a list of container responses; this writes the only one in it. */
static void reply_container(RpcCall *call, const Buf *container) {
        _cleanup_buf_ Buf reply = BUF_NULL;

        proto_put_bytes(&reply, CONTAINER, buf_str(container));
        if (buf_result(container) < 0 || buf_result(&reply) < 0)
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
        else
                rpc_reply(call, buf_str(&reply));
}

void plugin_answer_preferred(RpcCall *call, const Str *ids, size_t n) {
        _cleanup_buf_ Buf container = BUF_NULL;

        for (size_t i = 0; i < n; i++)
                proto_put_bytes(&container, PREFERRED_IDS, ids[i]);
        reply_container(call, &container);
}

static void put_variable(Buf *b, const PluginVariable *v) {
        Str name = str_from(v->name);

        proto_put_length(b, ALLOCATED_ENVIRONMENT,
                         plugin_message_field_size(name.len) + plugin_message_field_size(v->value.len));
        proto_put_bytes(b, ENTRY_KEY, name);
        proto_put_bytes(b, ENTRY_VALUE, v->value);
}

static void put_mount(Buf *b, const PluginMount *m) {
        Str container = str_from(m->container_path), host = str_from(m->host_path);

        proto_put_length(b, ALLOCATED_MOUNTS,
                         plugin_message_field_size(container.len) + plugin_message_field_size(host.len) +
                                 (m->read_only ? 2 : 0));
        proto_put_bytes(b, MOUNT_CONTAINER_PATH, container);
        proto_put_bytes(b, MOUNT_HOST_PATH, host);
        if (m->read_only)
                proto_put_u64(b, MOUNT_READ_ONLY, true);
}

void plugin_answer_allocate(RpcCall *call, const PluginAllocation *a) {
        _cleanup_buf_ Buf container = BUF_NULL;

        for (size_t i = 0; i < a->n_environment; i++)
                put_variable(&container, &a->environment[i]);
        for (size_t i = 0; i < a->n_mounts; i++)
                put_mount(&container, &a->mounts[i]);
        for (size_t i = 0; i < a->n_cdi_devices; i++) {
                Str name = str_from(a->cdi_devices[i]);

                proto_put_length(&container, ALLOCATED_CDI, plugin_message_field_size(name.len));
                proto_put_bytes(&container, CDI_NAME, name);
        }
        reply_container(call, &container);
}

void plugin_answer_prestart(RpcCall *call) {
        rpc_reply(call, (Str){0});
}
