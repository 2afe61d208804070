/* SPDX-License-Identifier: Apache-2.0 */

/* Serves /metrics, /healthz and /readyz. Names that begin with DCGM_CUSTOM are those of ACK's
 * exporter. Cards and containers: agent_card_metrics.c, agent_container_metrics.c. */

#include "base/file.h"
#include "base/log.h"
#include "base/metric_text.h"
#include "node/agent-internal.h"
#include "node/audit/overuse.h"

/* Few connections, because each may hold an answer that is not read. */
enum { BODY_MAX = 4096, CONNECTIONS_MAX = 128, CONNECTIONS_OF_ADDRESS = 64, IDLE_SEC = 15 };

/* Censuses that may be missed before the last one counts as too old. */
enum { CENSUSES_MISSED = 10 };
#define CENSUS_AGE_MAX (15 * USEC_PER_SEC)

/* ---- the age of the census ---- */

static usec_t census_age(const Agent *a) {
        return clock_monotonic_usec() - a->cards.census_at;
}

bool agent_metrics_has_census(const Agent *a) {
        usec_t most = CENSUSES_MISSED * a->o.census;

        return a->cards.census_at > 0 && census_age(a) < (most > CENSUS_AGE_MAX ? most : CENSUS_AGE_MAX);
}

static void write_census_age(const Agent *a, Buf *out) {
        metric_text_head(out, "aliquot_node_census_age_seconds", "gauge",
                         "Time since the driver last said what processes hold; absent until it did once.");
        if (a->cards.census_at == 0)
                return;
        buf_append_str(out, STR("aliquot_node_census_age_seconds{"));
        metric_text_label(out, "NodeName", a->o.node_name);
        buf_append_str(out, STR("} "));
        metric_text_seconds(out, census_age(a));
}

/* ---- metrics of the audits: processes and excesses ---- */

/* The metric that the visitors below write. */
typedef struct AuditLines {
        const Agent *agent;
        Buf *out;
        const char *name;
} AuditLines;

/* Appends the name and the labels of card, pod and container, each where it is known. false: the
 * node has no such card, and nothing was written. */
static bool begin_line(const AuditLines *lines, uint32_t index, const RosterPod *pod, const char *container) {
        const MachineCard *card = inventory_machine_card(&lines->agent->inventory, index);

        if (!card)
                return false;
        buf_append_str(lines->out, str_from(lines->name));
        agent_metrics_card_labels(lines->agent, card, lines->out);
        metric_text_label(lines->out, "NamespaceName", pod ? pod->namespace_ : "");
        metric_text_label(lines->out, "PodName", pod ? pod->name : "");
        metric_text_label(lines->out, "ContainerName", container ? container : "");
        return true;
}

/* Appends HELP and TYPE. Returns whether the audits' findings are of now, so that series follow. */
static bool begin_metric(const AuditLines *lines, const char *help) {
        metric_text_head(lines->out, lines->name, "gauge", help);
        return agent_metrics_has_census(lines->agent);
}

enum { COMM_MAX = 64 }; /* the kernel stores 16 bytes (TASK_COMM_LEN), more for its own threads */

/* The name that the process chose, which may be any bytes. Bytes that are not printable ASCII
 * become "?". Empty for a process that has ended. */
static void process_name(const Agent *a, uint32_t pid, char ret[static COMM_MAX]) {
        _cleanup_buf_ Buf path = BUF_NULL, text = BUF_NULL;
        size_t n = 0;

        buf_appendf(&path, "%s/%u/comm", a->o.proc ? a->o.proc : "/proc", pid);
        if (buf_result(&path) == 0 && file_read(path.data, COMM_MAX - 1, &text) == 0)
                for (; n < text.len && n < COMM_MAX - 1 && text.data[n] != '\n'; n++)
                        ret[n] = text.data[n] >= ' ' && text.data[n] <= '~' ? text.data[n] : '?';
        ret[n] = '\0';
}

static void process_labels(const AuditLines *lines, const RosterPod *pod, uint32_t number) {
        char pid[16], name[COMM_MAX];

        process_name(lines->agent, number, name);
        (void) snprintf(pid, sizeof pid, "%u", number);
        metric_text_label(lines->out, "ProcessId", pid);
        metric_text_label(lines->out, "ProcessName", name);
        metric_text_label(lines->out, "AllocateMode", pod ? "share" : "none");
}

