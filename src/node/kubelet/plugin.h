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
#include "net/grpc/server.h"

typedef struct Plugin Plugin;

typedef struct PluginDevice {
        char id[16];
        bool healthy;
        int32_t numa; /* -1: none */
} PluginDevice;

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

/* Bytes of the ListAndWatch message for n such devices; grpc-go's default limit of what the kubelet
 * receives. */
enum { PLUGIN_MESSAGE_MAX = 4194304 };
size_t plugin_message_size(const PluginDevice *devices, size_t n);

/* ---- answers ---- */
void plugin_answer_preferred(RpcCall *call, const Str *ids, size_t n);

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
        const PluginVariable *annotations; /* for runtimes that know CDI only by annotation */
        size_t n_annotations;
} PluginAllocation;
void plugin_answer_allocate(RpcCall *call, const PluginAllocation *a);
void plugin_answer_prestart(RpcCall *call);

DEFINE_CLEANUP(Plugin *, plugin_free)
