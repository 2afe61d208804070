/* SPDX-License-Identifier: Apache-2.0 */

/* Each check of `aliquot doctor` in a healthy world, in which all are ok, and in worlds with one
 * fault, in which it is not. A check for which no such fault is listed fails the test. */

#include <errno.h>

#include "base/base64.h"
#include "cli/doctor/cluster_facts.h"
#include "cli/doctor/doctor.h"
#include "scheduler/webhook/certificate.h"
#include "test.h"

#define NOW INT64_C(1800000000) /* 2027-01-15T08:00:00Z */

/* Strings with ' for ". */
static char *quoted(const char *text) {
        char *copy = str_dup(str_from(text));

        for (char *c = copy; *c; c++)
                *c = (char) (*c == '\'' ? '"' : *c);
        return copy;
}

static void know(Fact *fact, const char *text) {
        fact_know(fact, quoted(text), text[0] == '{');
        ASSERT_INT(fact->state, FACT_KNOWN);
        fact->date = NOW;
}

static void answer(Facts *f, ApiQuestion question, const char *text) {
        know(&f->cluster.api[question], text);
}

static void fail(Fact *fact, FactState state, const char *why) {
        fact_fail(fact, EIO, "");
        fact->state = state;
        (void) fault_set(&fact->why, 0, "%s", why);
}

/* ---- a healthy world ---- */

#define NODE                                                                                                 \
        "{'items':[{'metadata':{'name':'n1','uid':'u','labels':{'ack.node.gpu.schedule':'core_mem'%s},"      \
        "'annotations':{'aliquot.dev/gpu-mem-unit':'GiB'%s}},'status':{'allocatable':"                       \
        "{'aliyun.com/gpu-mem':'%s'%s},'conditions':[{'type':'Ready','status':'%s'}%s],"                     \
        "'nodeInfo':{'containerRuntimeVersion':'%s'}}}]}"

typedef struct NodeText {
        const char *labels, *annotations, *units, *resources, *ready, *conditions, *runtime;
} NodeText;

static const NodeText good_node = {"", "", "15", "", "True", "", "containerd://2.1.0"};

static void set_node(Facts *f, NodeText t) {
        Fault fault = FAULT_NULL;
        char text[4096];

        (void) snprintf(text, sizeof text, NODE, t.labels, t.annotations, t.units, t.resources, t.ready,
                        t.conditions, t.runtime);
        if (f->cluster.n_nodes > 0) {
                free(f->cluster.nodes[0].name);
                free(f->cluster.nodes[0].text);
                json_decref(f->cluster.nodes[0].json);
        }
        f->cluster.n_nodes = 0;
        answer(f, API_NODES, text);
        ASSERT_OK(cluster_facts_take_nodes(&f->cluster, str_from(f->cluster.api[API_NODES].text), &fault));
        ASSERT_INT(f->cluster.n_nodes, 1);
        ASSERT_TRUE(f->cluster.nodes[0].shares);
}

#define POD                                                                                                  \
        "{'metadata':{'name':'%s','namespace':'kube-system','labels':{'app.kubernetes.io/name':'aliquot',"   \
        "'app.kubernetes.io/component':'%s'},'ownerReferences':[{'kind':'ReplicaSet',"                       \
        "'name':'aliquot-scheduler-1'}]},'spec':{'nodeName':'n1','containers':[{'name':'%s',"                \
        "'image':'%s','args':['node']}]},'status':{'conditions':[{'type':'Ready','status':'%s'}],"           \
        "'containerStatuses':[{'name':'kube-scheduler','ready':%s}]}}"

typedef struct Pods {
        const char *agent_ready, *scheduler, *scheduler_ready, *image, *kube_ready;
} Pods;

static void set_pods(Facts *f, Pods p) {
        char text[8192];

        (void) snprintf(text, sizeof text, "{'items':[" POD "," POD "]}", "agent-1", "node", "aliquot-node",
                        p.image ? p.image : "aliquot:1", p.agent_ready ? p.agent_ready : "True", "false",
                        p.scheduler ? p.scheduler : "scheduler-1", "scheduler", "aliquot-scheduler",
                        "aliquot:1", p.scheduler_ready ? p.scheduler_ready : "True",
                        p.kube_ready ? p.kube_ready : "true");
        answer(f, API_PODS, text);
}

