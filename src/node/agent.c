/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "node/agent-internal.h"
#include "node/board_mount.h"

#define COMPONENT  "aliquot-node"
#define LIST_AGAIN (1 * USEC_PER_SEC)
#define LAST_WORDS (2 * USEC_PER_SEC)

enum { STATE_MAX = 1 << 20 };
enum { USES_OF_WINDOW = 10 }; /* censuses: 10 s unless somebody says otherwise */

static const char *const endpoints[] = {
        [DEVICE_MEM] = "aliquot-gpu-mem.sock", [DEVICE_CORE] = "aliquot-gpu-core.sock"};

/* ---- what the kubelet calls ---- */

static DeviceKind kind_of(const Agent *a, const Plugin *p) {
        return p == a->plugins[DEVICE_CORE] ? DEVICE_CORE : DEVICE_MEM;
}

static void on_preferred(void *userdata, Plugin *p, RpcCall *call, const PreferredRequest *request) {
        Agent *a = userdata;

        admit_preferred(a->admit, kind_of(a, p), call, request);
}

static void on_allocate(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Agent *a = userdata;

        admit_allocate(a->admit, kind_of(a, p), call, ids);
}

static void on_prestart(void *userdata, Plugin *p, RpcCall *call, PluginIds ids) {
        Agent *a = userdata;

        prove_prestart(a->prove, kind_of(a, p), call, ids);
}

/* Exclusive CPUs are chosen without asking us, and a container may then get a card of the other socket: ACK does not support
 * it, and neither do we. */
static void check_cpu_manager(Agent *a) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;

        buf_appendf(&path, "%s/cpu_manager_state", a->o.kubelet_dir);
        if (buf_result(&path) < 0 || file_read(path.data, STATE_MAX, &text) < 0 ||
            !memmem(text.data ? text.data : "", text.len, "\"policyName\":\"static\"", 21))
                return;
        agent_warn(
                a, "CPUManagerStatic",
                &(Fault){
                        .text = "the kubelet's CPU manager policy is static, which is not supported on nodes "
                                "that share GPUs: set cpuManagerPolicy to none"});
}

static void on_registered(void *userdata, Plugin *p) {
        Agent *a = userdata;

        a->registered[kind_of(a, p)] = true;
        a->counters.registrations++;
        log_info("registered resource=%s", plugin_resource(p));
        check_cpu_manager(a);
        recheck_soon(a->recheck);
}

static size_t expected_devices(void *userdata, DeviceKind kind) {
        const Agent *a = userdata;

        return a->registered[kind] ? a->healthy[kind] : 0;
}

static void on_missing(void *userdata, DeviceKind kind, const Fault *why) {
        Agent *a = userdata;

        a->counters.dropped++;
        plugin_register_again(a->plugins[kind], why);
}

static void on_lost(void *userdata, Plugin *p, const Fault *why) {
        Agent *a = userdata;

        a->registered[kind_of(a, p)] = false;
        admit_forget(a->admit);
        a->counters.lost[kind_of(a, p)]++;
        log_warning("not registered resource=%s: %s", plugin_resource(p), why->text);
}

static const PluginHandler plugin_handler = {
        .preferred = on_preferred,
        .allocate = on_allocate,
        .prestart = on_prestart,
        .on_registered = on_registered,
        .on_lost = on_lost,
};

/* ---- what the API server tells ---- */

static int follow_pods(Agent *a);

static int on_list_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Agent *a = userdata;

        a->list_again = sd_event_source_disable_unref(a->list_again);
        if (follow_pods(a) < 0)
                log_error("out of memory: pods are not followed any more");
        return 0;
}

static void list_again_later(Agent *a) {
        log_error("out of memory: pods are listed again");
        if (!a->list_again)
                (void) sd_event_add_time_relative(a->event, &a->list_again, CLOCK_MONOTONIC, LIST_AGAIN, 0,
                                                  on_list_again, a);
}

static void on_pods_begin(void *userdata) {
        Agent *a = userdata;

        roster_list_begin(&a->roster);
}

static void on_pod_object(void *userdata, ReflectorEvent event, Str object) {
        Agent *a = userdata;

        if (roster_pod(&a->roster, event, object) < 0)
                list_again_later(a);
}