static void write_process(void *userdata, const ProcessMemory *process) {
        const AuditLines *lines = userdata;

        if (!begin_line(lines, process->card, process->pod, process->container))
                return;
        process_labels(lines, process->pod, process->pid);
        buf_appendf(lines->out, "} %llu\n", (unsigned long long) (process->bytes >> 20));
}

static void write_use(void *userdata, const ProcessCompute *process) {
        const AuditLines *lines = userdata;

        if (!begin_line(lines, process->card, process->pod, process->container))
                return;
        process_labels(lines, process->pod, process->pid);
        buf_appendf(lines->out, "} %u\n", process->percent);
}

static void write_excess(void *userdata, const MemoryExcess *excess) {
        const AuditLines *lines = userdata;
        uint64_t over = excess->used > excess->limit ? excess->used - excess->limit : 0;

        if (begin_line(lines, excess->card, excess->pod, excess->container))
                buf_appendf(lines->out, "} %llu\n", (unsigned long long) over);
}

static void write_overuse(void *userdata, const ComputeExcess *excess) {
        const AuditLines *lines = userdata;

        if (begin_line(lines, excess->card, excess->pod, excess->container))
                buf_appendf(lines->out, "} %.3f\n", ((double) excess->used - excess->share) / OVERUSE_PPM);
}

static void write_audits(const Agent *a, Buf *out) {
        AuditLines lines = {.agent = a, .out = out, .name = "DCGM_CUSTOM_PROCESS_MEM_USED"};

        if (begin_metric(&lines, "Memory of the card that the process holds, in MiB, by the driver."))
                memory_audit_each(a->audit.memory, write_process, &lines);
        lines.name = "DCGM_CUSTOM_PROCESS_SM_UTIL";
        if (begin_metric(&lines, "Percent of the card's time that the process used, by the driver; absent "
                                 "when it used none."))
                compute_audit_each(a->audit.compute, write_use, &lines);
        lines.name = "aliquot_node_excess_bytes";
        if (begin_metric(&lines,
                         "Memory that a container holds above its slice, while the excess lasts; its pod "
                         "where the container is not known."))
                memory_audit_each_excess(a->audit.memory, write_excess, &lines);
        lines.name = "aliquot_node_compute_excess_ratio";
        if (begin_metric(&lines,
                         "Part of the card's time that a container used above its share, 0 to 1, while the "
                         "excess lasts; its pod where the container is not known."))
                compute_audit_each_excess(a->audit.compute, write_overuse, &lines);
}

/* ---- metrics of the agent itself ---- */

