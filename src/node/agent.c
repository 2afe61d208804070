/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "kube/server_version.h"
#include "node/agent-internal.h"
#include "wire/annotation.h"
#include "wire/node.h"

#define COMPONENT  "aliquot-node"
#define LAST_WORDS (2 * USEC_PER_SEC)

enum { CENSUSES_OF_WINDOW = 10 }; /* in one window of the compute audit */

/* ---- building ---- */

static void on_dying_change(void *userdata) {
        Agent *a = userdata;

        isolation_sweep(&a->isolation, &a->records);
        agent_plan_growth(a);
        agent_apply_config(a);
}

static void on_limits_change(void *userdata) {
        Agent *a = userdata;

        agent_publish(a);
        start_verifier_wake(a->allocate.start_verifier);
}

static void on_limited_start(void *userdata, const char *uid) {
        Agent *a = userdata;
        const Record *record = records_find(&a->records, str_from(uid));

        if (record) /* without one no start can wait */
                start_verifier_wake_pod(a->allocate.start_verifier, record);
}

static void on_restored(void *userdata, Str uid, const Fault *note) {
        Agent *a = userdata;

        agent_tell_restored(&a->events, uid, note);
}

static void on_limit_failed(void *userdata, Str uid, const Fault *note) {
        Agent *a = userdata;

        agent_tell_unkept(&a->events, uid, note);
}

static int build_limits(Agent *a) {
        return memory_limits_new(
                &(MemoryLimitsOptions){
                        .event = a->event,
                        .cards = &a->cards.list,
                        .inventory = &a->inventory,
                        .roster = &a->roster,
                        .records = &a->records,
                        .cgroup_root = a->o.cgroup_root,
                        .ignores_disable = a->o.ignores_disable,
                        .both = node_keys_limits_memory(&a->node.keys,
                                                        a->o.defaults.values[NODE_KEY_MEMORY_ISOLATION]),
                        .no_driver = a->o.simulate != NULL,
                        .on_change = on_limits_change,
                        .on_start = on_limited_start,
                        .on_restored = on_restored,
                        .on_failed = on_limit_failed,
                        .userdata = a},
                &a->limits);
}

static int build_allocate(Agent *a) {
        NodeContext *node = &a->allocate.context;
        int r;

        a->events.limits = a->limits;
        *node = (NodeContext){.event = a->event,
                              .roster = &a->roster,
                              .records = &a->records,
                              .inventory = &a->inventory,
                              .isolation = &a->isolation,
                              .limits = a->limits,
                              .client = a->client,
                              .growth = &a->allocate.growth};
        r = pod_resources_new(a->event, a->paths.pod_resources, STR("aliyun.com/"), &node->pod_resources);
        if (r == 0)
                r = pod_patcher_new(a->client, &a->roster, &node->pod_patcher);
        if (r == 0)
                r = orphans_new(&(OrphansOptions){.node = node,
                                                  .cgroup_root = a->o.cgroup_root,
                                                  .on_change = on_dying_change,
                                                  .userdata = a},
                                &a->allocate.orphans);
        if (r == 0)
                r = repair_new(&(RepairOptions){.node = node,
                                                .on_tampered = agent_tell_tampered,
                                                .userdata = &a->events},
                               &a->allocate.repair);
        if (r == 0)
                r = resolver_new(&(ResolverOptions){.node = node,
                                                    .access = a->o.access,
                                                    .on_moved = agent_tell_moved,
                                                    .userdata = &a->events},
                                 &a->allocate.resolver);
        if (r == 0)
                r = start_verifier_new(&(StartVerifierOptions){.node = node,
                                                               .orphans = a->allocate.orphans,
                                                               .repair = a->allocate.repair,
                                                               .checkpoint = a->paths.checkpoint},
                                       &a->allocate.start_verifier);
        return r;
}