/* Not before: what is told of a pod that nobody knows yet would be lost, and the arbiter tells each thing once. The pipe keeps it. */
static void hear_arbiter(Agent *a) {
        int r = hung_new(a->event, a->o.arbiter, agent_tell_hung, a, &a->hung);

        if (r < 0)
                log_error("nobody will hear of kernels that do not end: %s", strerror(-r));
}

static void on_pods_end(void *userdata) {
        Agent *a = userdata;
        bool first = !a->roster.synced;

        roster_list_end(&a->roster);
        if (first) {
                prove_adopt(a->prove);
                hear_arbiter(a);
        }
        dying_sweep(a->dying);
        isolation_sweep(&a->isolation, &a->records);
        agent_settle(a);
        prove_wake(a->prove);
}

static void on_pod_change(void *userdata, Str uid, RosterPod *pod) {
        Agent *a = userdata;

        if (!a->roster.synced)
                return; /* all of them are looked at when the list is complete */
        dying_look(a->dying, uid, pod);
        if (pod)
                prove_recall(a->prove, pod);
        if (a->roster.listing)
                return;
        if (!pod)
                isolation_sweep(&a->isolation, &a->records);
        agent_settle(a);
        prove_wake(a->prove);
}

static void on_dying_change(void *userdata) {
        Agent *a = userdata;

        isolation_sweep(&a->isolation, &a->records);
        agent_settle(a);
}

static void on_pods_trouble(void *userdata, const Fault *fault) {
        log_warning("pods: %s", fault->text);
}

static const ReflectorHandler pods_handler = {on_pods_begin, on_pod_object, on_pods_end, on_pods_trouble};

static void on_nodes_begin(void *userdata) {
}

static void on_node_object(void *userdata, ReflectorEvent event, Str object) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        Agent *a = userdata;
        bool decoded;
        Node node;
        int r;

        if (event == REFLECTOR_DELETED)
                return; /* the kubelet makes it again; what it said stays in force until then */
        r = node_decode(object, &arena, &node, &fault);
        decoded = r == 0;
        if (r == 0 && !str_eq(node.meta.name, str_from(a->o.node_name)))
                return;
        if (r == 0)
                r = roster_node(&a->roster, &node, &fault);
        if (r != 0 && str_is_empty(str_from(fault.text)))
                (void) fault_set(&fault, 0, "out of memory");
        if (fault.text[0] != '\0')
                log_warning("node: %s", fault.text);
        if (!decoded)
                return;
        if (!a->node_uid)
                a->node_uid = str_dup(node.meta.uid);
        agent_tell_waiting(a);
        agent_take_node(a, &node);
}

static void on_nodes_end(void *userdata) {
}

static void on_nodes_trouble(void *userdata, const Fault *fault) {
        log_warning("node: %s", fault->text);
}

static const ReflectorHandler nodes_handler = {on_nodes_begin, on_node_object, on_nodes_end,
                                               on_nodes_trouble};

static int follow(Agent *a, const char *path, const char *field, const ReflectorHandler *handler,
                  Reflector **ret) {
        _cleanup_buf_ Buf selector = BUF_NULL;

        buf_appendf(&selector, "fieldSelector=%s%%3D", field);
        url_escape(&selector, str_from(a->o.node_name));
        if (buf_result(&selector) < 0)
                return -ENOMEM;
        *ret = reflector_free(*ret);
        return reflector_new(a->client, &(ReflectorOptions){.path = path, .selector = selector.data}, handler,
                             a, ret);
}

static int follow_pods(Agent *a) {
        return follow(a, "/api/v1/pods", "spec.nodeName", &pods_handler, &a->pods);
}

/* ---- what the cards tell ---- */

static void on_cards(void *userdata, const CardList *cards) {
        Agent *a = userdata;

        for (size_t i = 0; i < cards->n; i++)
                log_info("card index=%u uuid=%s mib=%u healthy=%s%s%s", cards->cards[i].index,
                         cards->cards[i].uuid, cards->cards[i].mib,
                         cards->cards[i].healthy ? "true" : "false", cards->cards[i].trouble[0] ? ": " : "",
                         cards->cards[i].trouble);
        if (agent_take_cards(a, cards) < 0)
                log_error("out of memory: the cards are offered as before");
        agent_settle(a);
}

