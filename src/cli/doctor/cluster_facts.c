/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/cluster_facts.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "kube/escape.h"
#include "share/mode.h"
#include "wire/annotation.h"
#include "wire/list_items.h"
#include "wire/node.h"

#define AGENT_PORT "9445" /* deploy/helm/aliquot/templates/node.yaml */

/* The pod that the webhook is asked about in a dry run. Nothing is stored, and no scheduler sees
 * it. */
static const char dry_pod[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"generateName\":"
        "\"aliquot-doctor-\"},\"spec\":{\"containers\":[{\"name\":\"main\","
        "\"image\":\"none\",\"resources\":{\"limits\":{\"" RESOURCE_GPU_MEM "\":\"1\"}}}]}}";

typedef struct Question {
        struct ClusterQuery *query;
        Fact *fact;
        bool json;
} Question;

struct ClusterQuery {
        ClusterFacts *facts;
        KubeClient *client;
        usec_t timeout;
        Question questions[API_QUESTIONS_ + 2 * FACTS_NODES_ASKED];
        unsigned n, pending;
        bool asked_all, asked_nodes;
};

static void ask_next(ClusterQuery *q);

static void on_reply(void *userdata, const KubeReply *reply) {
        const Question *question = userdata;
        ClusterQuery *q = question->query;
        Fact *fact = question->fact;

        if (reply->outcome == KUBE_DONE && reply->status / 100 == 2)
                fact_know(fact, str_dup(reply->body), question->json);
        else {
                fact->state = reply->status == 403   ? FACT_DENIED
                              : reply->status == 404 ? FACT_ABSENT
                                                     : FACT_SILENT; /* as 401: no valid login */
                fact->why = reply->fault;
        }
        fact->date = reply->date;
        if (--q->pending == 0)
                ask_next(q);
}

static int ask_server(ClusterQuery *q, const char *path, const char *body, bool json, Fact *fact) {
        Question *question = &q->questions[q->n++];
        int r;

        *question = (Question){.query = q, .fact = fact, .json = json};
        r = kube_call(q->client,
                      &(KubeRequest){.method = body ? "POST" : "GET",
                                     .path = path,
                                     .body = str_from(body),
                                     .timeout = q->timeout},
                      on_reply, question, NULL);
        q->pending += r == 0;
        if (r < 0)
                fact_fail(fact, -r, path);
        return r;
}

/* ---- the nodes ---- */

static bool concerns_us(Str text) {
        static const char *const signs[] = {"\"ack.node", "\"aliquot.", "\"aliyun."};

        for (size_t i = 0; i < ELEMENTSOF(signs); i++)
                if (memmem(text.data, text.len, signs[i], strlen(signs[i])))
                        return true;
        return false;
}

static int take_node(void *userdata, Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ClusterFacts *c = userdata;
        NodeFacts *nodes;
        Node node;
        int r;

        if (!concerns_us(text))
                return 0;
        r = node_decode(text, &arena, &node, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        nodes = reallocarray(c->nodes, c->n_nodes + 1, sizeof *nodes);
        if (!nodes)
                return -ENOMEM;
        c->nodes = nodes;
        nodes[c->n_nodes++] = (NodeFacts){.name = str_dup(node.meta.name),
                                          .text = str_dup(text),
                                          .json = json_loadb(text.data, text.len, 0, NULL),
                                          .shares = share_mode_has_memory(share_mode_from_label(node.mode)) ||
                                                    str_eq(node.holds_slices, STR("true"))};
        /* the larger part of a Node, not needed here */
        (void) json_object_del(fact_at(nodes[c->n_nodes - 1].json, "status", NULL), "images");
        (void) json_object_del(fact_at(nodes[c->n_nodes - 1].json, "metadata", NULL), "managedFields");
        return nodes[c->n_nodes - 1].name && nodes[c->n_nodes - 1].text && nodes[c->n_nodes - 1].json
                       ? 0
                       : -ENOMEM;
}

int cluster_facts_take_nodes(ClusterFacts *c, Str list, Fault *fault) {
        return list_items_each(list, take_node, c, fault);
}

const json_t *cluster_facts_agent(const ClusterFacts *c, const char *node) {
        const json_t *pods = fact_at(c->api[API_PODS].json, "items", NULL);

        for (size_t i = 0; i < json_array_size(pods); i++) {
                const json_t *pod = json_array_get(pods, i);

                if (strcmp(fact_text(pod, "metadata", "labels", "app.kubernetes.io/component", NULL),
                           "node") == 0 &&
                    strcmp(fact_text(pod, "spec", "nodeName", NULL), node) == 0)
                        return pod;
        }
        return NULL;
}

static void ask_node(ClusterQuery *q, NodeFacts *node) {
        const json_t *agent = cluster_facts_agent(q->facts, node->name);
        _cleanup_buf_ Buf configz = BUF_NULL, ready = BUF_NULL;

        kube_node_path(&configz, str_from(node->name));
        buf_append_str(&configz, STR("/proxy/configz"));
        if (buf_result(&configz) == 0)
                /* on failure the fact has the reason */
                (void) ask_server(q, configz.data, NULL, true, &node->configz);
        if (!agent)
                return;
        kube_pod_path(&ready, str_from(fact_text(agent, "metadata", "namespace", NULL)),
                      str_from(fact_text(agent, "metadata", "name", NULL)));
        buf_append_str(&ready, STR(":" AGENT_PORT "/proxy/readyz"));
        if (buf_result(&ready) == 0)
                (void) ask_server(q, ready.data, NULL, false, &node->ready);
}

static void ask_nodes(ClusterQuery *q) {
        ClusterFacts *c = q->facts;
        Fact *list = &c->api[API_NODES];
        Fault why = FAULT_NULL;
        size_t asked = 0;

        q->asked_nodes = true;
        if (list->state != FACT_KNOWN)
                return;
        if (cluster_facts_take_nodes(c, str_from(list->text), &why) != 0) {
                list->state = FACT_SILENT;
                list->why = why;
        }
        for (size_t i = 0; i < c->n_nodes && asked < FACTS_NODES_ASKED; i++)
                if (c->nodes[i].shares) {
                        ask_node(q, &c->nodes[i]);
                        asked++;
                }
}

/* ---- the query ---- */

static int ask_question(ClusterQuery *q, ApiQuestion i) {
        _cleanup_buf_ Buf path = BUF_NULL;

        questions_path(i, q->facts->namespace_, &path);
        if (buf_result(&path) < 0)
                return -ENOMEM;
        return ask_server(q, path.data, i == API_ADMISSION ? dry_pod : NULL,
                          i != API_NODES && i != API_READY && i != API_METRICS, &q->facts->api[i]);
}

/* Takes the namespace from the webhook's configuration: only administrators write this object,
 * whereas any user may name a namespace or label a pod. */
static void find_namespace(ClusterFacts *c) {
        const json_t *webhooks = fact_at(c->api[API_MUTATING].json, "webhooks", NULL);
        const char *named =
                fact_text(json_array_get(webhooks, 0), "clientConfig", "service", "namespace", NULL);

        (void) snprintf(c->namespace_, sizeof c->namespace_, "%s",
                        questions_is_namespace(named) ? named : QUESTIONS_NAMESPACE);
}

/* Asks what comes next. A question that could not be asked has its reason in its fact. */
static void ask_next(ClusterQuery *q) {
        if (!q->asked_all) {
                q->asked_all = true;
                find_namespace(q->facts);
                for (int i = 0; i < API_QUESTIONS_; i++)
                        if (i != API_MUTATING)
                                (void) ask_question(q, (ApiQuestion) i);
        }
        if (q->pending == 0 && !q->asked_nodes)
                ask_nodes(q);
}

int cluster_facts_new(sd_event *event, const KubeConfig *config, usec_t timeout, ClusterFacts *ret_facts,
                      ClusterQuery **ret) {
        _cleanup_(cluster_facts_freep) ClusterQuery *q = calloc(1, sizeof *q);
        int r;

        if (!q)
                return -ENOMEM;
        q->facts = ret_facts;
        q->timeout = timeout;
        r = kube_client_new(event, config, &q->client);
        if (r == 0)
                r = ask_question(q, API_MUTATING);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(q);
        return 0;
}

ClusterQuery *cluster_facts_free(ClusterQuery *q) {
        if (!q)
                return NULL;
        kube_client_free(q->client);
        free(q);
        return NULL;
}

bool cluster_facts_complete(const ClusterQuery *q) {
        return q->pending == 0;
}
