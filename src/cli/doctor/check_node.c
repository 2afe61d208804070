/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/check_node.h"

#include <errno.h>
#include <string.h>

#include "wire/yaml.h"

#define RESTART_KUBELET "systemctl restart kubelet"
#define AGENT_LOG       "kubectl -n kube-system logs ds/gpushare-device-plugin-ds -c aliquot-node"

void check_node_kubelet(const Facts *f, Finding *ret) {
        const Fact *list = &f->host.pod_resources;

        if (list->state == FACT_KNOWN)
                finding_set(ret, GRADE_OK, "PodResources answers");
        else if (list->state == FACT_UNASKED || list->state == FACT_DENIED)
                finding_set(ret, GRADE_SKIPPED, "PodResources is not asked: %s", list->why.text);
        else {
                finding_set(ret, GRADE_FAIL, "PodResources does not answer: %s", list->why.text);
                finding_mend(ret, "systemctl status kubelet");
        }
}

void check_node_agent(const Facts *f, Finding *ret) {
        const Fact *socket = &f->host.agent_socket;

        if (socket->state == FACT_KNOWN)
                finding_set(ret, GRADE_OK, "the node agent serves its device plugin");
        else if (socket->state == FACT_UNASKED || socket->state == FACT_DENIED)
                finding_set(ret, GRADE_SKIPPED, "its socket is not looked at: %s", socket->why.text);
        else {
                finding_set(ret, GRADE_FAIL, "no node agent serves here: %s", socket->why.text);
                finding_mend(ret, "kubectl label node NODE ack.node.gpu.schedule=core_mem; " AGENT_LOG);
        }
}

/* Whether one of the sets is that one. A pod that was deleted by force has a record while its
 * processes live, beside that of the next pod of its name. */
static bool has_set(const char *sets, const char *ids) {
        Str rest = str_from(sets);

        while (!str_is_empty(rest))
                if (str_eq(str_split(&rest, ';'), str_from(ids)))
                        return true;
        return false;
}

/* A container that is just admitted has no record yet: the agent writes it at PreStart. So only a
 * record that names other devices is a failure. */
void check_node_records(const Facts *f, Finding *ret) {
        const Fact *listed = &f->host.pod_resources, *records = &f->host.records;
        const char *key, *ids;
        json_t *value;

        if (listed->state != FACT_KNOWN || (records->state != FACT_KNOWN && records->state != FACT_ABSENT)) {
                finding_set(ret, GRADE_SKIPPED, "%s",
                            listed->state != FACT_KNOWN ? listed->why.text : records->why.text);
                return;
        }
        json_object_foreach(listed->json, key, value) {
                ids = fact_text(records->json, key, NULL);
                if (!ids[0] &&
                    finding_add(ret, GRADE_WARN, "%s has devices by the kubelet, and no record", key))
                        finding_mend(ret, AGENT_LOG);
                if (ids[0] && !has_set(ids, json_string_value(value)) &&
                    finding_add(ret, GRADE_FAIL, "%s has %.60s by the record and %.60s by the kubelet", key,
                                ids, json_string_value(value)))
                        finding_mend(ret, "delete the pod, so that it is admitted anew; " AGENT_LOG);
        }
        finding_pass(ret, "%zu containers' devices as the kubelet lists them",
                     json_object_size(listed->json));
}

/* ---- the kubelet's policies ---- */

static void check_gate(const json_t *configuration, const char *name, const char *where, Finding *ret) {
        if (json_is_false(fact_at(configuration, "featureGates", name, NULL)) &&
            finding_add(ret, GRADE_FAIL, "%s: the feature gate %s is off", where, name))
                finding_mend(ret, "remove featureGates.%s from the kubelet's configuration; " RESTART_KUBELET,
                             name);
}

/* The static CPU manager chooses CPUs without asking device plugins. Under these policies of the
 * Topology Manager the kubelet refuses a pod with devices on several NUMA nodes, after the
 * scheduler has placed it (TopologyAffinityError). */
void check_node_configuration(const json_t *configuration, const char *where, Finding *ret) {
        const char *cpu = fact_text(configuration, "cpuManagerPolicy", NULL),
                   *topology = fact_text(configuration, "topologyManagerPolicy", NULL);

        if (strcmp(cpu, "static") == 0 &&
            finding_add(ret, GRADE_FAIL,
                        "%s: cpuManagerPolicy is static, which is not supported on sharing nodes", where))
                finding_mend(ret, "set cpuManagerPolicy: none, rm "
                                  "/var/lib/kubelet/cpu_manager_state, " RESTART_KUBELET);
        check_gate(configuration, "KubeletPodResources", where, ret);
        check_gate(configuration, "DevicePluginCDIDevices", where, ret);
        if ((strcmp(topology, "restricted") == 0 || strcmp(topology, "single-numa-node") == 0) &&
            finding_add(ret, GRADE_WARN,
                        "%s: topologyManagerPolicy is %s, so the kubelet may refuse placed pods", where,
                        topology))
                finding_mend(ret, "set topologyManagerPolicy: best-effort; " RESTART_KUBELET);
}

