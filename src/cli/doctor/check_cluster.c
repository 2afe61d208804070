/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/check_cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/doctor/check_node.h"
#include "cli/doctor/cluster_facts.h"
#include "kube/server_version.h"
#include "node/publish/conditions.h"
#include "node/publish/driver_release.h"
#include "share/mode.h"
#include "share/node_keys.h"
#include "wire/annotation.h"
#include "wire/node.h"

#define OTHER_RESOURCES "nvidia.com/"

bool check_cluster_knows(const Facts *f, ApiQuestion question, Finding *ret) {
        const Fact *fact = &f->cluster.api[question];

        if (fact->state == FACT_KNOWN)
                return true;
        finding_set(ret, GRADE_SKIPPED, "%s",
                    fact->state == FACT_UNASKED ? "the cluster is not asked" : fact->why.text);
        if (fact->state == FACT_DENIED)
                finding_mend(ret, "ask as a user with the right to %s", questions_right(question));
        return false;
}

const char *check_cluster_condition(const json_t *object, const char *type) {
        const json_t *conditions = fact_at(object, "status", "conditions", NULL);

        for (size_t i = 0; i < json_array_size(conditions); i++)
                if (strcmp(fact_text(json_array_get(conditions, i), "type", NULL), type) == 0)
                        return fact_text(json_array_get(conditions, i), "status", NULL);
        return "";
}

static size_t count_sharing(const ClusterFacts *c) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_nodes; i++)
                n += c->nodes[i].shares;
        return n;
}

/* Whether there are nodes to judge; sets GRADE_SKIPPED where there are none. */
static bool knows_sharing(const Facts *f, Finding *ret) {
        if (!check_cluster_knows(f, API_NODES, ret))
                return false;
        if (count_sharing(&f->cluster) > 0)
                return true;
        finding_set(ret, GRADE_SKIPPED, "there is no sharing node");
        return false;
}

void check_cluster_api(const Facts *f, Finding *ret) {
        const Fact *version = &f->cluster.api[API_VERSION];
        KubeReply reply = {.outcome = KUBE_DONE, .status = 200};
        Fault line = FAULT_NULL;
        bool warns;

        if (version->state == FACT_SILENT) {
                finding_set(ret, GRADE_FAIL, "the API server cannot be asked: %s", version->why.text);
                finding_mend(ret, "kubectl version; for a login by a plugin: kubectl proxy, and aliquot "
                                  "doctor --server "
                                  "http://127.0.0.1:8001");
                return;
        }
        if (!check_cluster_knows(f, API_VERSION, ret))
                return;
        reply.body = str_from(version->text);
        warns = server_version_judge(&reply, &line);
        finding_set(ret, warns ? GRADE_WARN : GRADE_OK, "%s", line.text);
        if (warns)
                finding_mend(ret, "make e2e, on a cluster of this version");
}

/* Whether a sharing node offers no memory. A node without a mode that shares may still hold slices,
 * and then offers nothing new. */
static bool lacks_units(const NodeFacts *node) {
        const char *units = fact_text(node->json, "status", "allocatable", RESOURCE_GPU_MEM, NULL),
                   *mode = fact_text(node->json, "metadata", "labels", LABEL_SCHEDULE, NULL);

        return share_mode_has_memory(share_mode_from_label(str_from(mode))) &&
               (!units[0] || strcmp(units, "0") == 0);
}

static void check_node_offer(const NodeFacts *node, Finding *ret) {
        if (strcmp(check_cluster_condition(node->json, "Ready"), "True") != 0) {
                if (finding_add(ret, GRADE_FAIL, "%s is not Ready", node->name))
                        finding_mend(ret, "kubectl describe node %s", node->name);
        } else if (lacks_units(node) &&
                   finding_add(ret, GRADE_FAIL, "%s offers no " RESOURCE_GPU_MEM, node->name))
                finding_mend(ret, "on %s: aliquot doctor node", node->name);
}

void check_cluster_nodes(const Facts *f, Finding *ret) {
        const ClusterFacts *c = &f->cluster;
        size_t n = count_sharing(c);

        if (!check_cluster_knows(f, API_NODES, ret))
                return;
        for (size_t i = 0; i < c->n_nodes; i++)
                if (c->nodes[i].shares)
                        check_node_offer(&c->nodes[i], ret);
        if (n == 0) {
                finding_set(ret, GRADE_WARN, "no node shares its cards");
                finding_mend(ret, "kubectl label node NODE " LABEL_SCHEDULE "=core_mem");
        } else
                finding_pass(ret, "%zu node%s with " RESOURCE_GPU_MEM, n, n == 1 ? "" : "s");
}

