/* SPDX-License-Identifier: Apache-2.0 */
#include "local/cycle.h"

#include <errno.h>

#include "base/clock.h"
#include "kube/api.h"
#include "local/predicates.h"
#include "local/reasons.h"
#include "local/sync_call.h"

#define EXTENDER "/gpushare-scheduler"

/* An extender that is not ready answers 503 and is asked again, 200 times every 50 ms. A pod whose
 * binding is refused goes through the cycle again after a back-off: after a lost answer the
 * extender reports an open outcome for a second. There is no jitter: this API server has no other
 * clients, and the attempts (about 18 s) must not depend on chance. */
enum { READY_ATTEMPTS = 200, BIND_ATTEMPTS = 12 };
static const usec_t ready_pause = 50 * USEC_PER_MSEC;
static const usec_t bind_backoff = 250 * USEC_PER_MSEC, bind_backoff_cap = 2 * USEC_PER_SEC;

/* Besides CYCLE_E_REFUSED: a node was found, but the binding failed. */
enum { ATTEMPT_E_BIND = 2 };

struct Cycle {
        KubeClient *api, *extender;
        const json_t *nodes;
        bool all;     /* as in cycle_new() */
        json_t *used; /* node name -> resource -> thousandths */
};

int cycle_new(KubeClient *api, KubeClient *extender, const json_t *nodes, bool all, Cycle **ret) {
        Cycle *c = calloc(1, sizeof *c);

        if (!c)
                return -ENOMEM;
        c->used = json_object();
        if (!c->used) {
                free(c);
                return -ENOMEM;
        }
        c->api = api;
        c->extender = extender;
        c->nodes = nodes;
        c->all = all;
        *ret = c;
        return 0;
}

Cycle *cycle_free(Cycle *c) {
        if (!c)
                return NULL;
        json_decref(c->used);
        free(c);
        return NULL;
}

static int charge_pod(Cycle *c, const json_t *pod, const char *node) {
        json_t *used = tree_make(c->used, node, NULL);

        return used ? predicates_charge(used, pod) : -ENOMEM;
}

int cycle_charge(Cycle *c, const json_t *pod) {
        const char *node = tree_text(pod, "spec", "nodeName", NULL);

        return node ? charge_pod(c, pod, node) : 0;
}

/* --- talking to the extender ------------------------------------------------------------------ */

