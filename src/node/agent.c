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

enum { CENSUSES_OF_WINDOW = 10 }; /* of one audit window */

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
        start_verifier_wake(a->start_verifier);
}

static int build_limits(Agent *a) {
        return memory_limits_new(
                &(MemoryLimitsOptions){.event = a->event,
                                       .cards = &a->cards,
                                       .inventory = &a->inventory,
                                       .roster = &a->roster,
                                       .records = &a->records,
                                       .cgroup_root = a->o.cgroup_root,
                                       .ignores_disable = a->o.ignores_disable,
                                       .both = node_keys_limits_memory(
                                               &a->keys, a->o.defaults.values[NODE_KEY_MEMORY_ISOLATION]),
                                       .no_driver = a->o.simulate != NULL,
                                       .on_change = on_limits_change,
                                       .on_restored = agent_tell_restored,
                                       .userdata = a},
                &a->memory_limits);
}

static int build_allocate(Agent *a) {
        NodeContext *node = &a->context;
        int r;

        *node = (NodeContext){.event = a->event,
                              .roster = &a->roster,
                              .records = &a->records,
                              .inventory = &a->inventory,
                              .isolation = &a->isolation,
                              .limits = a->memory_limits,
                              .client = a->client,
                              .growth = &a->growth};
        r = pod_resources_new(a->event, a->pod_resources_socket, STR("aliyun.com/"), &node->pod_resources);
        if (r == 0)
                r = pod_patcher_new(a->client, &a->roster, &node->pod_patcher);
        if (r == 0)
                r = orphans_new(&(OrphansOptions){.node = node,
                                                  .cgroup_root = a->o.cgroup_root,
                                                  .on_change = on_dying_change,
                                                  .userdata = a},
                                &a->orphans);
        if (r == 0)
                r = repair_new(
                        &(RepairOptions){.node = node, .on_tampered = agent_tell_tampered, .userdata = a},
                        &a->repair);
        if (r == 0)
                r = resolver_new(&(ResolverOptions){.node = node,
                                                    .access = a->o.access,
                                                    .on_moved = agent_tell_moved,
                                                    .userdata = a},
                                 &a->resolver);
        if (r == 0)
                r = start_verifier_new(&(StartVerifierOptions){.node = node,
                                                               .orphans = a->orphans,
                                                               .repair = a->repair,
                                                               .checkpoint = a->checkpoint},
                                       &a->start_verifier);
        return r;
}

static int build_audit(Agent *a) {
        int r;

        a->killer.proc = a->o.proc;
        a->killer.cgroups = a->o.cgroup_root;
        r = memory_audit_new(&(MemoryAuditOptions){.roster = &a->roster,
                                                   .records = &a->records,
                                                   .inventory = &a->inventory,
                                                   .proc = a->o.proc,
                                                   .cgroups = a->o.cgroup_root,
                                                   .ignores_disable = a->o.ignores_disable,
                                                   .simulated = a->o.simulate_dir,
                                                   .on_excess = agent_on_excess,
                                                   .on_unaccounted = agent_tell_unaccounted,
                                                   .userdata = a},
                             &a->memory_audit);
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
                                                     .on_excess = agent_on_overuse,
                                                     .userdata = a},
                              &a->compute_audit);
        if (r < 0)
                return r;
        return slicedir_watch_new(&(SlicedirWatchOptions){.event = a->event,
                                                          .slicedir = &a->isolation.slicedir,
                                                          .period = a->o.census,
                                                          .on_grown = agent_tell_grown,
                                                          .on_rewritten = agent_tell_rewritten,
                                                          .on_rowless = agent_tell_rowless,
                                                          .on_refused = agent_tell_refused,
                                                          .on_foreign = agent_on_foreign,
                                                          .userdata = a},
                                  &a->slicedir_watch);
}

