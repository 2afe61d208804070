/* SPDX-License-Identifier: Apache-2.0 */
#include "node/plugins.h"

#include "base/file.h"
#include "base/log.h"

enum { CPU_STATE_MAX = 1 << 20 };

static const char *const endpoints[] = {
        [OFFERED_MEM] = "aliquot-gpu-mem.sock",
        [OFFERED_CORE] = "aliquot-gpu-core.sock",
        [OFFERED_WHOLE] = "aliquot-gpu.sock",
};

const char *const plugins_call_names[PLUGINS_CALLS_] = {
        [PLUGINS_CALL_PREFERRED] = "GetPreferredAllocation",
        [PLUGINS_CALL_ALLOCATE] = "Allocate",
        [PLUGINS_CALL_PRESTART] = "PreStartContainer",
};

static OfferedResource resource_of(const Plugins *all, const Plugin *p) {
        int i = 0;

        while (i < OFFERED_WHOLE && p != all->list[i])
                i++;
        return (OfferedResource) i;
}

static DeviceKind kind_of(const Plugins *all, const Plugin *p) {
        return device_offered_kind(resource_of(all, p));
}

static void on_preferred(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request) {
        Plugins *all = userdata;

        resolver_preferred(all->resolver, kind_of(all, p), call, request);
}

static void on_allocate(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Plugins *all = userdata;

        resolver_allocate(all->resolver, kind_of(all, p), call, ids);
}

static void on_prestart(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Plugins *all = userdata;

        start_verifier_prestart(all->start_verifier, kind_of(all, p), call, ids);
}

/* Warns of the static CPU manager, which chooses CPUs without asking device plugins, so a container
 * may get CPUs and card of different sockets. ACK does not support it either. */
static void check_cpu_manager(const Plugins *all) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;

        buf_appendf(&path, "%s/cpu_manager_state", all->kubelet_dir);
        if (buf_result(&path) < 0 || file_read(path.data, CPU_STATE_MAX, &text) < 0 ||
            !memmem(text.data ? text.data : "", text.len, "\"policyName\":\"static\"", 21))
                return;
        node_events_once(
                all->events, REASON_CPU_MANAGER_STATIC,
                &(Fault){
                        .text = "the kubelet's CPU manager policy is static, which is not supported on nodes "
                                "that share GPUs: set cpuManagerPolicy to none"});
}

static void on_registered(void *userdata, Plugin *p) {
        Plugins *all = userdata;

        all->registered[resource_of(all, p)] = true;
        all->registrations++;
        log_info("registered resource=%s", plugin_resource(p));
        check_cpu_manager(all);
        recheck_soon(all->recheck);
}

static size_t expected_devices(void *userdata, OfferedResource resource) {
        const Plugins *all = userdata;

        return all->registered[resource] ? all->healthy[resource] : 0;
}

static void on_missing(void *userdata, OfferedResource resource, const Fault *why) {
        Plugins *all = userdata;

        all->dropped++;
        plugin_register_again(all->list[resource], why);
}

static void on_lost(void *userdata, Plugin *p, const Fault *why) {
        Plugins *all = userdata;

        all->registered[resource_of(all, p)] = false;
        resolver_forget(all->resolver);
        log_warning("not registered resource=%s: %s", plugin_resource(p), why->text);
}

static void on_answered(void *userdata, const char *method, usec_t elapsed) {
        Plugins *all = userdata;

        for (int i = 0; i < PLUGINS_CALLS_; i++)
                if (strcmp(method, plugins_call_names[i]) == 0)
                        histogram_observe(&all->calls[i], elapsed);
}

static const PluginHandler plugin_handler = {
        .preferred = on_preferred,
        .allocate = on_allocate,
        .prestart = on_prestart,
        .on_registered = on_registered,
        .on_lost = on_lost,
        .on_answered = on_answered,
};

int plugins_start(Plugins *all, sd_event *event, const char *socket, Fault *fault) {
        const RecheckOptions recheck = {.event = event,
                                        .socket = socket,
                                        .expected = expected_devices,
                                        .on_missing = on_missing,
                                        .userdata = all};
        int e = recheck_new(&recheck, &all->recheck);

        if (e < 0)
                return fault_set(fault, e, "out of memory");
        for (int i = 0; i < OFFERED_RESOURCES_; i++) {
                PluginOptions options = {
                        .kubelet_dir = all->kubelet_dir,
                        .resource = device_offered_name((OfferedResource) i),
                        .endpoint = endpoints[i],
                };
                int r = plugin_new(event, &options, &plugin_handler, all, &all->list[i], fault);

                if (r < 0)
                        return r;
        }
        return 0;
}

void plugins_done(Plugins *all) {
        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                all->list[i] = plugin_free(all->list[i]);
        all->recheck = recheck_free(all->recheck);
}