static void on_card_trouble(void *userdata, const Fault *fault) {
        Agent *a = userdata;

        a->counters.card_troubles++;
        log_warning("cards: %s", fault->text);
        agent_warn(a, "GPUDriverTrouble", fault);
}

static void warn_of_untold(Agent *a, const CardCensus *census) {
        for (size_t i = 0; i < census->n_spans && meter_wants(a->meter); i++) {
                Fault why = FAULT_NULL;

                if (census->spans[i].untold[0] == '\0')
                        continue;
                (void) fault_set(
                        &why, 0,
                        "the driver does not tell what processes use of %s, so somebody may use more "
                        "than his share unseen: %s",
                        census->spans[i].uuid, census->spans[i].untold);
                agent_warn(a, "GPUUseUntold", &why);
                return;
        }
}

static void on_usage(void *userdata, const CardCensus *census) {
        Agent *a = userdata;
        Fault why = FAULT_NULL;

        if (census->untold[0] != '\0') {
                (void) fault_set(
                        &why, 0,
                        "not all that hold memory of the cards are known, so somebody may hold more than his "
                        "slice unseen: %s",
                        census->untold);
                agent_warn(a, "GPUProcessesUntold", &why);
        }
        audit_take(a->audit, census);
        warn_of_untold(a, census);
        meter_take(a->meter, census);
}

static const CardSourceHandler card_handler = {on_cards, on_card_trouble, agent_take_fences, on_usage};

/* ---- what an earlier run knew ---- */

static int read_state(const char *path, Buf *into) {
        int r = file_read(path, STATE_MAX, into);

        if (r < 0 && r != -ENOENT)
                log_warning("cannot read %s: %s", path, strerror(-r));
        return r;
}

static void remember_fences(Agent *a) {
        _cleanup_buf_ Buf text = BUF_NULL;
        Fault fault = FAULT_NULL;

        if (read_state(a->fences_file, &text) == 0 &&
            card_fences_read(buf_str(&text), &a->fences, &fault) != 0)
                log_warning("passed over %s: %s", a->fences_file, fault.text);
}

/* A new agent registers with what the old one knew: NVML takes its time, and until we are registered the kubelet refuses
 * pods. */
static int remember(Agent *a) {
        _cleanup_buf_ Buf terms = BUF_NULL, cards = BUF_NULL;
        _cleanup_(card_list_done) CardList list = {0};
        Fault fault = FAULT_NULL;

        terms_init(&a->terms, a->o.unit);
        if (read_state(a->terms_file, &terms) == 0) {
                a->terms_saved = terms_read(buf_str(&terms), &a->terms, &fault) == 0;
                if (!a->terms_saved)
                        log_warning("passed over %s: %s", a->terms_file, fault.text);
        }
        if (read_state(a->cards_file, &cards) < 0)
                return 0;
        if (card_list_read(buf_str(&cards), &list, &fault) != 0) {
                log_warning("passed over %s: %s", a->cards_file, fault.text);
                return 0;
        }
        remember_fences(a);
        return agent_take_cards(a, &list);
}

static char *path_of(const char *directory, const char *name) {
        Buf path = BUF_NULL;

        buf_appendf(&path, "%s/%s", directory, name);
        return buf_take(&path);
}

static int make_paths(Agent *a) {
        a->checkpoint = path_of(a->o.kubelet_dir, "device-plugins/kubelet_internal_checkpoint");
        a->pod_resources_socket = path_of(a->o.kubelet_dir, "pod-resources/kubelet.sock");
        a->records_dir = path_of(a->o.state_dir, "pods");
        a->cards_file = path_of(a->o.state_dir, "cards.json");
        a->fences_file = path_of(a->o.state_dir, "fences.json");
        a->terms_file = path_of(a->o.state_dir, "terms.json");
        a->cdi_file = path_of(a->o.cdi_dir, "aliquot.dev-gpu.json");
        return a->checkpoint && a->pod_resources_socket && a->records_dir && a->cards_file &&
                               a->fences_file && a->terms_file && a->cdi_file
                       ? 0
                       : -ENOMEM;
}

