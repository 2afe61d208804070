/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device plugin of one resource, v1beta1 (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1): its
 * socket, its registration with the kubelet, and its calls, decoded and checked. The handler
 * decides the answers.
 *
 * The plugin registers again:
 * - when kubelet.sock or its own socket is replaced (inotify),
 * - when ListAndWatch ends, or does not follow Register,
 * - when Register fails: 5 ms later, then after up to 1 s.
 *
 * When two instances overlap, the kubelet drops the later one at the end of the earlier one
 * (kubernetes#135437); the later one then registers again. The earlier one does not register while
 * the later one lives. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_server.h"
#include "node/kubelet/plugin_answer.h"
#include "node/kubelet/plugin_message.h"

typedef struct Plugin Plugin;

/* The IDs of a request, as views that are valid until the handler returns. */
typedef struct PluginIds {
        const Str *ids;
        size_t n;
} PluginIds;

typedef struct PreferredRequest {
        PluginIds available, must_include;
        uint32_t size;
} PreferredRequest;

/* Each call must be answered once with plugin_answer_*() or rpc_fail(), now or later (see
 * rpc_call_on_close()). The kubelet sends one container per request. A request with several,
 * without IDs, or with too many is answered INVALID_ARGUMENT before it gets here. on_lost is called
 * once for each reason, however often registration fails meanwhile. Each of these may free the
 * plugin. */
typedef struct PluginHandler {
        void (*preferred)(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request);
        void (*allocate)(void *userdata, Plugin *p, RpcCall *call, PluginIds ids);
        void (*prestart)(void *userdata, Plugin *p, RpcCall *call, PluginIds ids);
        void (*on_registered)(void *userdata, Plugin *p); /* ListAndWatch is open; may be NULL */
        void (*on_lost)(void *userdata, Plugin *p,
                        const Fault *why); /* ListAndWatch ended, or Register failed; may be NULL */
        /* A call was answered, by its name in v1beta1. May be NULL. */
        void (*on_answered)(void *userdata, const char *method, usec_t elapsed);
} PluginHandler;

typedef struct PluginOptions {
        const char *kubelet_dir; /* /var/lib/kubelet; the sockets are in device-plugins below it */
        const char *resource;    /* aliyun.com/gpu-mem */
        const char *endpoint;    /* name of the plugin's socket: aliquot-gpu-mem.sock */
} PluginOptions;

/* Serves, and keeps the plugin registered once it has a list of devices. Waits for the kubelet and
 * its directory if they do not exist yet. Returns 0 or negative errno with a fault. */
int plugin_new(sd_event *event, const PluginOptions *options, const PluginHandler *handler, void *userdata,
               Plugin **ret, Fault *fault);
Plugin *plugin_free(Plugin *p);
const char *plugin_resource(const Plugin *p);

/* Registers again a second from now, when the kubelet has dropped the plugin but still holds its
 * stream. The stream is ended, which disconnects no other plugin then. Does nothing unless
 * registered. */
void plugin_register_again(Plugin *p, const Fault *why);

/* Sets the list of ListAndWatch (copied), whether or not the kubelet listens. Returns 0 or -ENOMEM,
 * or PLUGIN_E_TOO_LONG, without any change, if the message would exceed PLUGIN_MESSAGE_MAX. */
enum { PLUGIN_E_TOO_LONG = 1 };
int plugin_set_devices(Plugin *p, const PluginDevice *devices, size_t n);

DEFINE_CLEANUP(Plugin *, plugin_free)
