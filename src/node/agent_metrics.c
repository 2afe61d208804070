/* SPDX-License-Identifier: Apache-2.0 */

/* Serves /metrics, /healthz and /readyz. Names that begin with DCGM_CUSTOM are those of ACK's
 * exporter. */

#include <inttypes.h>

#include "base/file.h"
#include "node/agent-internal.h"
#include "node/audit/overuse.h"
#include "slice/visible.h"

enum { BODY_MAX = 4096, CONNECTIONS_MAX = 32 };

/* Escapes backslash, quote and newline, as the text format requires. */
static void label(Buf *out, const char *name, const char *value) {
        buf_appendf(out, "%s%s=\"", out->data[out->len - 1] == '{' ? "" : ",", name);
        for (const char *p = value; *p; p++) {
                if (*p == '\n')
                        buf_append_str(out, STR("\\n"));
                else {
                        if (*p == '"' || *p == '\\')
                                buf_append_char(out, '\\');
                        buf_append_char(out, *p);
                }
        }
        buf_append_char(out, '"');
}

static void card_labels(const Agent *a, const MachineCard *c, Buf *out) {
        char text[24];

        buf_append_char(out, '{');
        label(out, "UUID", c->uuid);
        (void) snprintf(text, sizeof text, "nvidia%u", c->minor);
        label(out, "device", text);
        (void) snprintf(text, sizeof text, "%u", c->index);
        label(out, "gpu", text);
        label(out, "modelName", c->model);
        label(out, "NodeName", a->o.node_name);
}

