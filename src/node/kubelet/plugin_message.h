/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Inside of the plugin: v1beta1 messages as bytes. */

#include "base/buf.h"
#include "node/kubelet/plugin.h"

enum {
        /* No kubelet knows more devices than fit into its 4 MiB, at 14 bytes and more each. */
        PLUGIN_IDS_MAX = 300 * 1000,
};

/* What a request asks for; the IDs are views of the message. */
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

/* 0, PLUGIN_REQUEST_E_REFUSED with the reason, -ENOMEM. */
enum { PLUGIN_REQUEST_E_REFUSED = 1 };
int plugin_request_decode(PluginRequestKind kind, Str message, PluginRequest *ret, Fault *fault);
void plugin_request_done(PluginRequest *request);

/* Each appends a message. */
void plugin_put_register(Buf *b, Str endpoint, Str resource);
void plugin_put_options(Buf *b);
void plugin_put_devices(Buf *b, const PluginDevice *devices, size_t n);
