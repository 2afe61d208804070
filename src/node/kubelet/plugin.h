/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One resource's device plugin, v1beta1 (k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1): its socket,
 * its registration with the kubelet, and its calls, decoded and checked. What is answered is
 * decided elsewhere.
 *
 * Registration is kept up by itself: when kubelet.sock or our socket is made anew (inotify), when
 * ListAndWatch ends, when Register fails (5 ms later, then up to 1 s), and when it is not followed
 * by ListAndWatch. While two instances of us overlap, the kubelet drops the later one when the
 * earlier one ends (kubernetes#135437); it comes back by the same rule. The earlier one gives way:
 * it does not register as long as the other lives. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "net/grpc/rpc_server.h"
#include "node/kubelet/plugin_answer.h"
#include "node/kubelet/plugin_message.h"

typedef struct Plugin Plugin;

/* IDs as they came, views valid until the handler returns. */
typedef struct PluginIds {
        const Str *ids;
        size_t n;
} PluginIds;

typedef struct PreferredRequest {
        PluginIds available, must_include;
        uint32_t size;
} PreferredRequest;

/* Each call is answered once with one of plugin_answer_*() or rpc_fail(), now or later (then see
 * rpc_call_on_close()). kubelet sends one container per request; a request with several, without
 * IDs, or with more than can exist is answered INVALID_ARGUMENT by the room itself. on_lost is told
 * once for one reason, however often registration is tried meanwhile. Any of these may free the
 * plugin. */
typedef struct PluginHandler {
        void (*preferred)(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request);
        void (*allocate)(void *userdata, Plugin *p, RpcCall *call, PluginIds ids);
        void (*prestart)(void *userdata, Plugin *p, RpcCall *call, PluginIds ids);
        void (*on_registered)(void *userdata,
                              Plugin *p); /* ListAndWatch is open: the kubelet knows us. May be NULL */
        void (*on_lost)(void *userdata, Plugin *p,
                        const Fault *why); /* it ended, or Register failed. May be NULL */
} PluginHandler;

typedef struct PluginOptions {
        const char *kubelet_dir; /* /var/lib/kubelet; sockets stand in its device-plugins */
        const char *resource;    /* aliyun.com/gpu-mem */
        const char *endpoint;    /* name of our socket there: aliquot-gpu-mem.sock */
} PluginOptions;

/* Serves, and registers at once and again for ever, as soon as there is a list. A kubelet that is
 * not there yet is waited for, its directory as well. 0 or negative errno with a fault. */
int plugin_new(sd_event *event, const PluginOptions *options, const PluginHandler *handler, void *userdata,
               Plugin **ret, Fault *fault);
Plugin *plugin_free(Plugin *p);
const char *plugin_resource(const Plugin *p);

/* The kubelet does not know us, though it listens still: its stream is ended, which disconnects
 * nobody then, and we register again a second later. Nothing happens unless we are registered. */
void plugin_register_again(Plugin *p, const Fault *why);

/* What ListAndWatch says from now on (copied); may be called before anybody listens. IDs are not
 * empty. 0 or -ENOMEM; PLUGIN_E_TOO_LONG when the message would pass the kubelet's 4 MiB (nothing
 * has changed then). */
enum { PLUGIN_E_TOO_LONG = 1 };
int plugin_set_devices(Plugin *p, const PluginDevice *devices, size_t n);

DEFINE_CLEANUP(Plugin *, plugin_free)
