/* SPDX-License-Identifier: Apache-2.0 */
#include "local/judges.h"

#include <errno.h>

#include "gpu/cards/simulated_cards.h"
#include "local/apiserver/types.h"
#include "local/policy_judge.h"
#include "local/tree.h"
#include "scheduler/webhook/review.h"
#include "share/node_keys.h"
#include "share/request.h"
#include "wire/annotation.h"
#include "wire/key_typo.h"

/* ---- the agent ---- */

/* The node's simulated cards. Returns whether they are known. */
static bool read_cards(const Node *node, CardIndexes *ret) {
        _cleanup_(card_list_done) CardList list = {0};

        if (str_is_empty(node->annotations.simulated_cards) ||
            cards_simulate(node->annotations.simulated_cards, node->meta.name, &list, NULL) != 0)
                return false; /* malformed: the node is refused (simulated_node.h) */
        for (size_t i = 0; i < list.n; i++)
                card_indexes_add(ret, list.cards[i].index);
        return true;
}

static bool offers_cards(ShareMode mode) {
        return share_mode_offers(mode, false, false) || share_mode_offers(mode, true, false);
}

/* A node without cards in its manifest has none here, unless it comes with its resources. */
static int tell_no_cards(const json_t *object, const Node *node, JudgesNote note, void *userdata) {
        json_t *annotations = tree_at(object, "metadata", "annotations", NULL), *value;
        Fault text = FAULT_NULL;
        const char *key;

        if (!str_is_empty(node->annotations.simulated_cards) ||
            tree_at(object, "status", "allocatable", NULL))
                return 0;
        json_object_foreach(annotations, key, value) {
                if (key_typo_distance(str_from(key), ANNOTATION_SIMULATED_CARDS) != KEY_TYPO_NONE)
                        key_typo_complain("annotation", str_from(key), "annotation",
                                          ANNOTATION_SIMULATED_CARDS, &text);
        }
        if (!text.text[0] && offers_cards(share_mode_from_label(node->mode)))
                (void) fault_set(&text, 0,
                                 "it has no cards: annotation " ANNOTATION_SIMULATED_CARDS
                                 " names them, as 4xTesla-V100-SXM2-16GB:16160MiB");
        return text.text[0] ? note(userdata, text.text) : 0;
}

static int ask_agent(const json_t *object, JudgesNote note, void *userdata) {
        CardIndexes present = {{0}};
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        NodeKeys keys = {0};
        Node node;
        int r = text ? node_decode(str_from(text), &arena, &node, NULL) : -ENOMEM;

        if (r != 0)
                return r < 0 ? r : 0; /* malformed: the API server reports it */
        node_keys_check(&keys, &node, "none", "GiB", read_cards(&node, &present) ? &present : NULL);
        node_keys_check_names(&keys, str_from(text));
        for (size_t i = 0; i < ELEMENTSOF(keys.wrong) && r == 0; i++)
                if (keys.wrong[i].text[0])
                        r = note(userdata, keys.wrong[i].text);
        return r == 0 ? tell_no_cards(object, &node, note, userdata) : r;
}

/* ---- the webhook ---- */

static const json_t *pod_of(const json_t *object) {
        const json_t *template_ = tree_at(object, "spec", "template", NULL);

        return template_ ? template_ : object;
}

/* *ret_later: the scheduler will refuse the pod's GPU request and say why, so the webhook's reason
 * is not noted. */
static int is_refused_later(const json_t *pod, bool *ret_later) {
        _cleanup_json_ json_t *whole =
                json_pack("{s:{s:s, s:s, s:O*, s:O*}, s:O*}", "metadata", "name", "pod", "namespace",
                          "default", "labels", tree_at(pod, "metadata", "labels", NULL), "annotations",
                          tree_at(pod, "metadata", "annotations", NULL), "spec", tree_at(pod, "spec", NULL));
        _cleanup_free_ char *text = whole ? json_dumps(whole, JSON_COMPACT) : NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Refusal refusal;
        Request request;
        Pod decoded;
        int r = text ? pod_decode(str_from(text), &arena, &decoded, NULL) : -ENOMEM;

        if (r != 0)
                return r < 0 ? r : 0; /* malformed: the API server reports it */
        r = request_from_pod(&decoded, &arena, &request, &refusal);
        *ret_later = r == REQUEST_E_REFUSED;
        return r < 0 ? r : 0;
}

/* ---- the scheduler, of a ResourcePolicy ---- */