static void write_own(const Agent *a, Buf *out) {
        ResolverCounters admit = resolver_counters(a->allocate.resolver);
        StartVerifierCounters prove = start_verifier_counters(a->allocate.start_verifier);
        RepairCounters repair = repair_counters(a->allocate.repair);
        PodResourcesCounters lists = pod_resources_counters(a->allocate.context.pod_resources);
        const struct {
                const char *name, *type, *help;
                uint64_t value;
        } own[] = {
                {"aliquot_node_settled_total", "counter", "Containers that were identified at admission.",
                 admit.settled},
                {"aliquot_node_placed_total", "counter",
                 "Pods that came without a card and got one from the node agent.", admit.placed},
                {"aliquot_node_moved_total", "counter",
                 "Pods whose annotations named an impossible card, and which got another one.", admit.moved},
                {"aliquot_node_repairs_total", "counter",
                 "Times that a pod's system annotations were written back.", repair.repaired},
                {"aliquot_node_tampered_total", "counter", "Pods that got the Event GPUAllocationTampered.",
                 repair.tampered},
                {"aliquot_node_repairs_waiting", "gauge", "Pods whose system annotations are wrong now.",
                 repair.waiting},
                {"aliquot_node_unknown_total", "counter",
                 "Admissions of pods that the node agent does not know.", admit.unknown},
                {"aliquot_node_refused_total", "counter", "Admissions that were refused.", admit.refused},
                {"aliquot_node_allocated_total", "counter", "Allocate calls that were answered.",
                 admit.allocated},
                {"aliquot_node_strayed_total", "counter",
                 "Allocate calls with other devices than the preferred ones.", admit.strayed},
                {"aliquot_node_proved_total", "counter", "Container starts whose identity was verified.",
                 prove.proved},
                {"aliquot_node_waited_total", "counter", "Container starts that had to wait.", prove.waited},
                {"aliquot_node_not_started_total", "counter", "Container starts that were refused.",
                 prove.refused},
                {"aliquot_node_lists_total", "counter", "Lists of the kubelet's PodResources API.",
                 lists.lists},
                {"aliquot_node_lists_limited_total", "counter",
                 "Lists of the PodResources API that the kubelet's rate limit refused.", lists.limited},
                {"aliquot_node_registrations_total", "counter", "Registrations with the kubelet.",
                 a->plugins.registrations},
                {"aliquot_node_dropped_total", "counter",
                 "Times that the kubelet had dropped a resource without an error.", a->plugins.dropped},
                {"aliquot_node_card_troubles_total", "counter", "Scans of the cards that failed.",
                 a->cards.troubles},
                {"aliquot_node_excesses_total", "counter",
                 "Containers that held more memory than their slice.",
                 memory_audit_excesses(a->audit.memory)},
                {"aliquot_node_killed_total", "counter",
                 "Processes that were killed because their container held more memory than its slice.",
                 a->audit.killed},
                {"aliquot_node_compute_excesses_total", "counter",
                 "Containers that used more of a card's time than their share.",
                 compute_audit_excesses(a->audit.compute)},
                {"aliquot_node_compute_killed_total", "counter",
                 "Processes that were killed because their container used more time than its share.",
                 a->audit.overuse_killed},
                {"aliquot_node_unaccounted_total", "counter",
                 "Times that memory of a card was found that no pod accounts for.",
                 memory_audit_unaccounted_count(a->audit.memory)},
                {"aliquot_node_slice_files_grown_total", "counter",
                 "Times that a container had enlarged its file of counters.",
                 slicedir_watch_grown(a->audit.slicedir)},
                {"aliquot_node_slice_files_rewritten_total", "counter",
                 "Times that a slice's counters were behind what they had been.",
                 slicedir_watch_rewritten(a->audit.slicedir)},
                {"aliquot_node_hung_kernels_total", "counter",
                 "Kernels that ran for --hung-kernel seconds beyond their container's window.",
                 hung_reader_count(a->audit.hung_reader)},
                {"aliquot_node_hung_killed_total", "counter",
                 "Processes that were killed because a kernel of their container did not end.",
                 a->audit.hung_killed},
                {"aliquot_node_starts_waiting", "gauge", "Container starts that wait now.", prove.waiting},
                {"aliquot_node_dying_pods", "gauge", "Deleted pods whose processes still run.",
                 orphans_count(a->allocate.orphans)},
                {"aliquot_node_patches_waiting", "gauge", "Pods whose annotations are not written yet.",
                 pod_patcher_waiting(a->allocate.context.pod_patcher)},
        };

        for (size_t i = 0; i < ELEMENTSOF(own); i++)
                metric_text_number(out, own[i].name, own[i].type, own[i].help, own[i].value);
}

static void write_limits(const Agent *a, Buf *out) {
        static const char *const names[] = {[MEMORY_PRELOAD] = "preload",
                                            [MEMORY_UNTRIED] = "untried",
                                            [MEMORY_BOTH] = "both",
                                            [MEMORY_UNAVAILABLE] = "unavailable"};
        MemoryLimitsCounters limits = memory_limits_counters(a->limits);
        const char *backend;
        const Fault *why;
        MemoryMechanism mechanism = memory_limits_mechanism(a->limits, &backend, &why);

        metric_text_head(
                out, "aliquot_node_memory_isolation", "gauge",
                "1, with the mechanism that isolates memory, and the account of the driver's limits.");
        buf_append_str(out, STR("aliquot_node_memory_isolation{"));
        metric_text_label(out, "mechanism", names[mechanism]);
        metric_text_label(out, "backend", backend);
        buf_append_str(out, STR("} 1\n"));
        metric_text_number(out, "aliquot_node_memory_limits", "gauge",
                           "Pods with a limit of the driver on their memory.", limits.pods);
        metric_text_number(out, "aliquot_node_memory_limits_restored_total", "counter",
                           "Limits of the driver that had vanished and were set again.", limits.restored);
        metric_text_number(out, "aliquot_node_memory_limits_failed_total", "counter",
                           "Calls about limits of the driver that failed, or had no effect.", limits.failed);
}