static void set_lease(Facts *f, const char *holder, const char *renewed) {
        char text[512];

        (void) snprintf(text, sizeof text,
                        "{'spec':{'holderIdentity':'%s','leaseDurationSeconds':15,'renewTime':'%s'}}", holder,
                        renewed);
        answer(f, API_LEASE, text);
}

static void set_node_lease(Facts *f, const char *renewed) {
        char text[512];

        (void) snprintf(text, sizeof text, "{'items':[{'metadata':{'name':'n1'},'spec':{'renewTime':'%s'}}]}",
                        renewed);
        answer(f, API_NODE_LEASES, text);
}

static void set_endpoints(Facts *f, const char *extender, const char *webhook) {
        char text[1024];

        (void) snprintf(text, sizeof text,
                        "{'items':[{'metadata':{'labels':{'kubernetes.io/service-name':'aliquot-scheduler'}},"
                        "'endpoints':[%s]},{'metadata':{'labels':{'kubernetes.io/service-name':"
                        "'aliquot-webhook'}},'endpoints':[%s]}]}",
                        extender, webhook);
        answer(f, API_ENDPOINTS, text);
}

#define ENDPOINT "{'conditions':{'ready':true}}"

/* A configuration whose CA was made `age` seconds ago. */
static void set_webhook(Facts *f, ApiQuestion question, int64_t age) {
        _cleanup_pair_ CertificatePair ca = CERTIFICATE_PAIR_NULL;
        _cleanup_buf_ Buf text = BUF_NULL, bundle = BUF_NULL;
        const CertificateRequest request = {.name = "ca", .now = NOW - age, .life = 1000};
        Fault fault = FAULT_NULL;

        ASSERT_OK(certificate_make(&request, NULL, &ca, &fault));
        base64_encode(&bundle, str_from(ca.cert));
        buf_appendf(&text, "{'webhooks':[{'name':'pods.aliquot.dev','clientConfig':{'caBundle':'%s'}}]}",
                    bundle.data);
        answer(f, question, text.data);
}

#define POLICY "{'items':[{'metadata':{'name':'aliquot-scheduler'}%s}%s]}"

static void add_card(HostFacts *h, bool healthy) {
        free(h->cards.cards);
        h->cards.cards = calloc(1, sizeof *h->cards.cards);
        ASSERT_TRUE(h->cards.cards != NULL);
        h->cards.n = 1;
        h->cards.cards[0] = (MachineCard){.healthy = healthy, .model = "V100", .trouble = "MIG is on"};
}