static int build_audit(Agent *a) {
        int r;

        a->audit = (AgentAudit){.kills_excess = a->o.kills_excess,
                                .kills_overuse = a->o.kills_overuse,
                                .kills_hung = a->o.kills_hung,
                                .events = &a->events,
                                .inventory = &a->inventory,
                                .killer = {.proc = a->o.proc, .cgroups = a->o.cgroup_root}};
        r = memory_audit_new(&(MemoryAuditOptions){.roster = &a->roster,
                                                   .records = &a->records,
                                                   .inventory = &a->inventory,
                                                   .proc = a->o.proc,
                                                   .cgroups = a->o.cgroup_root,
                                                   .ignores_disable = a->o.ignores_disable,
                                                   .simulated = a->o.simulate_dir,
                                                   .on_excess = enforce_excess,
                                                   .on_unaccounted = enforce_unaccounted,
                                                   .userdata = &a->audit},
                             &a->audit.memory);
        if (r < 0)
                return r;
        r = compute_audit_new(&(ComputeAuditOptions){.roster = &a->roster,
                                                     .records = &a->records,
                                                     .inventory = &a->inventory,
                                                     .compute = &a->isolation.compute,
                                                     .slicedir = &a->isolation.slicedir,
                                                     .proc = a->o.proc,
                                                     .ignores_disable = a->o.ignores_disable,
                                                     .window = CENSUSES_OF_WINDOW * NSEC_PER_USEC *
                                                               (a->o.census > 0 ? a->o.census : USEC_PER_SEC),
                                                     .on_excess = enforce_overuse,
                                                     .userdata = &a->audit},
                              &a->audit.compute);
        if (r < 0)
                return r;
        return slicedir_watch_new(&(SlicedirWatchOptions){.event = a->event,
                                                          .slicedir = &a->isolation.slicedir,
                                                          .period = a->o.census,
                                                          .on_grown = agent_tell_grown,
                                                          .on_rewritten = agent_tell_rewritten,
                                                          .on_rowless = agent_tell_rowless,
                                                          .on_refused = agent_tell_refused,
                                                          .on_foreign = agent_tell_foreign,
                                                          .userdata = &a->events},
                                  &a->audit.slicedir);
}