static int take_document(void *userdata, Str json, unsigned line, Fault *fault) {
        json_t **ret = userdata;

        (void) line;
        (void) fault;
        json_decref(*ret);
        *ret = json_loadb(json.data, json.len, 0, NULL);
        return *ret ? 0 : -ENOMEM;
}

void check_node_policy(const Facts *f, Finding *ret) {
        const Fact *file = &f->host.files[HOST_KUBELET_CONFIG], *state = &f->host.files[HOST_CPU_STATE];
        json_t *configuration = NULL;

        if (file->state == FACT_KNOWN)
                (void) yaml_documents(str_from(file->text), take_document, &configuration, NULL);
        if (configuration)
                check_node_configuration(configuration, "/var/lib/kubelet/config.yaml", ret);
        /* the state also shows it where the kubelet is configured by its command line */
        if (state->state == FACT_KNOWN && strstr(state->text, "\"policyName\":\"static\"") &&
            ret->grade != GRADE_FAIL) {
                finding_set(ret, GRADE_FAIL,
                            "the CPU manager is static, which is not supported on sharing nodes");
                finding_mend(ret, "set cpuManagerPolicy: none, rm "
                                  "/var/lib/kubelet/cpu_manager_state, " RESTART_KUBELET);
        }
        if (configuration || state->state == FACT_KNOWN)
                finding_pass(ret, "CPU manager and Topology Manager do not interfere");
        else
                finding_set(ret, GRADE_SKIPPED, "%s", file->why.text);
        json_decref(configuration);
}

/* ---- the container runtime ---- */

void check_node_runtime(const Facts *f, Finding *ret) {
        const bool *paths = f->host.paths;

        if (paths[PATH_CONTAINERD_SOCKET] || paths[PATH_CRIO_SOCKET])
                finding_set(ret, GRADE_OK, "%s", paths[PATH_CRIO_SOCKET] ? "CRI-O" : "containerd");
        else if (paths[PATH_DOCKER_SOCKET]) {
                finding_set(ret, GRADE_FAIL,
                            "the runtime is Docker, which takes no CDI devices from the kubelet");
                finding_mend(ret, "use containerd or CRI-O, or --set deviceAccess=runtime");
        } else {
                finding_set(ret, GRADE_WARN, "neither containerd's socket nor CRI-O's is at its usual place");
                finding_mend(ret, "crictl info");
        }
}

/* Returns the value of a key in TOML, of a name that is used once; "" where it is absent or
 * commented out. */
static Str toml_value(const char *text, const char *key) {
        Str rest = str_from(text);

        while (rest.len > 0) {
                Str line = str_trim(str_split(&rest, '\n')), name = str_trim(str_split(&line, '='));

                if (str_eq(name, str_from(key)))
                        return str_trim(line);
        }
        return STR("");
}

/* Judges containerd's configuration. containerd 2 writes version 3 of it, and has CDI switched on;
 * 1.7 has it switched off (containerd, docs/cri/config.md). */
static void check_containerd(const char *text, Finding *ret) {
        Str enabled = toml_value(text, "enable_cdi");

        if (str_has_prefix(enabled, STR("false")) ||
            (enabled.len == 0 && str_has_prefix(toml_value(text, "version"), STR("2")))) {
                finding_set(ret, GRADE_FAIL,
                            enabled.len > 0 ? "containerd's configuration has enable_cdi = false"
                                            : "containerd's configuration has no enable_cdi, "
                                              "and 1.7 has CDI off without it");
                finding_mend(ret, "set enable_cdi = true in [plugins.\"io.containerd.grpc.v1.cri\"] of "
                                  "/etc/containerd/config.toml; systemctl restart containerd");
        } else
                finding_set(ret, GRADE_OK, "containerd's configuration has CDI on");
}

static void check_crio(const char *text, Finding *ret) {
        Str folders = toml_value(text, "cdi_spec_dirs");

        if (folders.len > 0 && !memmem(folders.data, folders.len, "/run/cdi", 8)) {
                finding_set(ret, GRADE_FAIL, "CRI-O's cdi_spec_dirs is " STR_FMT ", without /var/run/cdi",
                            STR_ARG(folders));
                finding_mend(ret, "add /var/run/cdi to cdi_spec_dirs; systemctl restart crio");
        } else
                finding_set(ret, GRADE_OK, "CRI-O's configuration has CDI on");
}

/* Whether the cluster's node agents give cards by NVIDIA_VISIBLE_DEVICES
 * (--device-access=runtime). */
static bool uses_runtime_access(const Facts *f) {
        const json_t *pods = fact_at(f->cluster.api[API_PODS].json, "items", NULL);
        bool found = false;

        for (size_t i = 0; i < json_array_size(pods); i++) {
                const json_t *containers = fact_at(json_array_get(pods, i), "spec", "containers", NULL),
                             *args = fact_at(json_array_get(containers, 0), "args", NULL);

                for (size_t k = 0; k < json_array_size(args); k++) {
                        const char *arg = json_string_value(json_array_get(args, k));

                        found |= arg && strcmp(arg, "--device-access=runtime") == 0;
                }
        }
        return found;
}