static void set_host(HostFacts *h) {
        h->root = "/";
        (void) snprintf(h->driver, sizeof h->driver, "/dev");
        (void) snprintf(h->release, sizeof h->release, "6.1.0-28-amd64");
        know(&h->files[HOST_DRIVER],
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Thu Oct 19\nGCC version: 12.2\n");
        know(&h->files[HOST_FILESYSTEMS], "nodev\tproc\n");
        know(&h->files[HOST_MOUNTS],
             "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /run rw,nosuid shared:5 - tmpfs run rw\n");
        know(&h->files[HOST_KUBELET_CONFIG], "cpuManagerPolicy: none\ntopologyManagerPolicy: best-effort\n");
        know(&h->files[HOST_CPU_STATE], "{'policyName':'none'}");
        know(&h->files[HOST_CONTAINERD],
             "version = 2\n[plugins.'io.containerd.grpc.v1.cri']\n  enable_cdi = true\n");
        know(&h->files[HOST_CDI], "{}");
        h->paths[PATH_CTL] = h->paths[PATH_UVM] = h->paths[PATH_CONTAINERD_SOCKET] = h->paths[PATH_PLUGINS] =
                true;
        h->n_gpus = 1;
        h->n_cards = 1;
        know(&h->nvml, "580.95.05");
        add_card(h, true);
        know(&h->slices, "/run/aliquot/slices");
        h->slices_free = UINT64_C(64) << 20;
        know(&h->library, "/usr/lib/aliquot/libaliquot.so");
        h->library_same = true;
        h->plugin_sockets = json_pack("[s]", "aliquot-gpu-mem.sock");
        know(&h->agent_socket, "");
        know(&h->pod_resources, "{'default/p/c aliyun.com/gpu-mem':'0-0,0-1'}");
        know(&h->records, "{'default/p/c aliyun.com/gpu-mem':'0-0,0-1'}");
}

static void set_healthy(Facts *f) {
        char policies[512];

        *f = (Facts){.now = NOW};
        set_host(&f->host);
        answer(f, API_VERSION, "{'major':'1','minor':'36','gitVersion':'v1.36.2'}");
        set_node(f, good_node);
        know(&f->cluster.nodes[0].configz, "{'kubeletconfig':{'cpuManagerPolicy':'none'}}");
        know(&f->cluster.nodes[0].ready, "ok");
        set_pods(f, (Pods){0});
        set_lease(f, "scheduler-1", "2027-01-15T07:59:55.000000Z");
        set_node_lease(f, "2027-01-15T07:59:52.000000Z");
        set_endpoints(f, ENDPOINT, ENDPOINT);
        answer(f, API_READY, "ok");
        answer(f, API_METRICS, "aliquot_scheduler_webhook_certificate_end_seconds 1805000000\n");
        set_webhook(f, API_MUTATING, 0);
        set_webhook(f, API_VALIDATING, 0);
        (void) snprintf(policies, sizeof policies, POLICY, "", "");
        answer(f, API_POLICIES, policies);
        answer(f, API_STRAYS, "{'items':[]}");
        answer(f, API_ADMISSION, "{'spec':{'schedulerName':'ack-co-scheduler'}}");
}

/* ---- one fault each ---- */

static void set_release(Facts *f, const char *release) {
        (void) snprintf(f->host.release, sizeof f->host.release, "%s", release);
}

static void set_mutating(Facts *f, const char *bundle) {
        char text[256];

        (void) snprintf(text, sizeof text, "{'webhooks':[{'name':'w','clientConfig':{'caBundle':'%s'}}]}",
                        bundle);
        answer(f, API_MUTATING, text);
}

static void set_policies(Facts *f, const char *own, const char *more) {
        char text[1024];

        (void) snprintf(text, sizeof text, "{'items':[{'metadata':{'name':'%s'}}%s]}", own, more);
        answer(f, API_POLICIES, text);
}

static void deny(Fact *fact) {
        fail(fact, FACT_DENIED, "POST /x: HTTP 403 Forbidden: User \"u\" cannot create resource \"x\"");
}

static void with_node(Facts *f, NodeText t) {
        const NodeText all = {.labels = t.labels ? t.labels : "",
                              .annotations = t.annotations ? t.annotations : "",
                              .units = t.units ? t.units : "15",
                              .resources = t.resources ? t.resources : "",
                              .ready = t.ready ? t.ready : "True",
                              .conditions = t.conditions ? t.conditions : "",
                              .runtime = t.runtime ? t.runtime : good_node.runtime};
        Fact configz = f->cluster.nodes[0].configz, ready = f->cluster.nodes[0].ready;

        set_node(f, all);
        f->cluster.nodes[0].configz = configz;
        f->cluster.nodes[0].ready = ready;
}

typedef struct Spoiled {
        const char *check;
        Grade grade;
        const char *says;
        void (*spoil)(Facts *f, HostFacts *h, Fact *api);
} Spoiled;

/* The number makes the names of the functions differ. */
#define FAULTS(X)                                                                                            \
        X(1, "kernel", FAIL, "3.15", set_release(f, "3.10.0-1160.el7"))                                      \
        X(2, "kernel", WARN, "5.3", set_release(f, "4.18.0"))                                                \
        X(3, "driver", FAIL, "older than 535", know(&h->files[HOST_DRIVER], "Module  525.60.13  x\n"))       \
        X(4, "driver", WARN, "newer than", know(&h->files[HOST_DRIVER], "Module  900.10  x\n"))              \
        X(5, "driver", FAIL, "no NVIDIA driver is loaded",                                                   \
          (h->paths[PATH_CTL] = false, fail(&h->files[HOST_DRIVER], FACT_ABSENT, "")))                       \
        X(6, "devices", FAIL, "nvidiactl is not there", h->paths[PATH_CTL] = false)                          \
        X(7, "devices", FAIL, "no file of a card", h->n_cards = 0)                                           \
        X(8, "devices", FAIL, "has 4 cards", h->n_gpus = 4)                                                  \
        X(9, "uvm", FAIL, "nvidia-uvm is not there", h->paths[PATH_UVM] = false)                             \
        X(10, "nvml", FAIL, "not answer in time", fail(&h->nvml, FACT_SILENT, "does not answer in time"))    \
        X(11, "nvml", FAIL, "NVML is of driver 570.1", know(&h->nvml, "570.1"))                              \
        X(12, "cards", FAIL, "gpu0: MIG is on", add_card(h, false))                                          \
        X(13, "locks", FAIL, "cannot be locked", h->locks = -ENOLCK)                                         \
        X(14, "slices", FAIL, "is full", h->slices_free = 0)                                                 \
        X(100, "outside", WARN, "GPU0: processes in none of these slices hold 3000 MiB",                     \
          know(&h->outside, "GPU0: processes in none of these slices hold 3000 MiB\n"))                      \
        X(15, "library", FAIL, "not there", fail(&h->library, FACT_ABSENT, "it is not there"))               \
        X(16, "library", WARN, "not the one", h->library_same = false)                                       \
        X(17, "library", WARN, "1 of 2 processes", (h->library_users = 2, h->library_old = 1))               \
        X(98, "selinux", FAIL, "has not the label system_u:object_r:container_file_t:s0",                    \
          (h->selinux = true, (void) snprintf(h->unlabelled, sizeof h->unlabelled, "/x")))                   \
        X(18, "kubelet", FAIL, "does not answer", fail(&h->pod_resources, FACT_ABSENT, "no socket"))         \
        X(19, "kubelet-policy", FAIL, "cpuManagerPolicy is static",                                          \
          know(&h->files[HOST_KUBELET_CONFIG], "cpuManagerPolicy: static\n"))                                \
        X(20, "kubelet-policy", FAIL, "CPU manager is static",                                               \
          know(&h->files[HOST_CPU_STATE], "{'policyName':'static'}"))                                        \
        X(21, "kubelet-policy", WARN, "single-numa-node",                                                    \
          know(&h->files[HOST_KUBELET_CONFIG], "topologyManagerPolicy: single-numa-node\n"))                 \
        X(22, "kubelet-policy", FAIL, "KubeletPodResources is off",                                          \
          know(&h->files[HOST_KUBELET_CONFIG], "featureGates: {KubeletPodResources: false}\n"))              \
        X(23, "runtime", FAIL, "Docker",                                                                     \
          (h->paths[PATH_CONTAINERD_SOCKET] = false, h->paths[PATH_DOCKER_SOCKET] = true))                   \
        X(24, "runtime", WARN, "neither", h->paths[PATH_CONTAINERD_SOCKET] = false)                          \
        X(25, "cdi", FAIL, "enable_cdi = false", know(&h->files[HOST_CONTAINERD], "enable_cdi = false\n"))   \
        X(26, "cdi", FAIL, "no enable_cdi",                                                                  \
          know(&h->files[HOST_CONTAINERD], "version = 2\n#enable_cdi = true\n"))                             \
        X(27, "cdi", FAIL, "without /var/run/cdi",                                                           \
          (h->paths[PATH_CRIO_SOCKET] = true, know(&h->files[HOST_CRIO], "cdi_spec_dirs = ['/etc/cdi']\n"))) \
        X(28, "cdi", WARN, "no specification", fail(&h->files[HOST_CDI], FACT_ABSENT, "x"))                  \
        X(29, "cdi", WARN, "containerd 2 has",                                                               \
          (fail(&h->files[HOST_CONTAINERD], FACT_ABSENT, "x"),                                               \
           with_node(f, (NodeText){.runtime = "containerd://1.7.1"})))                                       \
        X(30, "run-shared", FAIL, "/run is no shared mount",                                                 \
          know(&h->files[HOST_MOUNTS],                                                                       \
               "1 0 8:1 / / rw shared:1 - ext4 a rw\n2 1 0:2 / /run rw - tmpfs r rw\n"))                     \
        X(31, "agent", FAIL, "no node agent serves", fail(&h->agent_socket, FACT_SILENT, "refused"))         \
        X(32, "records", FAIL, "0-5 by the record",                                                          \
          know(&h->records, "{'default/p/c aliyun.com/gpu-mem':'0-5'}"))                                     \
        X(33, "records", WARN, "and no record", know(&h->records, "{}"))                                     \
        X(34, "other-plugin", FAIL, "nvidia-gpu.sock",                                                       \
          json_array_append_new(h->plugin_sockets, json_string("nvidia-gpu.sock")))                          \
        X(35, "api", FAIL, "cannot be asked", fail(&api[API_VERSION], FACT_SILENT, "no answer"))             \
        X(36, "api", WARN, "never run",                                                                      \
          answer(f, API_VERSION, "{'major':'1','minor':'99','gitVersion':'v1.99'}"))                         \
        X(37, "nodes", FAIL, "n1 is not Ready", with_node(f, (NodeText){.ready = "False"}))                  \
        X(38, "nodes", FAIL, "offers no aliyun.com/gpu-mem", with_node(f, (NodeText){.units = "0"}))         \
        X(39, "nodes", WARN, "no node shares", f->cluster.nodes[0].shares = false)                           \
        X(40, "labels", WARN, "did you mean",                                                                \
          with_node(f, (NodeText){.annotations = ",'aliquot.dev/max-pod-per-card':'3'"}))                    \
        X(41, "labels", FAIL, "must be true or false",                                                       \
          with_node(f, (NodeText){.annotations = ",'aliquot.dev/allow-mixed':'yes'"}))                       \
        X(42, "agents", FAIL, "n1 has no node agent", answer(f, API_PODS, "{'items':[]}"))                   \
        X(43, "agents", FAIL, "agent-1 is not Ready", set_pods(f, (Pods){.agent_ready = "False"}))           \
        X(44, "agents", WARN, "does not answer",                                                             \
          fail(&f->cluster.nodes[0].ready, FACT_SILENT, "no answer: timeout"))                               \
        X(45, "conditions", FAIL, "GPUShareDriverUnsupported: too old",                                      \
          with_node(f, (NodeText){.conditions = ",{'type':'GPUShareDriverUnsupported','status':'True',"      \
                                                "'reason':'DriverTooOld','message':'too old'}"}))            \
        X(46, "conditions", WARN, "too new",                                                                 \
          with_node(f, (NodeText){.conditions = ",{'type':'GPUShareDriverUnsupported','status':'True',"      \
                                                "'reason':'DriverTooNew','message':'too new'}"}))            \
        X(47, "conditions", FAIL, "no such card",                                                            \
          with_node(f, (NodeText){.conditions = ",{'type':'GPUFenceMisconfigured','status':'True',"          \
                                                "'message':'no such card'}"}))                               \
        X(77, "conditions", WARN, "gpu2 takes no new slice",                                                 \
          with_node(f, (NodeText){.conditions = ",{'type':'GPUShareCardsCordoned','status':'True',"          \
                                                "'message':'gpu2 takes no new slice'}"}))                    \
        X(78, "conditions", FAIL, "GPUShareOtherPlugin: the node offers 2 nvidia.com/gpu, too",              \
          with_node(f, (NodeText){.conditions = ",{'type':'GPUShareOtherPlugin','status':'True',"            \
                                                "'message':'the node offers 2 nvidia.com/gpu, too'}"}))      \
        X(48, "changes", WARN, "mode core_mem -> cgpu",                                                      \
          with_node(f, (NodeText){.annotations = ",'aliquot.dev/change-pending':'mode core_mem -> cgpu'"}))  \
        X(49, "kubelet-policies", FAIL, "n1: cpuManagerPolicy is static",                                    \
          know(&f->cluster.nodes[0].configz, "{'kubeletconfig':{'cpuManagerPolicy':'static'}}"))             \
        X(50, "other-plugins", FAIL, "nvidia.com/gpu, too",                                                  \
          with_node(f, (NodeText){.resources = ",'nvidia.com/gpu':'4'"}))                                    \
        X(51, "runtimes", FAIL, "containerd://1.6.9",                                                        \
          with_node(f, (NodeText){.runtime = "containerd://1.6.9"}))                                         \
        X(52, "runtimes", WARN, "docker://24", with_node(f, (NodeText){.runtime = "docker://24"}))           \
        X(53, "extender", FAIL, "has no endpoint",                                                           \
          (set_endpoints(f, "", ENDPOINT), fail(&api[API_READY], FACT_SILENT, "HTTP 503")))                  \
        X(54, "extender", WARN, "not ready", fail(&api[API_READY], FACT_SILENT, "GET x: HTTP 503"))          \
        X(55, "leader", FAIL, "ever elected", fail(&api[API_LEASE], FACT_ABSENT, "HTTP 404"))                \
        X(56, "leader", FAIL, "has no holder", set_lease(f, "", "2027-01-15T07:59:55.000000Z"))              \
        X(57, "leader", FAIL, "not renewed", set_lease(f, "x", "2027-01-15T07:58:00.000000Z"))               \
        X(58, "leader", WARN, "in no pod of aliquot that is ready",                                          \
          set_pods(f, (Pods){.scheduler = "scheduler-2"}))                                                   \
        X(79, "leader", WARN, "in no pod of aliquot that is ready",                                          \
          set_pods(f, (Pods){.scheduler = "scheduler-11"}))                                                  \
        X(80, "leader", WARN, "in no pod of aliquot that is ready",                                          \
          set_pods(f, (Pods){.scheduler_ready = "False"}))                                                   \
        X(59, "kube-scheduler", FAIL, "no kube-scheduler is ready in a pod of aliquot-scheduler",            \
          set_pods(f, (Pods){.kube_ready = "false"}))                                                        \
        X(60, "webhook", FAIL, "there is no Mutating", fail(&api[API_MUTATING], FACT_ABSENT, "HTTP 404"))    \
        X(61, "webhook", FAIL, "there is no Validating",                                                     \
          fail(&api[API_VALIDATING], FACT_ABSENT, "HTTP 404"))                                               \
        X(62, "webhook", FAIL, "has no caBundle", set_mutating(f, ""))                                       \
        X(63, "webhook", FAIL, "is no certificate", set_mutating(f, "bm9uZQ=="))                             \
        X(64, "webhook", FAIL, "has expired", set_webhook(f, API_VALIDATING, 1001))                          \
        X(65, "webhook", FAIL, "aliquot-webhook has no endpoint", set_endpoints(f, ENDPOINT, ""))            \
        X(66, "certificate", FAIL, "has expired",                                                            \
          answer(f, API_METRICS, "aliquot_scheduler_webhook_certificate_end_seconds 1799999999\n"))          \
        X(67, "certificate", WARN, "in 2 hours",                                                             \
          answer(f, API_METRICS, "aliquot_scheduler_webhook_certificate_end_seconds 1800007300\n"))          \
        X(68, "admission", FAIL, "are refused",                                                              \
          fail(&api[API_ADMISSION], FACT_SILENT, "HTTP 500: failed calling webhook"))                        \
        X(69, "admission", FAIL, "default-scheduler",                                                        \
          answer(f, API_ADMISSION, "{'spec':{'schedulerName':'default-scheduler'}}"))                        \
        X(70, "network", FAIL, "there is no NetworkPolicy",                                                  \
          set_policies(f, "other",                                                                           \
                       ",{'spec':{'podSelector':"                                                            \
                       "{'matchLabels':{'a':'b'}}}}"))                                                       \
        X(71, "network", WARN, "deny-all",                                                                   \
          set_policies(f, "aliquot-scheduler",                                                               \
                       ",{'metadata':{'name':'deny-all'},'spec':{'podSelector':{}}}"))                       \
        X(72, "clock", FAIL, "this machine's clock is 100 s ahead", f->now += 100)                           \
        X(73, "clock", WARN, "10 s behind", f->now -= 10)                                                    \
        X(74, "clock", FAIL, "the clock of n1 is 3600 s ahead",                                              \
          set_node_lease(f, "2027-01-15T09:00:00.000000Z"))                                                  \
        X(75, "clock", FAIL, "the clock of n1 is 3600 s behind",                                             \
          set_node_lease(f, "2027-01-15T07:00:00.000000Z"))                                                  \
        X(99, "memory", WARN, "n1, 2027-01-15T07:59:00Z: 4000 MiB are no pod's",                             \
          answer(f, API_STRAYS,                                                                              \
                 "{'items':[{'reason':'GPUMemoryUnaccounted','involvedObject':{'name':'n1'},"                \
                 "'lastTimestamp':'2027-01-15T07:59:00Z','message':'4000 MiB are no pod\\u0027s'}]}"))       \
        X(76, "versions", WARN, "scheduler-1 runs aliquot:1, others aliquot:0",                              \
          set_pods(f, (Pods){.image = "aliquot:0"}))

#define SPOIL(n, check, grade, says, ...)                                                                    \
        static void spoil_##n(Facts *f, HostFacts *h, Fact *api) {                                           \
                (void) h;                                                                                    \
                (void) api;                                                                                  \
                (void) (__VA_ARGS__);                                                                        \
        }