static void on_version(void *userdata, const KubeReply *reply) {
        Fault line = FAULT_NULL;

        log_write(server_version_judge(reply, &line) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", line.text);
}

static int start_plugins(Agent *a, Fault *fault) {
        a->plugins = (Plugins){.kubelet_dir = a->o.kubelet_dir,
                               .resolver = a->allocate.resolver,
                               .start_verifier = a->allocate.start_verifier,
                               .events = &a->events.node};
        return plugins_start(&a->plugins, a->event, a->paths.pod_resources, fault);
}

/* Makes the agent's parts. Plugins start before all that takes time, because the kubelet refuses
 * pods until they are registered. */
static int build_parts(Agent *a, Fault *fault) {
        int r;

        r = agent_open_state(a, fault);
        if (r == 0)
                r = roster_init(&a->roster, a->o.node_name);
        if (r == 0)
                r = kube_client_new(a->event, a->o.config, &a->client);
        if (r == 0)
                r = kube_event_recorder_new(a->client, COMPONENT, &a->events.node.recorder);
        if (r == 0)
                r = publisher_new(a->client, a->o.node_name, &a->publisher);
        if (r == 0)
                r = build_limits(a);
        if (r == 0)
                r = build_allocate(a);
        if (r == 0)
                r = build_audit(a);
        if (r == 0)
                r = start_plugins(a, fault);
        if (r == 0)
                r = agent_load_state(a);
        if (r == 0)
                r = agent_start_card_events(a, fault);
        if (r == 0)
                r = agent_start_watches(a);
        if (r == 0)
                r = server_version_ask(a->client, on_version, NULL);
        return r < 0 || !a->o.metrics_listen ? r : agent_metrics_serve(a, fault);
}

int agent_new(sd_event *event, const AgentOptions *options, Agent **ret, Fault *fault) {
        _cleanup_(agent_freep) Agent *a = calloc(1, sizeof *a);
        Fault said = FAULT_NULL;
        int r;

        if (!a)
                return fault_set(fault, -ENOMEM, "out of memory");
        a->o = *options;
        a->events = (AgentEvents){.node = {.name = a->o.node_name},
                                  .roster = &a->roster,
                                  .records = &a->records,
                                  .inventory = &a->inventory,
                                  .state = &a->node,
                                  .proc = a->o.proc};
        a->told = (NodeTold){.events = &a->events.node, .cordon.reason = ""};
        a->allocate.growth.enabled = options->grows;
        a->node = (NodeState){.keeps_nvidia_off = a->o.keeps_nvidia_off,
                              .cordon = {.roster = &a->roster, .records = &a->records}};
        a->event = event;
        r = build_parts(a, &said);
        if (r < 0)
                return fault_set(fault, r, "%s", said.text[0] ? said.text : strerror(-r));
        *ret = TAKE_PTR(a);
        return 0;
}

Agent *agent_free(Agent *a) {
        if (!a)
                return NULL;
        http_server_free(a->metrics);
        memory_limits_free(a->limits);
        card_source_free(a->cards.source);
        reflector_free(a->watches.nodes);
        reflector_free(a->watches.pods);
        plugins_done(&a->plugins);
        start_verifier_free(a->allocate.start_verifier);
        resolver_free(a->allocate.resolver);
        repair_free(a->allocate.repair);
        pod_patcher_free(a->allocate.context.pod_patcher);
        pod_resources_free(a->allocate.context.pod_resources);
        orphans_free(a->allocate.orphans);
        publisher_free(a->publisher);
        kube_event_recorder_free(a->events.node.recorder);
        kube_call_free(a->end.call);
        kube_client_free(a->client);
        a->roster.on_pod = NULL;
        roster_done(&a->roster);
        records_done(&a->records);
        inventory_done(&a->inventory);
        slicedir_watch_free(a->audit.slicedir);
        isolation_done(&a->isolation);
        memory_audit_free(a->audit.memory);
        process_killer_done(&a->audit.killer);
        compute_audit_free(a->audit.compute);
        hung_reader_free(a->audit.hung_reader);
        card_list_done(&a->cards.list);
        sd_event_source_disable_unref(a->watches.list_again);
        sd_event_source_disable_unref(a->watches.resize_again);
        sd_event_source_disable_unref(a->end.timer);
        slice_growth_done(&a->allocate.growth);
        node_events_done(&a->events.node);
        free(a->node.text);
        free(a->paths.checkpoint);
        free(a->paths.pod_resources);
        free(a->paths.records);
        free(a->paths.cards);
        free(a->paths.fences);
        free(a->paths.node_config);
        free(a->paths.cdi);
        free(a);
        return NULL;
}

/* ---- the end ---- */

static void tell_stopped(Agent *a) {
        void (*done)(void *userdata) = a->end.done;

        a->end.done = NULL;
        if (done)
                done(a->end.userdata);
}

static int on_last_wait(sd_event_source *source, uint64_t usec, void *userdata) {
        tell_stopped(userdata);
        return 0;
}

static void on_last_written(void *userdata, const KubeReply *reply) {
        Agent *a = userdata;

        a->end.call = NULL;
        if (reply->outcome != KUBE_DONE || reply->status >= 300)
                log_warning("the node keeps its gpu-count: %s", reply->fault.text);
        tell_stopped(a);
}

/* Sets gpu-count to 0 if the node no longer shares. The object was read for this, because the watch
 * may not have delivered the label that ended this agent. */
static void on_last_look(void *userdata, const KubeReply *reply) {
        static const char patch[] = "{\"status\":{\"capacity\":{\"" RESOURCE_GPU_COUNT
                                    "\":\"0\"},\"allocatable\":{\"" RESOURCE_GPU_COUNT "\":\"0\"}}}";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf path = BUF_NULL;
        Agent *a = userdata;
        Node node;

        a->end.call = NULL;
        kube_node_path(&path, str_from(a->o.node_name));
        if (reply->outcome == KUBE_DONE && reply->status == 200 &&
            node_decode(reply->body, &arena, &node, NULL) == 0 && !str_is_empty(node.mode) &&
            !share_mode_is_served(share_mode_from_label(node.mode)) && agent_count_holders(a) == 0 &&
            buf_result(&path) == 0 &&
            kube_merge_patch(a->client, path.data, "status", str_from(patch), STR(""), on_last_written, a,
                             &a->end.call) == 0)
                return;
        tell_stopped(a);
}

void agent_stop(Agent *a, void (*done)(void *userdata), void *userdata) {
        _cleanup_buf_ Buf path = BUF_NULL;

        if (a->end.done)
                return;
        a->end.done = done;
        a->end.userdata = userdata;
        kube_node_path(&path, str_from(a->o.node_name));
        if (buf_result(&path) < 0 ||
            sd_event_add_time_relative(a->event, &a->end.timer, CLOCK_MONOTONIC, LAST_WORDS, 0, on_last_wait,
                                       a) < 0 ||
            kube_call(a->client, &(KubeRequest){.method = "GET", .path = path.data}, on_last_look, a,
                      &a->end.call) < 0)
                tell_stopped(a);
}