static int ask_scheduler(const json_t *object, JudgesNote note, void *userdata) {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);
        Fault wrong = FAULT_NULL, ignored = FAULT_NULL;
        int r = text ? policy_judge(str_from(text), &wrong, &ignored) : -ENOMEM;

        if (r == 0 && wrong.text[0])
                r = note(userdata, wrong.text);
        if (r == 0 && ignored.text[0])
                r = note(userdata, ignored.text);
        return r;
}

/* ---- what only a cluster judges ---- */

static bool any_has(const json_t *list, const char *member, const char *of_item) {
        const json_t *one, *item;
        size_t i, k;

        json_array_foreach(list, i, one) {
                const json_t *value = json_object_get(one, member);

                if (!of_item && value)
                        return true;
                json_array_foreach(value, k, item) {
                        if (json_object_get(item, of_item))
                                return true;
                }
        }
        return false;
}

/* Whether one of the init containers that stay, sidecars, has a port of the node. kube-scheduler
 * passes over the ports of the others. */
static bool sidecar_has_host_port(const json_t *spec) {
        const json_t *one, *port;
        size_t i, k;

        json_array_foreach(json_object_get(spec, "initContainers"), i, one) {
                const char *policy = json_string_value(json_object_get(one, "restartPolicy"));

                if (!policy || strcmp(policy, "Always") != 0)
                        continue;
                json_array_foreach(json_object_get(one, "ports"), k, port) {
                        if (json_object_get(port, "hostPort"))
                                return true;
                }
        }
        return false;
}

/* Whether the member names an object that this cluster does not have. */
static bool names_another(const json_t *spec, const char *key, const char *known) {
        const char *name = json_string_value(json_object_get(spec, key));

        return name && name[0] != '\0' && strcmp(name, known) != 0;
}

static int tell_unjudged(const json_t *spec, JudgesNote note, void *userdata) {
        const json_t *affinity = json_object_get(spec, "affinity");
        const struct {
                const char *rule;
                bool is_there;
        } rules[] = {
                {"affinity.podAffinity", json_object_get(affinity, "podAffinity")},
                {"affinity.podAntiAffinity", json_object_get(affinity, "podAntiAffinity")},
                {"topologySpreadConstraints",
                 json_array_size(json_object_get(spec, "topologySpreadConstraints")) > 0},
                {"resourceClaims", json_array_size(json_object_get(spec, "resourceClaims")) > 0},
                {"priorityClassName", names_another(spec, "priorityClassName", "")},
                {"runtimeClassName", names_another(spec, "runtimeClassName", "")},
                {"serviceAccountName", names_another(spec, "serviceAccountName", "default")},
                {"containers[].ports[].hostPort",
                 any_has(json_object_get(spec, "containers"), "ports", "hostPort")},
                {"initContainers[].ports[].hostPort", sidecar_has_host_port(spec)},
                {"volumes[].persistentVolumeClaim",
                 any_has(json_object_get(spec, "volumes"), "persistentVolumeClaim", NULL)},
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(rules) && r == 0; i++) {
                Fault text = FAULT_NULL;

                if (!rules[i].is_there)
                        continue;
                (void) fault_set(&text, 0,
                                 "spec.%s is not judged here, and can keep it off a node of a cluster",
                                 rules[i].rule);
                r = note(userdata, text.text);
        }
        return r;
}

/* Members that are judged, or named by a sentence of their own, and are not in the API server's
 * table. */
static const char *const read_of_spec[] = {"resources", "topologySpreadConstraints", "resourceClaims",
                                           "runtimeClassName", "ephemeralContainers"};
static const char *const read_of_container[] = {"resources"};

static bool is_in(const char *const *list, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i], name) == 0)
                        return true;
        return false;
}

static void add_unread(Buf *names, const char *path, const char *member) {
        char name[128];
        unsigned n = 1;

        (void) snprintf(name, sizeof name, "%s.%.60s", path, member);
        for (Str rest = buf_str(names); !str_is_empty(rest); n++) {
                Str one = str_split(&rest, ',');

                if (str_eq(str_trim(one), str_from(name)))
                        return;
        }
        if (n <= JUDGES_UNREAD_MAX)
                buf_appendf(names, "%s%s", names->len > 0 ? ", " : "", name);
}