static void on_version(void *userdata, const KubeReply *reply) {
        Fault line = FAULT_NULL;

        log_write(server_version_judge(reply, &line) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", line.text);
}

/* Plugins start before all that takes time, because the kubelet refuses pods until they are
 * registered. */
static int build(Agent *a, Fault *fault) {
        int r;

        r = agent_open_state(a, fault);
        if (r == 0)
                r = roster_init(&a->roster, a->o.node_name);
        if (r == 0)
                r = kube_client_new(a->event, a->o.config, &a->client);
        if (r == 0)
                r = kube_event_recorder_new(a->client, COMPONENT, &a->recorder);
        if (r == 0)
                r = publisher_new(a->client, a->o.node_name, &a->publisher);
        if (r == 0)
                r = build_limits(a);
        if (r == 0)
                r = build_allocate(a);
        if (r == 0)
                r = build_audit(a);
        if (r == 0)
                r = agent_start_plugins(a, fault);
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
        a->told_cordon.reason = "";
        a->growth.enabled = options->grows;
        a->cordon.roster = &a->roster;
        a->cordon.records = &a->records;
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
        memory_limits_free(a->memory_limits);
        card_source_free(a->source);
        reflector_free(a->nodes);
        reflector_free(a->pods);
        for (int i = 0; i < OFFERED_RESOURCES_; i++)
                plugin_free(a->plugins[i]);
        recheck_free(a->recheck);
        start_verifier_free(a->start_verifier);
        resolver_free(a->resolver);
        repair_free(a->repair);
        pod_patcher_free(a->context.pod_patcher);
        pod_resources_free(a->context.pod_resources);
        orphans_free(a->orphans);
        publisher_free(a->publisher);
        kube_event_recorder_free(a->recorder);
        kube_call_free(a->last_look);
        kube_client_free(a->client);
        a->roster.on_pod = NULL;
        roster_done(&a->roster);
        records_done(&a->records);
        inventory_done(&a->inventory);
        slicedir_watch_free(a->slicedir_watch);
        isolation_done(&a->isolation);
        memory_audit_free(a->memory_audit);
        process_killer_done(&a->killer);
        compute_audit_free(a->compute_audit);
        hung_reader_free(a->hung_reader);
        card_list_done(&a->cards);
        sd_event_source_disable_unref(a->list_again);
        sd_event_source_disable_unref(a->resize_again);
        sd_event_source_disable_unref(a->last_wait);
        slice_growth_done(&a->growth);
        free(a->node_uid);
        free(a->node_text);
        free(a->checkpoint);
        free(a->pod_resources_socket);
        free(a->records_dir);
        free(a->cards_file);
        free(a->fences_file);
        free(a->node_config_file);
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

/* The watch may not have delivered the label that ended this agent, so the object is read again. */
static void on_last_look(void *userdata, const KubeReply *reply) {
        static const char patch[] = "{\"status\":{\"capacity\":{\"" RESOURCE_GPU_COUNT
                                    "\":\"0\"},\"allocatable\":{\"" RESOURCE_GPU_COUNT "\":\"0\"}}}";
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf path = BUF_NULL;
        Agent *a = userdata;
        Node node;

        a->last_look = NULL;
        kube_node_path(&path, str_from(a->o.node_name));
        if (reply->outcome == KUBE_DONE && reply->status == 200 &&
            node_decode(reply->body, &arena, &node, NULL) == 0 && !str_is_empty(node.mode) &&
            !share_mode_is_served(share_mode_from_label(node.mode)) && agent_count_holders(a) == 0 &&
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
        kube_node_path(&path, str_from(a->o.node_name));
        if (buf_result(&path) < 0 ||
            sd_event_add_time_relative(a->event, &a->last_wait, CLOCK_MONOTONIC, LAST_WORDS, 0, on_last_wait,
                                       a) < 0 ||
            kube_call(a->client, &(KubeRequest){.method = "GET", .path = path.data}, on_last_look, a,
                      &a->last_look) < 0)
                stopped(a);
}