static int make_directory(const char *path, mode_t mode, Fault *fault) {
        if (mkdir(path, mode) < 0 && errno != EEXIST)
                return fault_set(fault, -errno, "cannot make %s: %s", path, strerror(errno));
        return 0;
}

/* What is wrong with the board itself says isolation_init(). Where the host's processes are seen, if slices can be mounted so that it
 * sees them; else NULL. */
static const char *mount_board(Agent *a) {
        const char *proc = a->o.proc ? a->o.proc : "/proc";
        Fault why = FAULT_NULL;
        bool apart = false;

        if (a->o.slices_mib > 0 &&
            board_mount(a->o.slices, a->o.slices_mib, proc, &apart, &why) == BOARD_MOUNT_E_LEFT)
                agent_warn(a, "SliceBoardUnbounded", &why);
        return apart ? proc : NULL;
}

static int open_state(Agent *a, Fault *fault) {
        const char *proc;
        int r;

        r = make_paths(a);
        if (r == 0)
                r = make_directory(a->o.state_dir, 0700, fault);
        if (r == 0 && a->o.access == DEVICE_ACCESS_CDI)
                r = make_directory(a->o.cdi_dir, 0755, fault);
        if (r < 0)
                return r;
        proc = mount_board(a);
        r = isolation_init(&a->isolation, &(IsolationOptions){.slices = a->o.slices,
                                                              .proc = proc,
                                                              .state_dir = a->o.state_dir,
                                                              .gate = a->o.gate,
                                                              .simulated = a->o.simulate_dir,
                                                              .ignores_disable = a->o.ignores_disable,
                                                              .policy = a->o.policy,
                                                              .on_odd = agent_tell_odd,
                                                              .userdata = a});
        return r < 0 ? r : records_open(&a->records, a->records_dir, fault);
}

/* ---- building ---- */

static int build_identity(Agent *a) {
        AdmitOptions admit;
        ProveOptions prove;
        int r;

        r = dying_new(&(DyingOptions){.event = a->event,
                                      .roster = &a->roster,
                                      .records = &a->records,
                                      .cgroup_root = a->o.cgroup_root,
                                      .on_change = on_dying_change,
                                      .userdata = a},
                      &a->dying);
        if (r == 0)
                r = pod_resources_new(a->event, a->pod_resources_socket, STR("aliyun.com/"),
                                      &a->pod_resources);
        if (r == 0)
                r = teller_new(a->client, &a->roster, &a->teller);
        if (r < 0)
                return r;
        admit = (AdmitOptions){.event = a->event,
                               .roster = &a->roster,
                               .records = &a->records,
                               .inventory = &a->inventory,
                               .pod_resources = a->pod_resources,
                               .client = a->client,
                               .teller = a->teller,
                               .isolation = &a->isolation,
                               .access = a->o.access};
        prove = (ProveOptions){.event = a->event,
                               .roster = &a->roster,
                               .records = &a->records,
                               .inventory = &a->inventory,
                               .pod_resources = a->pod_resources,
                               .teller = a->teller,
                               .dying = a->dying,
                               .isolation = &a->isolation,
                               .checkpoint = a->checkpoint};
        r = audit_new(&(AuditOptions){.roster = &a->roster,
                                      .records = &a->records,
                                      .inventory = &a->inventory,
                                      .proc = a->o.proc,
                                      .ignores_disable = a->o.ignores_disable,
                                      .on_excess = agent_tell_excess,
                                      .on_stray = agent_tell_stray,
                                      .userdata = a},
                      &a->audit);
        if (r < 0)
                return r;
        r = meter_new(&(MeterOptions){.roster = &a->roster,
                                      .records = &a->records,
                                      .inventory = &a->inventory,
                                      .compute = &a->isolation.compute,
                                      .board = &a->isolation.board,
                                      .proc = a->o.proc,
                                      .ignores_disable = a->o.ignores_disable,
                                      .window = USES_OF_WINDOW * NSEC_PER_USEC *
                                                (a->o.census > 0 ? a->o.census : USEC_PER_SEC),
                                      .on_excess = agent_tell_overuse,
                                      .userdata = a},
                      &a->meter);
        if (r < 0)
                return r;
        r = board_watch_new(&(BoardWatchOptions){.event = a->event,
                                                 .board = &a->isolation.board,
                                                 .turn = a->o.census,
                                                 .on_grown = agent_tell_grown,
                                                 .on_foreign = agent_tell_foreign,
                                                 .userdata = a},
                            &a->watch);
        if (r < 0)
                return r;
        r = admit_new(&admit, &a->admit);
        return r < 0 ? r : prove_new(&prove, &a->prove);
}