void judges_add_unread(const json_t *object, Buf *names) {
        static const char *const lists[] = {"initContainers", "containers"};
        json_t *spec = tree_at(pod_of(object), "spec", NULL), *value;
        const char *key;
        char path[40];

        json_object_foreach(spec, key, value) {
                if (!store_types_has(STORE_TYPES_SPEC, key) &&
                    !is_in(read_of_spec, ELEMENTSOF(read_of_spec), key))
                        add_unread(names, "spec", key);
        }
        for (size_t k = 0; k < ELEMENTSOF(lists); k++) {
                json_t *one;
                size_t i;

                (void) snprintf(path, sizeof path, "spec.%s[]", lists[k]);
                json_array_foreach(json_object_get(spec, lists[k]), i, one) {
                        json_object_foreach(one, key, value) {
                                if (!store_types_has(STORE_TYPES_CONTAINER, key) &&
                                    !is_in(read_of_container, ELEMENTSOF(read_of_container), key))
                                        add_unread(names, path, key);
                        }
                }
        }
}

static json_t *make_review(const json_t *object) {
        const char *api_version = tree_text(object, "apiVersion", NULL);
        const char *slash = strchr(api_version, '/');

        /* as the scheduler's account, which may set the system keys: a manifest of a placed pod has
         * them */
        return json_pack(
                "{s:s, s:s, s:{s:s, s:{s:s%, s:s, s:s}, s:s, s:{s:s}, s:O}}", "apiVersion",
                "admission.k8s.io/v1", "kind", "AdmissionReview", "request", "uid", "local", "kind", "group",
                slash ? api_version : "", slash ? (size_t) (slash - api_version) : (size_t) 0, "version",
                slash ? slash + 1 : api_version, "kind", tree_text(object, "kind", NULL), "operation",
                "CREATE", "userInfo", "username", REVIEW_ACCOUNT_SCHEDULER, "object", object);
}

static int tell_answer(const json_t *answer, bool refused_later, JudgesNote note, void *userdata) {
        const json_t *response = json_object_get(answer, "response"), *warning;
        const char *message = tree_text(response, "status", "message", NULL);
        size_t i;
        int r = 0;

        if (message && json_is_false(json_object_get(response, "allowed")) && !refused_later)
                r = note(userdata, message);
        json_array_foreach(json_object_get(response, "warnings"), i, warning) {
                if (r == 0 && json_is_string(warning))
                        r = note(userdata, json_string_value(warning));
        }
        return r;
}

static int ask_review(Str review, bool refused_later, JudgesNote note, void *userdata) {
        _cleanup_json_ json_t *answer = NULL;
        _cleanup_buf_ Buf out = BUF_NULL;
        /* empty, as the webhook's before the nodes are listed */
        _cleanup_(ledger_freep) Ledger *no_nodes = NULL;
        ReviewRules rules = {.runtime_devices = false};
        ReviewVerdict verdict;
        int r = ledger_new(&no_nodes);

        rules.ledger = no_nodes;
        if (r == 0)
                r = review_answer(REVIEW_VALIDATE, &rules, review, &out, &verdict, NULL);
        if (r != 0)
                return r < 0 ? r : 0; /* malformed: the API server reports it */
        answer = json_loadb(out.data, out.len, 0, NULL);
        return answer ? tell_answer(answer, refused_later, note, userdata) : -ENOMEM;
}

/* Notes the webhook's refusal and warnings. Keys that it would remove are not noted, because they
 * stay here. */
static int ask_webhook(const json_t *object, JudgesNote note, void *userdata) {
        _cleanup_json_ json_t *review = make_review(object);
        _cleanup_free_ char *text = review ? json_dumps(review, JSON_COMPACT) : NULL;
        bool later = false;
        int r = text ? is_refused_later(pod_of(object), &later) : -ENOMEM;

        return r == 0 ? ask_review(str_from(text), later, note, userdata) : r;
}

int judges_ask(const json_t *object, JudgesNote note, void *userdata) {
        const char *kind = tree_text(object, "kind", NULL);

        int r;

        if (strcmp(kind, "Node") == 0)
                return ask_agent(object, note, userdata);
        if (strcmp(kind, "ResourcePolicy") == 0)
                return ask_scheduler(object, note, userdata);
        if (strcmp(kind, "ResourceQuota") == 0)
                return note(userdata, "its amounts are not judged here");
        r = ask_webhook(object, note, userdata);
        return r == 0 ? tell_unjudged(tree_at(pod_of(object), "spec", NULL), note, userdata) : r;
}