static void write_watches(const Agent *a, Buf *out) {
        const struct {
                const char *kind;
                const Reflector *reflector;
        } watches[] = {{"nodes", a->watches.nodes}, {"pods", a->watches.pods}};

        metric_text_head(out, "aliquot_node_watch_silence_seconds", "gauge",
                         "Time since the API server last sent an event, a bookmark or a list.");
        for (size_t i = 0; i < ELEMENTSOF(watches); i++) {
                usec_t heard = watches[i].reflector ? reflector_heard(watches[i].reflector) : 0;

                if (heard == 0)
                        continue;
                buf_appendf(out, "aliquot_node_watch_silence_seconds{kind=\"%s\"} ", watches[i].kind);
                metric_text_seconds(out, clock_monotonic_usec() - heard);
        }
}

static void write_calls(const Agent *a, Buf *out) {
        metric_text_head(out, "aliquot_node_call_seconds", "histogram",
                         "Time from a call of the kubelet to its answer.");
        for (int i = 0; i < PLUGINS_CALLS_; i++)
                metric_text_histogram(out, "aliquot_node_call_seconds", "call", plugins_call_names[i],
                                      &a->plugins.calls[i]);
}

static void write_build(const Agent *a, Buf *out) {
        metric_text_head(out, "aliquot_node_build_info", "gauge",
                         "1, with the version of the node agent and of the driver.");
        buf_append_str(out, STR("aliquot_node_build_info{"));
        metric_text_label(out, "version", ALIQUOT_VERSION);
        metric_text_label(out, "driver", a->cards.driver.version);
        metric_text_label(out, "NodeName", a->o.node_name);
        buf_append_str(out, STR("} 1\n"));
}

/* ---- the HTTP server ---- */

static bool is_ready(const Agent *a) {
        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                if (!a->plugins.registered[i])
                        return false;
        return a->roster.synced && a->cards.known;
}

static void on_request(void *userdata, HttpExchange *x, const HttpRequest *request) {
        _cleanup_buf_ Buf out = BUF_NULL;
        const Agent *a = userdata;
        bool ready;

        if (strcmp(request->method, "GET") != 0) {
                http_respond_header(x, "Allow", "GET");
                http_respond(x, 405, "text/plain", STR("only GET\n"));
        } else if (strcmp(request->path, "/healthz") == 0)
                http_respond(x, 200, "text/plain", STR("ok\n"));
        else if (strcmp(request->path, "/readyz") == 0) {
                ready = is_ready(a);
                http_respond(x, ready ? 200 : 503, "text/plain",
                             ready ? STR("ok\n")
                                   : STR("not registered with the kubelet, or the pods not listed yet\n"));
        } else if (strcmp(request->path, "/metrics") == 0) {
                agent_metrics_cards(a, &out);
                agent_metrics_containers(a, &out);
                write_audits(a, &out);
                write_census_age(a, &out);
                write_limits(a, &out);
                write_watches(a, &out);
                write_calls(a, &out);
                write_build(a, &out);
                write_own(a, &out);
                http_server_write_closed((const HttpServer *const[]){a->metrics}, 1,
                                         "aliquot_node_connections_closed_total", &out);
                http_respond(x, buf_result(&out) == 0 ? 200 : 503, METRIC_TEXT_TYPE, buf_str(&out));
        } else
                http_respond(x, 404, "text/plain", STR("there is /metrics, /healthz and /readyz\n"));
}

static void on_limit(void *userdata, const char *text) {
        log_warning("%s", text);
}

int agent_metrics_serve(Agent *a, Fault *fault) {
        const HttpServerOptions options = {
                .listen = a->o.metrics_listen,
                .name = "metrics",
                .on_limit = on_limit,
                .max_body = BODY_MAX,
                .max_connections = CONNECTIONS_MAX,
                .max_of_address = CONNECTIONS_OF_ADDRESS,
                .idle_sec = IDLE_SEC,
        };

        return http_server_new(a->event, &options, on_request, a, &a->metrics, fault);
}