static int build_plugins(Agent *a, Fault *fault) {
        const RecheckOptions recheck = {.event = a->event,
                                        .socket = a->pod_resources_socket,
                                        .expected = expected_devices,
                                        .on_missing = on_missing,
                                        .userdata = a};
        int e = recheck_new(&recheck, &a->recheck);

        if (e < 0)
                return e;
        for (int kind = 0; kind < DEVICE_KINDS_; kind++) {
                PluginOptions options = {
                        .kubelet_dir = a->o.kubelet_dir,
                        .resource = device_resource((DeviceKind) kind),
                        .endpoint = endpoints[kind],
                };
                int r = plugin_new(a->event, &options, &plugin_handler, a, &a->plugins[kind], fault);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* The simulated driver's NVML reads the variable, in the child that is made later. */
static int use_simulated(Agent *a, Buf *nvml, CardSourceOptions *options) {
        int r = a->isolation.simulated.dir ? simulated_nvml(&a->isolation.simulated, nvml) : -ENOMEM;

        if (r < 0)
                return r;
        if (!options->library)
                options->library = nvml->data;
        return setenv("ALIQUOT_SIM_DIR", a->isolation.simulated.dir, 1) < 0 ? -errno : 0;
}

static int build_source(Agent *a, Fault *fault) {
        _cleanup_(card_list_done) CardList simulated = {0};
        _cleanup_buf_ Buf nvml = BUF_NULL;
        CardSourceOptions options = {
                .library = a->o.nvml,
                .host_root = a->o.host_root,
                .known = a->cards_known ? &a->cards : NULL,
                .fences = &a->fences,
                .census = a->o.census,
        };
        int r;

        if (a->o.simulate) {
                r = cards_simulate(str_from(a->o.simulate), str_from(a->o.node_name), &simulated, fault);
                if (r != 0)
                        return r < 0 ? r : -EINVAL;
                options.simulated = &simulated;
        }
        if (a->o.simulate_dir) {
                r = use_simulated(a, &nvml, &options);
                if (r < 0)
                        return r;
        }
        return card_source_new(a->event, &options, &card_handler, a, &a->source);
}

/* Plugins first: each millisecond until they are registered is one in which the kubelet refuses pods. */
static int build(Agent *a, Fault *fault) {
        int r;

        r = open_state(a, fault);
        if (r == 0)
                r = roster_init(&a->roster, a->o.node_name);
        if (r == 0)
                r = kube_client_new(a->event, a->o.config, &a->client);
        if (r == 0)
                r = kube_event_recorder_new(a->client, COMPONENT, &a->recorder);
        if (r == 0)
                r = publisher_new(a->client, a->o.node_name, &a->publisher);
        if (r == 0)
                r = build_identity(a);
        if (r == 0)
                r = build_plugins(a, fault);
        if (r == 0)
                r = remember(a);
        if (r < 0)
                return r;
        a->roster.on_pod = on_pod_change;
        a->roster.userdata = a;
        r = build_source(a, fault);
        if (r == 0)
                r = follow_pods(a);
        if (r == 0)
                r = follow(a, "/api/v1/nodes", "metadata.name", &nodes_handler, &a->nodes);
        return r < 0 || !a->o.metrics_listen ? r : agent_serve_metrics(a, fault);
}

int agent_new(sd_event *event, const AgentOptions *options, Agent **ret, Fault *fault) {
        _cleanup_(agent_freep) Agent *a = calloc(1, sizeof *a);
        Fault said = FAULT_NULL;
        int r;

        if (!a)
                return fault_set(fault, -ENOMEM, "out of memory");
        a->o = *options;
        a->event = event;
        r = build(a, &said);
        if (r < 0)
                return fault_set(fault, r, "%s", said.text[0] ? said.text : strerror(-r));
        *ret = TAKE_PTR(a);
        return 0;
}

Agent *agent_free(Agent *a) {
        if (!a)
                return NULL;
        http_server_free(a->metrics);
        card_source_free(a->source);
        reflector_free(a->nodes);
        reflector_free(a->pods);
        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                plugin_free(a->plugins[kind]);
        recheck_free(a->recheck);
        prove_free(a->prove);
        admit_free(a->admit);
        teller_free(a->teller);
        pod_resources_free(a->pod_resources);
        dying_free(a->dying);
        publisher_free(a->publisher);
        kube_event_recorder_free(a->recorder);
        kube_call_free(a->last_look);
        kube_client_free(a->client);
        a->roster.on_pod = NULL;
        roster_done(&a->roster);
        records_done(&a->records);
        inventory_done(&a->inventory);
        board_watch_free(a->watch);
        isolation_done(&a->isolation);
        audit_free(a->audit);
        meter_free(a->meter);
        hung_free(a->hung);
        card_list_done(&a->cards);
        sd_event_source_disable_unref(a->list_again);
        sd_event_source_disable_unref(a->last_wait);
        free(a->node_uid);
        free(a->checkpoint);
        free(a->pod_resources_socket);
        free(a->records_dir);
        free(a->cards_file);
        free(a->fences_file);
        free(a->terms_file);
        free(a->cdi_file);
        free(a);
        return NULL;
}

/* ---- the end ---- */

static void stopped(Agent *a) {
        void (*done)(void *userdata) = a->stopped;

        a->stopped = NULL;
        if (done)
                done(a->stopped_userdata);
}

static int on_last_wait(sd_event_source *source, uint64_t usec, void *userdata) {
        stopped(userdata);
        return 0;
}

static void on_last_written(void *userdata, const KubeReply *reply) {
        Agent *a = userdata;

        a->last_look = NULL;
        if (reply->outcome != KUBE_DONE || reply->status >= 300)
                log_warning("the node keeps its gpu-count: %s", reply->fault.text);
        stopped(a);
}

/* The label that made us go is newer than our watch, perhaps: it is asked for. */
static void on_last_look(void *userdata, const KubeReply *reply) {
        static const char patch[] = "{\"status\":{\"capacity\":{\"" RESOURCE_GPU_COUNT
                                    "\":\"0\"},\"allocatable\":{\"" RESOURCE_GPU_COUNT "\":\"0\"}}}";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf path = BUF_NULL;
        Agent *a = userdata;
        Node node;

        a->last_look = NULL;
        buf_append_str(&path, STR("/api/v1/nodes/"));
        url_escape(&path, str_from(a->o.node_name));
        if (reply->outcome == KUBE_DONE && reply->status == 200 &&
            node_decode(reply->body, &arena, &node, NULL) == 0 && !str_is_empty(node.mode) &&
            !share_mode_has_memory(share_mode_from_label(node.mode)) && agent_holders(a) == 0 &&
            buf_result(&path) == 0 &&
            kube_merge_patch(a->client, path.data, "status", str_from(patch), STR(""), on_last_written, a,
                             &a->last_look) == 0)
                return;
        stopped(a);
}

void agent_stop(Agent *a, void (*done)(void *userdata), void *userdata) {
        _cleanup_buf_ Buf path = BUF_NULL;

        if (a->stopped)
                return;
        a->stopped = done;
        a->stopped_userdata = userdata;
        buf_append_str(&path, STR("/api/v1/nodes/"));
        url_escape(&path, str_from(a->o.node_name));
        if (buf_result(&path) < 0 ||
            sd_event_add_time_relative(a->event, &a->last_wait, CLOCK_MONOTONIC, LAST_WORDS, 0, on_last_wait,
                                       a) < 0 ||
            kube_call(a->client, &(KubeRequest){.method = "GET", .path = path.data}, on_last_look, a,
                      &a->last_look) < 0)
                stopped(a);
}