FAULTS(SPOIL)

static const Spoiled faults[] = {
#define ROW(n, check, grade, says, ...) {check, GRADE_##grade, says, spoil_##n},
        FAULTS(ROW)};

static const DoctorCheck *find(const char *name) {
        for (size_t i = 0; i < doctor_n_checks; i++)
                if (strcmp(doctor_checks[i].name, name) == 0)
                        return &doctor_checks[i];
        abort();
}

static void all_ok_in_a_healthy_world(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        for (size_t i = 0; i < doctor_n_checks; i++) {
                doctor_judge(&doctor_checks[i], &f, &found);
                if (found.grade != GRADE_OK)
                        TEST_FAIL_("%s is %s: %s", doctor_checks[i].name, finding_word(found.grade),
                                   found.said.text);
                ASSERT_TRUE(found.said.text[0] != '\0');
                ASSERT_TEXT(found.mend.text, "");
        }
}

static void each_fault_is_found(void) {
        for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
                _cleanup_facts_ Facts f;
                Finding found;

                set_healthy(&f);
                faults[i].spoil(&f, &f.host, f.cluster.api);
                doctor_judge(find(faults[i].check), &f, &found);
                if (found.grade != faults[i].grade)
                        TEST_FAIL_("fault %zu: %s is %s: %s", i + 1, faults[i].check,
                                   finding_word(found.grade), found.said.text);
                ASSERT_CONTAINS(found.said.text, faults[i].says);
                ASSERT_TRUE(found.mend.text[0] != '\0');
        }
}

