/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/gather.h"

#include <errno.h>
#include <string.h>

#include "cli/doctor/cluster_facts.h"
#include "cli/doctor/driver_facts.h"
#include "cli/doctor/host_facts.h"
#include "cli/doctor/kubelet_facts.h"
#include "cli/run/programs.h"
#include "cli/run/smi_cards.h"
#include "cli/run/smi_print.h"

/* Returns the scopes that are found here, if none is requested. A machine without kubelet and
 * cluster is checked in any case. */
static unsigned find_scopes(const GatherOptions *o, bool has_config) {
        unsigned scopes = has_config ? SCOPE_CLUSTER : 0;

        if (host_facts_exist(o->root, "/var/lib/kubelet/device-plugins"))
                scopes |= SCOPE_NODE | SCOPE_MACHINE;
        if (o->simulate_dir || host_facts_exist(o->root, "/proc/driver/nvidia:/dev/nvidiactl") || scopes == 0)
                scopes |= SCOPE_MACHINE;
        return scopes;
}

/* Asks as aliquot-smi does. On a node its agent audits memory, and pods of mode share have no
 * slice. */
static int read_outside(HostFacts *h) {
        static HostCards cards;
        _cleanup_buf_ Buf lines = BUF_NULL;
        Fault fault = FAULT_NULL;
        SmiSlices slices;
        int r;

        if (h->paths[PATH_PLUGINS] || h->slices.state != FACT_KNOWN || h->slices_n == 0 || smi_slices_own())
                return 0;
        if (h->nvml.state != FACT_KNOWN) { /* that asked within the time limit */
                h->outside.state = h->nvml.state;
                h->outside.why = h->nvml.why;
                return 0;
        }
        r = smi_cards_read(&cards, &fault);
        if (r == 0)
                r = smi_slices_read(h->slices.text, &slices, &fault);
        if (r == -ENOMEM)
                return r;
        if (r != 0) {
                fact_fail(&h->outside, r < 0 ? -r : EIO, "slices");
                if (fault.text[0])
                        h->outside.why = fault;
                return 0;
        }
        r = smi_print_outside(&cards, &slices, &lines);
        smi_slices_done(&slices);
        if (r < 0)
                return r;
        fact_know(&h->outside, str_dup(buf_str(&lines)), false);
        return 0;
}

static int read_machine(const GatherOptions *o, HostFacts *h) {
        char library[LOCATE_PATH];
        int r = host_facts_read(h);

        if (r < 0 || !h->paths[PATH_CTL])
                return r;
        r = driver_facts_read(h, programs_find_simulated(o->simulate_dir, library), o->timeout);
        return r < 0 ? r : read_outside(h);
}

static int ask(const GatherOptions *o, const KubeConfig *config, unsigned scopes, Facts *f) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(kubelet_facts_freep) KubeletFacts *kubelet = NULL;
        _cleanup_(cluster_facts_freep) ClusterQuery *cluster = NULL;
        int r = sd_event_new(&event);

        if (r >= 0 && scopes & SCOPE_NODE)
                r = kubelet_facts_new(event, &f->host, o->timeout, &kubelet);
        if (r >= 0 && scopes & SCOPE_CLUSTER && config)
                r = cluster_facts_new(event, config, o->timeout, &f->cluster, &cluster);
        while (r >= 0 && ((kubelet && !kubelet_facts_complete(kubelet)) ||
                          (cluster && !cluster_facts_complete(cluster))))
                r = sd_event_run(event, UINT64_MAX);
        return r < 0 ? r : 0;
}

/* Loads the cluster's configuration. Without one, the fact of API_VERSION says why, and nothing
 * else is asked. */
static void find_cluster(const GatherOptions *o, KubeConfig **ret, bool *ret_has_config,
                         ClusterFacts *facts) {
        Fault why = FAULT_NULL;
        int r = o->server ? kube_config_for_server(o->server, ret)
                          : kube_config_load(o->kubeconfig, o->context, ret, &why);

        *ret_has_config = r != KUBE_CONFIG_E_NONE || o->kubeconfig || o->context;
        if (r != 0) {
                facts->api[API_VERSION].state = FACT_SILENT;
                facts->api[API_VERSION].why = why;
        }
}

int gather_facts(const GatherOptions *o, unsigned *ret_scopes, Facts *ret) {
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        bool has_config = false;
        int r = 0;

        if (o->scopes == 0 || o->scopes & SCOPE_CLUSTER)
                find_cluster(o, &config, &has_config, &ret->cluster);
        *ret_scopes = o->scopes ? o->scopes : find_scopes(o, has_config);
        ret->now = (int64_t) (clock_realtime_nsec() / 1000000000);
        ret->host.root = o->root;
        ret->host.simulated = o->simulate_dir != NULL;
        (void) snprintf(ret->host.driver, sizeof ret->host.driver, "%s%s",
                        o->simulate_dir             ? o->simulate_dir
                        : strcmp(o->root, "/") == 0 ? ""
                                                    : o->root,
                        o->simulate_dir ? "" : "/dev");
        if (*ret_scopes & (SCOPE_MACHINE | SCOPE_NODE))
                r = read_machine(o, &ret->host);
        return r < 0 ? r : ask(o, config, *ret_scopes, ret);
}
