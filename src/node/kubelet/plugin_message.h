/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The v1beta1 messages of a device plugin as bytes: its registration, its list of devices, and the
 * kubelet's requests. Its answers are in plugin_answer.h. */

#include "base/buf.h"
#include "base/fault.h"

/* A Device of v1beta1, without TopologyInfo. With it, under a Topology Manager policy other than
 * none, the kubelet would choose a NUMA node. It would then ask for our preference among the
 * devices of that NUMA node alone (devicesToAllocate, pkg/kubelet/cm/devicemanager/manager.go), and
 * the scheduler's card may be on another one. Under the policy none TopologyInfo has no effect. */
typedef struct PluginDevice {
        char id[16]; /* not empty */
        bool healthy;
} PluginDevice;

/* PLUGIN_MESSAGE_MAX is the default limit of grpc-go for what the kubelet receives. Each device
 * takes 14 bytes or more of it, which bounds the IDs that one request can name. */
enum { PLUGIN_MESSAGE_MAX = 4194304, PLUGIN_IDS_MAX = 300 * 1000 };

/* The IDs of a request are views of the message. */
typedef struct PluginRequest {
        Str *ids;
        size_t n_ids;
        Str *must_include;
        size_t n_must_include;
        int32_t size;
} PluginRequest;

#define PLUGIN_REQUEST_NULL ((PluginRequest){0})

typedef enum PluginRequestKind {
        PLUGIN_REQUEST_PREFERRED,
        PLUGIN_REQUEST_ALLOCATE,
        PLUGIN_REQUEST_PRESTART,
} PluginRequestKind;

/* Returns 0, PLUGIN_REQUEST_E_REFUSED with the reason as fault, or -ENOMEM. */
enum { PLUGIN_REQUEST_E_REFUSED = 1 };
int plugin_message_decode_request(PluginRequestKind kind, Str message, PluginRequest *ret, Fault *fault);
void plugin_message_request_done(PluginRequest *request);

/* Append one message each. */
void plugin_message_put_register(Buf *b, Str endpoint, Str resource);
void plugin_message_put_options(Buf *b);
void plugin_message_put_devices(Buf *b, const PluginDevice *devices, size_t n);

size_t plugin_message_size(const PluginDevice *devices, size_t n); /* bytes of the list of devices */
/* bytes of a field with that many bytes of content */
size_t plugin_message_field_size(size_t content);