/* These never fail: what they find mends itself, or is over. */
static bool only_warns(const char *check) {
        return strcmp(check, "changes") == 0 || strcmp(check, "versions") == 0 ||
               strcmp(check, "memory") == 0 || strcmp(check, "outside") == 0;
}

static void each_check_can_fail(void) {
        for (size_t i = 0; i < doctor_n_checks; i++) {
                const char *name = doctor_checks[i].name;
                bool fails = false;

                for (size_t k = 0; k < ELEMENTSOF(faults); k++)
                        fails |= strcmp(faults[k].check, name) == 0 &&
                                 faults[k].grade == (only_warns(name) ? GRADE_WARN : GRADE_FAIL);
                if (!fails)
                        TEST_FAIL_("no fault makes %s fail", name);
        }
}

static void nothing_known_is_no_ok(void) {
        _cleanup_facts_ Facts f = {.now = NOW};
        Finding found;

        for (size_t i = 0; i < doctor_n_checks; i++) {
                doctor_judge(&doctor_checks[i], &f, &found);
                if (found.grade == GRADE_OK)
                        TEST_FAIL_("%s is ok: %s", doctor_checks[i].name, found.said.text);
        }
}

static void without_rights_is_skipped(void) {
        _cleanup_facts_ Facts f = {.now = NOW};
        Finding found;

        for (int i = 0; i < API_QUESTIONS_; i++)
                deny(&f.cluster.api[i]);
        for (size_t i = 0; i < doctor_n_checks; i++)
                if (doctor_checks[i].scope == SCOPE_CLUSTER) {
                        doctor_judge(&doctor_checks[i], &f, &found);
                        ASSERT_INT(found.grade, GRADE_SKIPPED);
                        if (strcmp(doctor_checks[i].name, "clock") != 0)
                                ASSERT_CONTAINS(found.mend.text, "with the right to");
                }
}