/* Whether each sharing node of the cluster runs containerd 2. */
static bool has_containerd_2(const Facts *f) {
        size_t n = 0;

        for (size_t i = 0; i < f->cluster.n_nodes; i++) {
                const json_t *info = fact_at(f->cluster.nodes[i].json, "status", "nodeInfo", NULL);
                unsigned major = 0;

                if (!f->cluster.nodes[i].shares)
                        continue;
                if (sscanf(fact_text(info, "containerRuntimeVersion", NULL), "containerd://%u.", &major) !=
                            1 ||
                    major < 2)
                        return false;
                n++;
        }
        return n > 0;
}

void check_node_cdi(const Facts *f, Finding *ret) {
        const Fact *containerd = &f->host.files[HOST_CONTAINERD], *crio = &f->host.files[HOST_CRIO];
        bool is_crio = f->host.paths[PATH_CRIO_SOCKET];

        if (uses_runtime_access(f)) {
                finding_set(ret, GRADE_OK, "not needed with deviceAccess=runtime");
                return;
        }
        if (is_crio)
                check_crio(crio->state == FACT_KNOWN ? crio->text : "", ret);
        else if (containerd->state == FACT_KNOWN)
                check_containerd(containerd->text, ret);
        else if (has_containerd_2(f))
                finding_set(ret, GRADE_OK, "containerd 2 has CDI on, and no configuration is there");
        else {
                finding_set(ret, GRADE_WARN, "%s: containerd 2 has CDI on without it, 1.7 has not",
                            containerd->why.text);
                finding_mend(ret, "containerd --version; containerd config dump | grep enable_cdi");
        }
        if (ret->grade == GRADE_OK && f->host.files[HOST_CDI].state == FACT_ABSENT && !f->host.simulated) {
                finding_set(ret, GRADE_WARN, "the node agent has written no specification of its cards: %s",
                            f->host.files[HOST_CDI].why.text);
                finding_mend(ret, AGENT_LOG);
        }
}

/* ---- mounts ---- */

/* Whether a line of mountinfo (proc(5)) mounts something at or above the path; *ret_point is where.
 * The fields before " - " are optional ones: "shared:N" among them. */
static bool covers_path(Str line, Str path, Str *ret_point, bool *ret_shared) {
        Str point = {0};

        for (int field = 0; field < 5; field++)
                point = str_split(&line, ' ');
        *ret_point = point;
        *ret_shared = memmem(line.data, line.len, " shared:", 8) != NULL;
        return str_eq(point, STR("/")) ||
               (str_has_prefix(path, point) && (path.len == point.len || path.data[point.len] == '/'));
}

void check_node_run_shared(const Facts *f, Finding *ret) {
        const Fact *mounts = &f->host.files[HOST_MOUNTS];
        Str rest, best = STR(""), point;
        bool shared = false, is_shared;

        if (mounts->state != FACT_KNOWN) {
                finding_set(ret, GRADE_SKIPPED, "%s", mounts->why.text);
                return;
        }
        rest = str_from(mounts->text);
        while (rest.len > 0)
                if (covers_path(str_split(&rest, '\n'), STR("/run/aliquot"), &point, &is_shared) &&
                    point.len >= best.len) {
                        best = point;
                        shared = is_shared;
                }
        if (best.len == 0)
                finding_set(ret, GRADE_SKIPPED, "/proc/1/mountinfo has no root");
        else if (shared)
                finding_set(ret, GRADE_OK, STR_FMT " is a shared mount", STR_ARG(best));
        else {
                finding_set(ret, GRADE_FAIL,
                            STR_FMT " is no shared mount: the slices' file systems do not reach the host",
                            STR_ARG(best));
                finding_mend(ret, "mount --make-rshared " STR_FMT, STR_ARG(best));
        }
}

/* ---- other plugins ---- */

void check_node_other_plugin(const Facts *f, Finding *ret) {
        static const char *const names[] = {"nvidia", "vgpu", "aliyungpushare"};
        const json_t *sockets = f->host.plugin_sockets;

        for (size_t i = 0; i < json_array_size(sockets); i++) {
                const char *name = json_string_value(json_array_get(sockets, i));

                for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                        if (strncmp(name, names[k], strlen(names[k])) == 0 &&
                            finding_add(ret, GRADE_FAIL, "%s is the socket of another plugin for GPUs", name))
                                finding_mend(
                                        ret,
                                        "kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false");
        }
        if (json_array_size(sockets) == 0)
                finding_set(ret, GRADE_SKIPPED,
                            "the kubelet's folder of device plugins is empty or cannot be read");
        else
                finding_pass(ret, "no other plugin for GPUs is registered");
}