static void check_keys(const NodeFacts *facts, Finding *ret) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        NodeKeys keys = {.changed = 0};
        bool misspelt;
        Node node;

        if (node_decode(str_from(facts->text), &arena, &node, NULL) != 0)
                return;
        node_keys_check(&keys, &node, "the mode before", "the unit before", NULL);
        node_keys_check_names(&keys, str_from(facts->text));
        node_keys_write_wrong(&keys, &text);
        if (buf_result(&text) < 0 || text.len == 0)
                return;
        /* the last one: a key that changes nothing, beside others that are good */
        misspelt = keys.wrong[NODE_KEYS_].text[0] && strcmp(text.data, keys.wrong[NODE_KEYS_].text) == 0;
        if (finding_add(ret, misspelt ? GRADE_WARN : GRADE_FAIL, "%s: %s", facts->name, text.data))
                finding_mend(ret,
                             "kubectl label node %s KEY=VALUE --overwrite (or annotate); KEY- removes it",
                             facts->name);
}

void check_cluster_labels(const Facts *f, Finding *ret) {
        if (!check_cluster_knows(f, API_NODES, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++)
                check_keys(&f->cluster.nodes[i], ret);
        finding_pass(ret, "the keys of %zu node%s are good", f->cluster.n_nodes,
                     f->cluster.n_nodes == 1 ? "" : "s");
}

/* ---- node agents ---- */

static void check_agent(const ClusterFacts *c, const NodeFacts *node, Finding *ret) {
        const json_t *pod = cluster_facts_agent(c, node->name);
        const char *name = fact_text(pod, "metadata", "name", NULL);

        if (!pod) {
                if (finding_add(ret, GRADE_FAIL, "%s has no node agent", node->name))
                        finding_mend(ret, "kubectl -n " QUESTIONS_NAMESPACE
                                          " describe ds gpushare-device-plugin-ds");
        } else if (strcmp(check_cluster_condition(pod, "Ready"), "True") != 0) {
                if (finding_add(ret, GRADE_FAIL, "%s: the node agent %s is not Ready", node->name, name))
                        finding_mend(ret, "kubectl -n " QUESTIONS_NAMESPACE " logs %s -c aliquot-node", name);
        } else if (node->ready.state == FACT_SILENT &&
                   finding_add(ret, GRADE_WARN, "%s: the node agent %s does not answer: %s", node->name, name,
                               node->ready.why.text))
                finding_mend(ret,
                             "kubectl -n " QUESTIONS_NAMESPACE
                             " logs %s -c aliquot-node; is a NetworkPolicy in "
                             "the way?",
                             name);
}

void check_cluster_agents(const Facts *f, Finding *ret) {
        const ClusterFacts *c = &f->cluster;

        if (!knows_sharing(f, ret) || !check_cluster_knows(f, API_PODS, ret))
                return;
        for (size_t i = 0; i < c->n_nodes; i++)
                if (c->nodes[i].shares)
                        check_agent(c, &c->nodes[i], ret);
        finding_pass(ret, "each of %zu sharing nodes has an agent that is Ready", count_sharing(c));
}

/* ---- what the agents report ---- */

/* Checks the conditions. Returns whether the driver limits memory there. */
static bool check_node_conditions(const NodeFacts *facts, Finding *ret) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ObjectCondition conditions[CONDITIONS_];
        Node node;

        if (conditions_read(str_from(facts->text), &arena, conditions, NULL) != 0 ||
            node_decode(str_from(facts->text), &arena, &node, NULL) != 0)
                return false;
        for (int kind = CONDITION_MISCONFIGURED; kind < CONDITIONS_; kind++) {
                const ObjectCondition *text = &conditions[kind];
                bool cordon = kind == CONDITION_CORDON,
                     mild = cordon || str_eq(text->reason, STR(DRIVER_REASON_NEW));

                if (!str_eq(text->status, STR("True")) ||
                    !finding_add(ret, mild ? GRADE_WARN : GRADE_FAIL, "%s: %s: " STR_FMT, facts->name,
                                 condition_type((ConditionKind) kind), STR_ARG(text->message)))
                        continue;
                if (cordon)
                        finding_mend(
                                ret,
                                "after the maintenance: kubectl annotate node %s " ANNOTATION_CORDON_CARDS
                                "-",
                                facts->name);
                else
                        finding_mend(ret, "docs/operate/troubleshoot.md; kubectl describe node %s",
                                     facts->name);
        }
        if (str_eq(node.fences_status, STR("True")) &&
            finding_add(ret, GRADE_FAIL, "%s: " CONDITION_FENCES ": " STR_FMT, facts->name,
                        STR_ARG(node.fences_message)))
                finding_mend(ret, "correct the ConfigMap; docs/use/cards.md");
        return str_eq(conditions[CONDITION_LIMITS].reason, STR(CONDITION_REASON_LIMITED));
}