/* A policy keeps the API server from the extender; its endpoints say enough. */
static void silence_of_the_extender(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        fail(&f.cluster.api[API_READY], FACT_SILENT, "no answer: timeout");
        doctor_judge(find("extender"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
        ASSERT_CONTAINS(found.said.text, "1 ready endpoint; the extender was not asked itself");
        set_endpoints(&f, ENDPOINT "," ENDPOINT, ENDPOINT);
        doctor_judge(find("extender"), &f, &found);
        ASSERT_CONTAINS(found.said.text, "2 ready endpoints;");
}

static void both_configurations_of_the_webhook_are_asked_for(void) {
        for (ApiQuestion i = API_MUTATING; i <= API_VALIDATING; i++) {
                _cleanup_facts_ Facts f;
                Finding found;

                set_healthy(&f);
                fail(&f.cluster.api[i], FACT_SILENT, "no answer: timeout");
                doctor_judge(find("webhook"), &f, &found);
                ASSERT_INT(found.grade, GRADE_SKIPPED);
                ASSERT_CONTAINS(found.said.text, "timeout");
        }
}

/* The label says another mode, and slices of the mode before are left. */
static void a_node_that_only_holds_slices(void) {
        static const char node[] =
                "{'items':[{'metadata':{'name':'n1','labels':{'ack.node.gpu.schedule':'default',"
                "'aliquot.dev/holds-slices':'true'}},'status':{'conditions':[{'type':'Ready',"
                "'status':'True'}]}}]}";
        _cleanup_facts_ Facts f = {.now = NOW};
        Finding found;

        answer(&f, API_NODES, node);
        ASSERT_OK(cluster_facts_take_nodes(&f.cluster, str_from(f.cluster.api[API_NODES].text), NULL));
        ASSERT_TRUE(f.cluster.nodes[0].shares);
        doctor_judge(find("nodes"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
}

/* What isolates memory is told where nothing is wrong. */
static void a_node_with_limits_of_the_driver(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        with_node(&f, (NodeText){.conditions = ",{'type':'GPUShareMemoryLimitsUnavailable',"
                                               "'status':'False','reason':'LimitedByDriver'}"});
        doctor_judge(find("conditions"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
        ASSERT_CONTAINS(found.said.text, "on 1 the driver limits memory, too");
}

static void containerd_2_needs_no_configuration(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        fail(&f.host.files[HOST_CONTAINERD], FACT_ABSENT, "x");
        doctor_judge(find("cdi"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
}

/* The remedy is of the fault that is named first. */
static void the_first_remedy_counts(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        fail(&f.cluster.api[API_MUTATING], FACT_ABSENT, "HTTP 404");
        set_endpoints(&f, ENDPOINT, "");
        doctor_judge(find("webhook"), &f, &found);
        ASSERT_CONTAINS(found.said.text, "there is no MutatingWebhookConfiguration aliquot; the Service");
        ASSERT_CONTAINS(found.mend.text, "docs/operate/install.md");
}

/* A quota or a policy refuses with 403, too: more rights would not help. */
static void a_refused_pod_is_no_missing_right(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        fail(&f.cluster.api[API_ADMISSION], FACT_DENIED, "POST /x: HTTP 403 Forbidden: exceeded quota");
        doctor_judge(find("admission"), &f, &found);
        ASSERT_INT(found.grade, GRADE_SKIPPED);
        ASSERT_CONTAINS(found.said.text, "exceeded quota");
        ASSERT_TEXT(found.mend.text, "");
}

static void cdi_is_not_needed_by_the_runtime(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        know(&f.host.files[HOST_CONTAINERD], "enable_cdi = false\n");
        answer(&f, API_PODS,
               "{'items':[{'spec':{'containers':[{'args':['node','--device-access=runtime']}]}}]}");
        doctor_judge(find("cdi"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
}

/* The node's name of its runtime does not tell a switch that is off by default. */
static void a_runtime_with_a_switch_for_cdi(void) {
        _cleanup_facts_ Facts f;
        Finding found;

        set_healthy(&f);
        with_node(&f, (NodeText){.runtime = "containerd://1.7.24"});
        doctor_judge(find("runtimes"), &f, &found);
        ASSERT_INT(found.grade, GRADE_OK);
        ASSERT_CONTAINS(found.said.text, "as on n1, has it off unless enable_cdi = true");
}

static void findings_add_up(void) {
        Finding found = {.grade = GRADE_SKIPPED};

        ASSERT_TRUE(finding_add(&found, GRADE_WARN, "a"));
        ASSERT_TRUE(finding_add(&found, GRADE_FAIL, "b%d", 1));
        ASSERT_FALSE(finding_add(&found, GRADE_WARN, "c"));
        for (int i = 2; i < 6; i++)
                ASSERT_FALSE(finding_add(&found, GRADE_FAIL, "b%d", i));
        finding_pass(&found, "all is well");
        finding_close(&found);
        ASSERT_INT(found.grade, GRADE_FAIL);
        ASSERT_TEXT(found.said.text, "b1; b2; b3; and 2 more");
}

int main(void) {
        return TEST_MAIN(TEST(all_ok_in_a_healthy_world), TEST(each_fault_is_found),
                         TEST(each_check_can_fail), TEST(nothing_known_is_no_ok),
                         TEST(without_rights_is_skipped), TEST(silence_of_the_extender),
                         TEST(both_configurations_of_the_webhook_are_asked_for),
                         TEST(the_first_remedy_counts), TEST(containerd_2_needs_no_configuration),
                         TEST(a_refused_pod_is_no_missing_right), TEST(a_node_that_only_holds_slices),
                         TEST(cdi_is_not_needed_by_the_runtime), TEST(a_node_with_limits_of_the_driver),
                         TEST(a_runtime_with_a_switch_for_cdi), TEST(findings_add_up));
}
