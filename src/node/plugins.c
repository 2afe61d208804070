/* SPDX-License-Identifier: Apache-2.0 */

/* The device plugin of each resource, and the check that the kubelet still lists its devices. */

#include "base/file.h"
#include "base/log.h"
#include "node/agent-internal.h"

enum { CPU_STATE_MAX = 1 << 20 };

static const char *const endpoints[] = {
        [OFFERED_MEM] = "aliquot-gpu-mem.sock",
        [OFFERED_CORE] = "aliquot-gpu-core.sock",
        [OFFERED_WHOLE] = "aliquot-gpu.sock",
};

static OfferedResource resource_of(const Agent *a, const Plugin *p) {
        int i = 0;

        while (i < OFFERED_WHOLE && p != a->plugins[i])
                i++;
        return (OfferedResource) i;
}

static DeviceKind kind_of(const Agent *a, const Plugin *p) {
        return device_offered_kind(resource_of(a, p));
}

static void on_preferred(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request) {
        Agent *a = userdata;

        resolver_preferred(a->resolver, kind_of(a, p), call, request);
}

static void on_allocate(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Agent *a = userdata;

        resolver_allocate(a->resolver, kind_of(a, p), call, ids);
}

static void on_prestart(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Agent *a = userdata;

        start_verifier_prestart(a->start_verifier, kind_of(a, p), call, ids);
}

/* The static CPU manager chooses CPUs without asking device plugins, so a container may get CPUs
 * and card of different sockets. ACK does not support it either. */
static void check_cpu_manager(Agent *a) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;

        buf_appendf(&path, "%s/cpu_manager_state", a->o.kubelet_dir);
        if (buf_result(&path) < 0 || file_read(path.data, CPU_STATE_MAX, &text) < 0 ||
            !memmem(text.data ? text.data : "", text.len, "\"policyName\":\"static\"", 21))
                return;
        agent_tell_once(
                a, REASON_CPU_MANAGER_STATIC,
                &(Fault){
                        .text = "the kubelet's CPU manager policy is static, which is not supported on nodes "
                                "that share GPUs: set cpuManagerPolicy to none"});
}

static void on_registered(void *userdata, Plugin *p) {
        Agent *a = userdata;

        a->registered[resource_of(a, p)] = true;
        a->counters.registrations++;
        log_info("registered resource=%s", plugin_resource(p));
        check_cpu_manager(a);
        recheck_soon(a->recheck);
}

static size_t expected_devices(void *userdata, OfferedResource resource) {
        const Agent *a = userdata;

        return a->registered[resource] ? a->healthy[resource] : 0;
}

static void on_missing(void *userdata, OfferedResource resource, const Fault *why) {
        Agent *a = userdata;

        a->counters.dropped++;
        plugin_register_again(a->plugins[resource], why);
}

static void on_lost(void *userdata, Plugin *p, const Fault *why) {
        Agent *a = userdata;

        a->registered[resource_of(a, p)] = false;
        resolver_forget(a->resolver);
        a->counters.lost[resource_of(a, p)]++;
        log_warning("not registered resource=%s: %s", plugin_resource(p), why->text);
}

static void on_answered(void *userdata, const char *method, usec_t elapsed) {
        Agent *a = userdata;

        agent_metrics_observe(a->calls, method, elapsed);
}

static const PluginHandler plugin_handler = {
        .preferred = on_preferred,
        .allocate = on_allocate,
        .prestart = on_prestart,
        .on_registered = on_registered,
        .on_lost = on_lost,
        .on_answered = on_answered,
};

int agent_start_plugins(Agent *a, Fault *fault) {
        const RecheckOptions recheck = {.event = a->event,
                                        .socket = a->pod_resources_socket,
                                        .expected = expected_devices,
                                        .on_missing = on_missing,
                                        .userdata = a};
        int e = recheck_new(&recheck, &a->recheck);

        if (e < 0)
                return e;
        for (int i = 0; i < OFFERED_RESOURCES_; i++) {
                PluginOptions options = {
                        .kubelet_dir = a->o.kubelet_dir,
                        .resource = device_offered_name((OfferedResource) i),
                        .endpoint = endpoints[i],
                };
                int r = plugin_new(a->event, &options, &plugin_handler, a, &a->plugins[i], fault);

                if (r < 0)
                        return r;
        }
        return 0;
}