void check_cluster_conditions(const Facts *f, Finding *ret) {
        size_t limited = 0;

        if (!check_cluster_knows(f, API_NODES, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++)
                limited += check_node_conditions(&f->cluster.nodes[i], ret);
        if (limited > 0)
                finding_pass(ret, "no node has a condition of trouble; on %zu the driver limits memory, too",
                             limited);
        else
                finding_pass(ret, "no node has a condition of trouble");
}

void check_cluster_changes(const Facts *f, Finding *ret) {
        if (!check_cluster_knows(f, API_NODES, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++) {
                const NodeFacts *node = &f->cluster.nodes[i];
                const char *change =
                        fact_text(node->json, "metadata", "annotations", ANNOTATION_CHANGE_PENDING, NULL);

                if (change[0] &&
                    finding_add(ret, GRADE_WARN, "%s takes no new slice: %s", node->name, change))
                        finding_mend(ret, "kubectl drain %s --ignore-daemonsets, or undo the change",
                                     node->name);
        }
        finding_pass(ret, "no change of mode or unit waits");
}

/* ---- kubelets ---- */

void check_cluster_policies(const Facts *f, Finding *ret) {
        const Fact *last = NULL;
        size_t n = 0;

        if (!check_cluster_knows(f, API_NODES, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++) {
                const NodeFacts *node = &f->cluster.nodes[i];

                if (node->configz.state == FACT_KNOWN) {
                        check_node_configuration(fact_at(node->configz.json, "kubeletconfig", NULL),
                                                 node->name, ret);
                        n++;
                } else if (node->configz.state != FACT_UNASKED)
                        last = &node->configz;
        }
        if (n > 0)
                finding_pass(ret, "CPU manager and Topology Manager of %zu kubelet%s do not interfere", n,
                             n == 1 ? "" : "s");
        else
                finding_set(ret, GRADE_SKIPPED, "%s", last ? last->why.text : "there is no sharing node");
        if (n == 0 && last && last->state == FACT_DENIED)
                finding_mend(ret, "ask as a user with the right to get nodes/proxy");
}

/* ---- what else the nodes offer ---- */

void check_cluster_plugins(const Facts *f, Finding *ret) {
        const char *name;
        json_t *value;

        if (!knows_sharing(f, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++) {
                const NodeFacts *node = &f->cluster.nodes[i];

                if (!node->shares)
                        continue;
                json_object_foreach(
                        fact_at(node->json, "status", "allocatable", NULL), name,
                        value) if (strncmp(name, OTHER_RESOURCES, strlen(OTHER_RESOURCES)) == 0 &&
                                   strcmp(json_string_value(value) ? json_string_value(value) : "0", "0") !=
                                           0 &&
                                   finding_add(ret, GRADE_FAIL, "%s offers its cards as %s, too", node->name,
                                               name))
                        finding_mend(ret,
                                     "kubectl label node %s nvidia.com/gpu.deploy.device-plugin=false "
                                     "--overwrite",
                                     node->name);
        }
        finding_pass(ret, "no sharing node offers its cards through another plugin");
}

/* Reads Events about memory that no slice accounts for. Each names the card, and the pods that may
 * have the memory. The API server drops Events after an hour. */
void check_cluster_memory(const Facts *f, Finding *ret) {
        const json_t *items = fact_at(f->cluster.api[API_STRAYS].json, "items", NULL);

        if (!check_cluster_knows(f, API_STRAYS, ret))
                return;
        for (size_t i = 0; i < json_array_size(items); i++) {
                const json_t *event = json_array_get(items, i);

                if (strcmp(fact_text(event, "reason", NULL), REASON_MEMORY_UNACCOUNTED) == 0 &&
                    finding_add(ret, GRADE_WARN, "%s, %s: %s",
                                fact_text(event, "involvedObject", "name", NULL),
                                fact_text(event, "lastTimestamp", NULL), fact_text(event, "message", NULL)))
                        finding_mend(ret, "delete the pods that it names, or end the process on the node");
        }
        finding_pass(ret, "no card had memory that no pod accounts for, within the last hour");
}

/* Whether the runtime is too old: the kubelet's CDI devices need containerd 1.7
 * (docs/operate/install.md). */
static bool runtime_is_old(const char *runtime) {
        unsigned major = 0, minor = 0;

        return sscanf(runtime, "containerd://%u.%u", &major, &minor) == 2 &&
               (major < 1 || (major == 1 && minor < 7));
}

void check_cluster_runtimes(const Facts *f, Finding *ret) {
        const char *switched = NULL;

        if (!knows_sharing(f, ret))
                return;
        for (size_t i = 0; i < f->cluster.n_nodes; i++) {
                const NodeFacts *node = &f->cluster.nodes[i];
                const char *runtime =
                        fact_text(node->json, "status", "nodeInfo", "containerRuntimeVersion", NULL);
                bool known =
                        strncmp(runtime, "containerd://", 13) == 0 || strncmp(runtime, "cri-o://", 8) == 0;

                if (!node->shares || !runtime[0])
                        continue;
                if ((!known || runtime_is_old(runtime)) &&
                    finding_add(ret, known ? GRADE_FAIL : GRADE_WARN,
                                "%s runs %s; CDI needs containerd 1.7 or CRI-O", node->name, runtime))
                        finding_mend(ret, "update the container runtime, or --set deviceAccess=runtime");
                if (!switched && strncmp(runtime, "containerd://1.", 15) == 0)
                        switched = node->name;
        }
        if (switched)
                finding_pass(ret,
                             "the nodes' container runtimes know CDI. containerd 1.7, as on %s, has it off "
                             "unless enable_cdi = true: aliquot doctor on the node tells",
                             switched);
        else
                finding_pass(ret, "the nodes' container runtimes know CDI");
}