static int post_args(Cycle *c, const char *path, const json_t *args, json_t **ret, Fault *fault) {
        _cleanup_free_ char *body = json_dumps(args, JSON_COMPACT);

        if (!body)
                return -ENOMEM;
        for (unsigned attempt = 0;; attempt++) {
                _cleanup_sync_call_ SyncCall ask = SYNC_CALL_NULL;
                json_t *answer;
                int r;

                r = sync_call_run(&ask, c->extender,
                                  &(KubeRequest){.method = "POST", .path = path, .body = str_from(body)});
                if (r < 0)
                        return r;
                if (ask.outcome == KUBE_DONE && ask.status == 503 && attempt < READY_ATTEMPTS) {
                        r = sync_call_pause(kube_client_event(c->extender), ready_pause);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (!sync_call_is_ok(&ask))
                        return fault_set(fault, -EIO, "extender: %s", ask.fault.text);
                answer = json_loadb(ask.body.data, ask.body.len, 0, NULL);
                if (!answer)
                        return fault_set(fault, -EBADMSG, "extender: POST %s: the answer is not JSON", path);
                *ret = answer;
                return 0;
        }
}

static json_t *extender_args(const json_t *pod, const json_t *names) {
        return json_pack("{s:O, s:n, s:O}", "Pod", pod, "Nodes", "NodeNames", names);
}

/* Marks the reason of the nearest node, which the extender names first in FailedNodes. */
static int note_nearest(Reasons *reasons, json_t *failed) {
        json_t *text = json_object_iter_value(json_object_iter(failed));

        return text ? reasons_set_nearest(reasons, str_from(json_string_value(text))) : 0;
}

/* A node in both maps counts once; FailedAndUnresolvableNodes has precedence, as
 * in kube-scheduler. */
static int collect_reasons(Reasons *reasons, json_t *failed, const json_t *final) {
        const char *node;
        json_t *text;

        json_object_foreach(failed, node, text) {
                int r = 0;

                if (!json_object_get(final, node))
                        r = reasons_add(reasons, str_from(json_string_value(text)));
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Replaces *names by those that pass the extender. */
static int ask_filter(Cycle *c, const json_t *pod, json_t **names, Reasons *reasons, Buf *reason,
                      Fault *fault) {
        _cleanup_json_ json_t *args = extender_args(pod, *names), *answer = NULL;
        json_t *final, *fit;
        const char *sentence;
        int r;

        if (!args)
                return -ENOMEM;
        r = post_args(c, EXTENDER "/filter", args, &answer, fault);
        if (r < 0)
                return r;
        sentence = tree_text(answer, "Error", NULL);
        final = json_object_get(answer, "FailedAndUnresolvableNodes");
        if (sentence && *sentence) {
                buf_append_str(reason, str_from(sentence));
                return CYCLE_E_REFUSED;
        }
        r = note_nearest(reasons, json_object_get(answer, "FailedNodes"));
        if (r == 0)
                r = collect_reasons(reasons, json_object_get(answer, "FailedNodes"), final);
        if (r == 0)
                r = collect_reasons(reasons, final, NULL);
        if (r < 0)
                return r;
        fit = json_object_get(answer, "NodeNames");
        json_decref(*names);
        *names = json_is_array(fit) ? json_incref(fit) : json_array();
        return *names ? 0 : -ENOMEM;
}

/* --- choice ----------------------------------------------------------------------------------- */

static int check_predicates(Cycle *c, const json_t *pod, json_t **ret_names, Reasons *reasons) {
        _cleanup_json_ json_t *names = json_array();
        _cleanup_buf_ Buf reason = BUF_NULL;
        const json_t *node;
        size_t i;

        if (!names)
                return -ENOMEM;
        json_array_foreach(c->nodes, i, node) {
                const char *name = tree_text(node, "metadata", "name", NULL);
                int r;

                buf_clear(&reason);
                if (predicates_pass(pod, node, json_object_get(c->used, name), &reason))
                        r = json_array_append_new(names, json_string(name)) < 0 ? -ENOMEM : 0;
                else
                        r = reasons_add(reasons, buf_str(&reason));
                if (r < 0)
                        return r;
        }
        *ret_names = TAKE_PTR(names);
        return 0;
}

static int64_t pods_on(const Cycle *c, const char *node) {
        return json_integer_value(tree_at(c->used, node, "pods", NULL));
}

/* Chooses the node with the best score; among equals the one with fewer pods, then the first by
 * name, so that each run chooses the same. */
static const char *choose_node(const Cycle *c, const json_t *names, json_t *scores) {
        const char *best = NULL;
        int64_t best_score = 0;
        const json_t *one;
        size_t i;

        json_array_foreach(names, i, one) {
                const char *name = json_string_value(one);
                int64_t score = json_integer_value(json_object_get(scores, name));

                if (best &&
                    (score < best_score || (score == best_score && pods_on(c, name) >= pods_on(c, best))))
                        continue;
                best = name;
                best_score = score;
        }
        return best;
}

static int ask_scores(Cycle *c, const json_t *pod, const json_t *names, json_t *scores, Fault *fault) {
        _cleanup_json_ json_t *args = extender_args(pod, names), *answer = NULL;
        const json_t *one;
        size_t i;
        int r;

        if (!args)
                return -ENOMEM;
        r = post_args(c, EXTENDER "/prioritize", args, &answer, fault);
        if (r < 0)
                return r;
        json_array_foreach(answer, i, one) {
                const char *host = tree_text(one, "Host", NULL);

                if (host && json_object_set(scores, host, json_object_get(one, "Score")) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* --- bind ------------------------------------------------------------------------------------- */

static int bind_by_extender(Cycle *c, const json_t *pod, const char *node, Buf *reason, Fault *fault) {
        _cleanup_json_ json_t *answer = NULL;
        _cleanup_json_ json_t *args =
                json_pack("{s:s, s:s, s:s, s:s}", "PodName", tree_text(pod, "metadata", "name", NULL),
                          "PodNamespace", tree_text(pod, "metadata", "namespace", NULL), "PodUID",
                          tree_text(pod, "metadata", "uid", NULL), "Node", node);
        const char *error;
        int r;

        if (!args)
                return -ENOMEM;
        r = post_args(c, EXTENDER "/bind", args, &answer, fault);
        if (r < 0)
                return r;
        error = tree_text(answer, "Error", NULL);
        if (!error || !*error)
                return 0;
        buf_appendf(reason, "bind to %s: %s", node, error);
        return ATTEMPT_E_BIND;
}

/* Whether the pod is bound to the node although the call failed: the answer may be lost, or a
 * repetition refused because the first attempt succeeded. */
static bool is_bound(Cycle *c, const KubeBinding *b) {
        _cleanup_json_ json_t *pod = NULL;
        const char *node;
        char path[640];

        (void) snprintf(path, sizeof path, "/api/v1/namespaces/" STR_FMT "/pods/" STR_FMT,
                        STR_ARG(b->namespace_), STR_ARG(b->name));
        if (sync_call_get(c->api, path, &pod, NULL) != 0)
                return false;
        node = tree_text(pod, "spec", "nodeName", NULL);
        return node && str_eq(str_from(node), b->node);
}

static int bind_plain(Cycle *c, const json_t *pod, const char *node, Buf *reason, Fault *fault) {
        KubeBinding binding = {.namespace_ = str_from(tree_text(pod, "metadata", "namespace", NULL)),
                               .name = str_from(tree_text(pod, "metadata", "name", NULL)),
                               .uid = str_from(tree_text(pod, "metadata", "uid", NULL)),
                               .node = str_from(node),
                               .annotations = STR("{}")};
        _cleanup_sync_call_ SyncCall ask = SYNC_CALL_NULL;
        int r;

        r = kube_bind(c->api, &binding, sync_call_done, &ask, NULL);
        if (r == 0)
                r = sync_call_wait(&ask, kube_client_event(c->api));
        if (r < 0)
                return r;
        if (sync_call_is_ok(&ask) || is_bound(c, &binding))
                return 0;
        buf_appendf(reason, "bind to %s: %s", node, ask.fault.text);
        return ATTEMPT_E_BIND;
}

/* --- the cycle -------------------------------------------------------------------------------- */

static int attempt_pod(Cycle *c, const json_t *pod, Buf *reason, Fault *fault) {
        _cleanup_(reasons_done) Reasons reasons = REASONS_NULL;
        _cleanup_json_ json_t *names = NULL, *scores = json_object();
        bool managed = c->all || predicates_is_managed(pod);
        const char *node;
        int r;

        if (!scores)
                return -ENOMEM;
        r = check_predicates(c, pod, &names, &reasons);
        if (r == 0 && managed && json_array_size(names) > 0)
                r = ask_filter(c, pod, &names, &reasons, reason, fault);
        if (r != 0)
                return r;
        if (json_array_size(names) == 0) {
                reasons_format(&reasons, json_array_size(c->nodes), reason);
                return CYCLE_E_REFUSED;
        }
        if (managed && json_array_size(names) > 1)
                r = ask_scores(c, pod, names, scores, fault);
        if (r < 0)
                return r;
        node = choose_node(c, names, scores);
        r = managed ? bind_by_extender(c, pod, node, reason, fault) : bind_plain(c, pod, node, reason, fault);
        return r != 0 ? r : charge_pod(c, pod, node);
}

static bool may_be_scheduled(const json_t *pod, Buf *reason) {
        const char *name = tree_text(pod, "spec", "schedulerName", NULL);

        if (json_array_size(tree_at(pod, "spec", "schedulingGates", NULL)) > 0) {
                buf_append_str(reason, STR("Scheduling is blocked due to non-empty scheduling gates"));
                return false;
        }
        if (!name || !*name || strcmp(name, "default-scheduler") == 0 ||
            strcmp(name, "ack-co-scheduler") == 0)
                return true;
        buf_appendf(reason, "schedulerName \"%s\": no such scheduler here", name);
        return false;
}

int cycle_schedule(Cycle *c, const json_t *pod, Buf *reason, Fault *fault) {
        usec_t pause = bind_backoff;
        int r = ATTEMPT_E_BIND;

        if (!may_be_scheduled(pod, reason))
                return CYCLE_E_REFUSED;
        for (unsigned i = 0; i < BIND_ATTEMPTS && r == ATTEMPT_E_BIND; i++) {
                if (i > 0) {
                        r = sync_call_pause(kube_client_event(c->api), pause);
                        if (r < 0)
                                return r;
                        pause = pause * 2 < bind_backoff_cap ? pause * 2 : bind_backoff_cap;
                }
                buf_clear(reason);
                r = attempt_pod(c, pod, reason, fault);
        }
        return r == ATTEMPT_E_BIND ? CYCLE_E_REFUSED : r;
}