static void head(Buf *out, const char *name, const char *type, const char *help) {
        buf_appendf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* ---- cards ---- */

typedef struct CardSums {
        uint64_t used, core;
} CardSums;

static CardSums sums_of(const Agent *a, uint32_t card) {
        const LedgerNode *node = roster_ledger_node(&a->roster);
        const LedgerCard *cards = node ? ledger_node_cards(node) : NULL;

        for (size_t i = 0; node && i < ledger_node_n_cards(node); i++)
                if (cards[i].index == card)
                        return (CardSums){cards[i].used, cards[i].core_used};
        return (CardSums){0};
}

enum { MODE_NONE = 0, MODE_SHARE = 2 };

static void write_cards(const Agent *a, Buf *out) {
        bool sharing = share_mode_has_memory(a->node_config.mode);

        head(out, "DCGM_CUSTOM_ALLOCATE_MODE", "gauge", "0 none, 1 exclusive, 2 share");
        for (size_t i = 0; i < a->cards.n; i++) {
                CardSums s = sums_of(a, a->cards.cards[i].index);

                buf_append_str(out, STR("DCGM_CUSTOM_ALLOCATE_MODE"));
                card_labels(a, &a->cards.cards[i], out);
                buf_appendf(out, "} %d\n", sharing && s.used > 0 ? MODE_SHARE : MODE_NONE);
        }
        head(out, "DCGM_CUSTOM_DEV_FB_TOTAL", "gauge", "memory of the card in MiB");
        for (size_t i = 0; i < a->cards.n; i++) {
                buf_append_str(out, STR("DCGM_CUSTOM_DEV_FB_TOTAL"));
                card_labels(a, &a->cards.cards[i], out);
                buf_appendf(out, "} %u\n", a->cards.cards[i].mib);
        }
        head(out, "DCGM_CUSTOM_DEV_FB_ALLOCATED", "gauge",
             "part of the card's memory that is given out, 0 to 1");
        for (size_t i = 0; i < a->inventory.cards.n; i++) {
                const CardInfo *info = &a->inventory.infos[i];

                buf_append_str(out, STR("DCGM_CUSTOM_DEV_FB_ALLOCATED"));
                card_labels(a, &a->inventory.cards.cards[i], out);
                buf_appendf(out, "} %.6g\n",
                            info->units > 0 ? (double) sums_of(a, info->index).used / info->units : 0.0);
        }
}

/* ---- containers ---- */

/* Amounts come from the node's records, because users can change annotations. */
static void write_container(const Agent *a, const Record *record, const RecordContainer *c, uint32_t card,
                            uint32_t mem, Buf *out, bool core) {
        const CardInfo *info = inventory_card(&a->inventory, card);

        if (!info || info->units == 0)
                return;
        buf_append_str(out, core ? STR("DCGM_CUSTOM_CONTAINER_CP_ALLOCATED")
                                 : STR("DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED"));
        card_labels(a, &a->inventory.cards.cards[info - a->inventory.infos], out);
        label(out, "NamespaceName", record->namespace_);
        label(out, "PodName", record->name);
        label(out, "ContainerName", c->name);
        label(out, "AllocateMode", "share");
        if (core)
                buf_appendf(out, "} %.2f\n", device_set_count(&c->given[DEVICE_CORE], card) / 100.0);
        else
                buf_appendf(out, "} %" PRIu64 "\n",
                            mem <= info->units ? visible_mib(info->mib, mem, info->units)
                                               : (uint64_t) info->mib);
}

/* A pod that has ended holds nothing, although its record may still exist. A deleted pod holds its
 * slices while its processes run. */
static bool is_held(const Agent *a, const Record *record) {
        const RosterPod *pod = roster_find(&a->roster, str_from(record->uid));

        return record->orphan || (pod && pod->grant);
}

static void write_given(const Agent *a, bool core, Buf *out) {
        for (const Record *record = a->records.by_uid; record; record = record->hh.next)
                for (size_t i = 0; i < record->n_containers && is_held(a, record); i++) {
                        const RecordContainer *c = &record->containers[i];
                        uint32_t card, count;
                        size_t at = 0;

                        while (device_set_next_card(&c->given[DEVICE_MEM], &at, &card, &count))
                                write_container(a, record, c, card, count, out, core);
                }
}

static void write_containers(const Agent *a, Buf *out) {
        head(out, "DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED", "gauge", "memory of the container's slice in MiB");
        write_given(a, false, out);
        head(out, "DCGM_CUSTOM_CONTAINER_CP_ALLOCATED", "gauge",
             "compute of the container's slice, 0 to 1; 0 when it is not limited");
        write_given(a, true, out);
}

/* ---- processes ---- */

typedef struct ProcessLines {
        const Agent *agent;
        Buf *out;
} ProcessLines;

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

static void process_labels(const Agent *a, Buf *out, const RosterPod *pod, const char *container,
                           uint32_t number) {
        char pid[16], name[COMM_MAX];

        process_name(a, number, name);
        (void) snprintf(pid, sizeof pid, "%u", number);
        label(out, "NamespaceName", pod ? pod->namespace_ : "");
        label(out, "PodName", pod ? pod->name : "");
        label(out, "ContainerName", container ? container : "");
        label(out, "ProcessId", pid);
        label(out, "ProcessName", name);
        label(out, "AllocateMode", pod ? "share" : "none");
}

static void write_process(void *userdata, const ProcessMemory *process) {
        const ProcessLines *lines = userdata;
        const Agent *a = lines->agent;

        for (size_t i = 0; i < a->cards.n; i++) {
                if (a->cards.cards[i].index != process->card)
                        continue;
                buf_append_str(lines->out, STR("DCGM_CUSTOM_PROCESS_MEM_USED"));
                card_labels(a, &a->cards.cards[i], lines->out);
                process_labels(lines->agent, lines->out, process->pod, process->container, process->pid);
                buf_appendf(lines->out, "} %llu\n", (unsigned long long) (process->bytes >> 20));
        }
}

static void write_processes(const Agent *a, Buf *out) {
        head(out, "DCGM_CUSTOM_PROCESS_MEM_USED", "gauge",
             "memory that the process holds of the card, in MiB, as the driver says");
        memory_audit_each(a->memory_audit, write_process, &(ProcessLines){.agent = a, .out = out});
}

static void write_use(void *userdata, const ProcessCompute *process) {
        const ProcessLines *lines = userdata;
        const MachineCard *card = inventory_machine_card(&lines->agent->inventory, process->card);

        if (!card)
                return;
        buf_append_str(lines->out, STR("DCGM_CUSTOM_PROCESS_SM_UTIL"));
        card_labels(lines->agent, card, lines->out);
        process_labels(lines->agent, lines->out, process->pod, process->container, process->pid);
        buf_appendf(lines->out, "} %u\n", process->percent);
}

static void write_uses(const Agent *a, Buf *out) {
        head(out, "DCGM_CUSTOM_PROCESS_SM_UTIL", "gauge",
             "percent of the card's time that the process had, as the driver says; not there: none");
        compute_audit_each(a->compute_audit, write_use, &(ProcessLines){.agent = a, .out = out});
}

/* ---- the audit ---- */

static void write_excess(void *userdata, const MemoryExcess *excess) {
        const ProcessLines *lines = userdata;
        const MachineCard *card = inventory_machine_card(&lines->agent->inventory, excess->card);
        uint64_t over = excess->used > excess->limit ? excess->used - excess->limit : 0;

        if (!card)
                return;
        buf_append_str(lines->out, STR("aliquot_node_excess_mib"));
        card_labels(lines->agent, card, lines->out);
        label(lines->out, "NamespaceName", excess->pod->namespace_);
        label(lines->out, "PodName", excess->pod->name);
        label(lines->out, "ContainerName", excess->container ? excess->container : "");
        buf_appendf(lines->out, "} %llu\n", (unsigned long long) (over >> 20));
}

static void write_audit(const Agent *a, Buf *out) {
        uint64_t bytes;

        head(out, "aliquot_node_excess_mib", "gauge",
             "what a container holds above its slice, in MiB, while that is an excess; without a container: "
             "its pod");
        memory_audit_each_excess(a->memory_audit, write_excess, &(ProcessLines){.agent = a, .out = out});
        head(out, "aliquot_node_unaccounted_mib", "gauge",
             "memory in use of the card that no pod's process holds, in MiB, without the driver's own "
             "reserve");
        for (size_t i = 0; i < a->cards.n; i++) {
                if (!memory_audit_unaccounted(a->memory_audit, a->cards.cards[i].index, &bytes))
                        continue;
                buf_append_str(out, STR("aliquot_node_unaccounted_mib"));
                card_labels(a, &a->cards.cards[i], out);
                buf_appendf(out, "} %llu\n", (unsigned long long) (bytes >> 20));
        }
}

static void write_overuse(void *userdata, const ComputeExcess *excess) {
        const ProcessLines *lines = userdata;
        const MachineCard *card = inventory_machine_card(&lines->agent->inventory, excess->card);

        if (!card)
                return;
        buf_append_str(lines->out, STR("aliquot_node_compute_excess_ratio"));
        card_labels(lines->agent, card, lines->out);
        label(lines->out, "NamespaceName", excess->pod->namespace_);
        label(lines->out, "PodName", excess->pod->name);
        label(lines->out, "ContainerName", excess->container ? excess->container : "");
        buf_appendf(lines->out, "} %.3f\n", ((double) excess->used - excess->share) / OVERUSE_PPM);
}

static void write_overuses(const Agent *a, Buf *out) {
        head(out, "aliquot_node_compute_excess_ratio", "gauge",
             "what a container has of the card's time above its share, 0 to 1, while that is an excess; "
             "without a container: its pod");
        compute_audit_each_excess(a->compute_audit, write_overuse, &(ProcessLines){.agent = a, .out = out});
}

static void write_foreign(const Agent *a, Buf *out) {
        head(out, "aliquot_node_foreign_slices_mib", "gauge",
             "memory of the card that slices of aliquot run on this node's board may have, in MiB");
        for (size_t i = 0; i < a->cards.n; i++) {
                buf_append_str(out, STR("aliquot_node_foreign_slices_mib"));
                card_labels(a, &a->cards.cards[i], out);
                buf_appendf(out, "} %llu\n",
                            (unsigned long long) (slicedir_watch_foreign(a->slicedir_watch,
                                                                         a->cards.cards[i].uuid) >>
                                                  20));
        }
}

/* ---- our own ---- */

static void write_counter(Buf *out, const char *name, const char *help, uint64_t value) {
        head(out, name, "counter", help);
        buf_appendf(out, "%s %llu\n", name, (unsigned long long) value);
}

static void write_own(const Agent *a, Buf *out) {
        ResolverCounters admit = resolver_counters(a->resolver);
        StartVerifierCounters prove = start_verifier_counters(a->start_verifier);
        RepairCounters repair = repair_counters(a->repair);
        PodResourcesCounters lists = pod_resources_counters(a->context.pod_resources);

        write_counter(out, "aliquot_node_settled_total", "containers whose identity was settled at admission",
                      admit.settled);
        write_counter(out, "aliquot_node_placed_total", "pods that came without a place and got one here",
                      admit.placed);
        write_counter(out, "aliquot_node_moved_total",
                      "pods whose annotations named a place that is not possible, and which got another one",
                      admit.moved);
        write_counter(out, "aliquot_node_repairs_total",
                      "times that system annotations of a pod were written back", repair.repaired);
        write_counter(out, "aliquot_node_tampered_total",
                      "times that a pod was told of whose system annotations are changed again and again",
                      repair.tampered);
        head(out, "aliquot_node_repairs_waiting", "gauge", "pods whose system annotations are wrong now");
        buf_appendf(out, "aliquot_node_repairs_waiting %zu\n", repair.waiting);
        write_counter(out, "aliquot_node_unknown_total", "admissions of pods that nobody knew",
                      admit.unknown);
        write_counter(out, "aliquot_node_refused_total", "admissions that were refused", admit.refused);
        write_counter(out, "aliquot_node_allocated_total", "Allocate calls that were answered",
                      admit.allocated);
        write_counter(out, "aliquot_node_strayed_total",
                      "Allocate calls for other devices than were preferred", admit.strayed);
        write_counter(out, "aliquot_node_proved_total", "container starts that were proved", prove.proved);
        write_counter(out, "aliquot_node_waited_total", "container starts that had to wait", prove.waited);
        write_counter(out, "aliquot_node_not_started_total", "container starts that were refused",
                      prove.refused);
        write_counter(out, "aliquot_node_lists_total", "PodResources lists", lists.lists);
        write_counter(out, "aliquot_node_lists_limited_total",
                      "PodResources lists that the kubelet's limit turned away", lists.limited);
        write_counter(out, "aliquot_node_registrations_total", "registrations with the kubelet",
                      a->counters.registrations);
        write_counter(out, "aliquot_node_dropped_total",
                      "how often the kubelet had dropped a resource without a word", a->counters.dropped);
        write_counter(out, "aliquot_node_card_troubles_total", "scans of the cards that failed",
                      a->counters.card_troubles);
        write_counter(out, "aliquot_node_excesses_total", "containers that held more than their slice",
                      memory_audit_excesses(a->memory_audit));
        write_counter(out, "aliquot_node_killed_total",
                      "processes that were killed because their container held more than its slice",
                      a->counters.killed);
        write_counter(out, "aliquot_node_compute_excesses_total",
                      "containers that had more of a card's time than their share",
                      compute_audit_excesses(a->compute_audit));
        write_counter(out, "aliquot_node_compute_killed_total",
                      "processes that were killed because their container had more time than its share",
                      a->counters.overuse_killed);
        write_counter(out, "aliquot_node_unaccounted_total",
                      "how often memory of a card was found that nobody accounts for",
                      memory_audit_unaccounted_count(a->memory_audit));
        write_counter(out, "aliquot_node_slice_files_grown_total",
                      "how often a container had made its counters larger than they are",
                      slicedir_watch_grown(a->slicedir_watch));
        write_counter(out, "aliquot_node_hung_kernels_total",
                      "kernels that ran for --hung-kernel seconds beyond their container's window",
                      hung_reader_count(a->hung_reader));
        write_counter(out, "aliquot_node_hung_killed_total",
                      "processes that were killed because a kernel of their container did not end",
                      a->counters.hung_killed);
        head(out, "aliquot_node_starts_waiting", "gauge", "container starts that wait now");
        buf_appendf(out, "aliquot_node_starts_waiting %zu\n", prove.waiting);
        head(out, "aliquot_node_dying_pods", "gauge", "pods that are gone and whose processes are not");
        buf_appendf(out, "aliquot_node_dying_pods %zu\n", orphans_count(a->orphans));
        head(out, "aliquot_node_patches_waiting", "gauge", "annotations of pods that are not written yet");
        buf_appendf(out, "aliquot_node_patches_waiting %zu\n", pod_patcher_waiting(a->context.pod_patcher));
}

/* ---- the server ---- */

static bool is_ready(const Agent *a) {
        for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                if (!a->registered[kind])
                        return false;
        return a->roster.synced && a->cards_known;
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
                write_cards(a, &out);
                write_containers(a, &out);
                write_processes(a, &out);
                write_uses(a, &out);
                write_audit(a, &out);
                write_overuses(a, &out);
                write_foreign(a, &out);
                write_own(a, &out);
                http_respond(x, buf_result(&out) == 0 ? 200 : 503, "text/plain; version=0.0.4",
                             buf_str(&out));
        } else
                http_respond(x, 404, "text/plain", STR("there is /metrics, /healthz and /readyz\n"));
}

int agent_serve_metrics(Agent *a, Fault *fault) {
        HttpServerOptions options = {
                .listen = a->o.metrics_listen, .max_body = BODY_MAX, .max_connections = CONNECTIONS_MAX};

        return http_server_new(a->event, &options, on_request, a, &a->metrics, fault);
}
