/* SPDX-License-Identifier: Apache-2.0 */
#include "local/predicates.h"

#include <errno.h>

#include "base/quantity.h"
#include "wire/annotation.h"
#include "wire/pod.h"

static const char *text_or_empty(const char *text) {
        return text ? text : "";
}

/* --- taints ----------------------------------------------------------------------------------- */

static bool toleration_covers(const json_t *toleration, const json_t *taint) {
        const char *operator_ = text_or_empty(tree_text(toleration, "operator", NULL));
        const char *key = text_or_empty(tree_text(toleration, "key", NULL));
        const char *effect = text_or_empty(tree_text(toleration, "effect", NULL));
        const char *value = text_or_empty(tree_text(toleration, "value", NULL));

        if (*effect && strcmp(effect, text_or_empty(tree_text(taint, "effect", NULL))) != 0)
                return false;
        if (*key && strcmp(key, text_or_empty(tree_text(taint, "key", NULL))) != 0)
                return false;
        if (strcmp(operator_, "Exists") == 0)
                return true;
        /* An empty key is valid only with Exists. */
        return *key && strcmp(value, text_or_empty(tree_text(taint, "value", NULL))) == 0;
}

static bool is_tolerated(const json_t *pod, const json_t *taint) {
        const json_t *tolerations = tree_at(pod, "spec", "tolerations", NULL), *toleration;
        size_t i;

        json_array_foreach(tolerations, i, toleration) {
                if (toleration_covers(toleration, taint))
                        return true;
        }
        return false;
}

static bool taints_pass(const json_t *pod, const json_t *node, Buf *reason) {
        const json_t *taints = tree_at(node, "spec", "taints", NULL), *taint;
        size_t i;

        json_array_foreach(taints, i, taint) {
                const char *effect = text_or_empty(tree_text(taint, "effect", NULL));

                /* PreferNoSchedule only lowers the score. */
                if (strcmp(effect, "NoSchedule") != 0 && strcmp(effect, "NoExecute") != 0)
                        continue;
                if (is_tolerated(pod, taint))
                        continue;
                buf_appendf(reason, "node(s) had untolerated taint {%s: %s}",
                            text_or_empty(tree_text(taint, "key", NULL)),
                            text_or_empty(tree_text(taint, "value", NULL)));
                return false;
        }
        return true;
}

static bool schedulable_passes(const json_t *pod, const json_t *node, Buf *reason) {
        _cleanup_json_ json_t *taint = NULL;

        if (!json_is_true(tree_at(node, "spec", "unschedulable", NULL)))
                return true;
        taint = json_pack("{s:s, s:s}", "key", "node.kubernetes.io/unschedulable", "effect", "NoSchedule");
        if (taint && is_tolerated(pod, taint))
                return true;
        buf_append_str(reason, STR("node(s) were unschedulable"));
        return false;
}

/* --- node selector and affinity --------------------------------------------------------------- */

static bool is_listed(const json_t *values, const char *value) {
        const json_t *one;
        size_t i;

        json_array_foreach(values, i, one) {
                if (json_is_string(one) && strcmp(json_string_value(one), value) == 0)
                        return true;
        }
        return false;
}

static bool to_i64(const char *text, int64_t *ret) {
        bool negative = text && *text == '-';
        uint64_t amount;

        if (!text || !str_to_u64(str_from(text + (negative ? 1 : 0)), &amount) || amount > INT64_MAX)
                return false;
        *ret = negative ? -(int64_t) amount : (int64_t) amount;
        return true;
}

static bool is_beyond(const json_t *values, const char *value, bool greater) {
        int64_t limit, have;

        if (!to_i64(json_string_value(json_array_get(values, 0)), &limit) || !to_i64(value, &have))
                return false;
        return greater ? have > limit : have < limit;
}

/* One requirement of a term. value: the label or field, NULL when the node has none. */
static bool requirement_holds(const json_t *requirement, const char *value) {
        const char *operator_ = text_or_empty(tree_text(requirement, "operator", NULL));
        const json_t *values = json_object_get(requirement, "values");

        if (strcmp(operator_, "In") == 0)
                return value && is_listed(values, value);
        if (strcmp(operator_, "NotIn") == 0)
                return !value || !is_listed(values, value);
        if (strcmp(operator_, "Exists") == 0)
                return value;
        if (strcmp(operator_, "DoesNotExist") == 0)
                return !value;
        if (strcmp(operator_, "Gt") == 0 || strcmp(operator_, "Lt") == 0)
                return value && is_beyond(values, value, *operator_ == 'G');
        return false; /* an unknown operator matches nothing */
}

static bool requirements_hold(const json_t *requirements, const json_t *node, bool fields) {
        const json_t *one;
        size_t i;

        json_array_foreach(requirements, i, one) {
                const char *key = text_or_empty(tree_text(one, "key", NULL));
                const char *value;

                if (fields) /* metadata.name is the only field */
                        value = strcmp(key, "metadata.name") == 0 ? tree_text(node, "metadata", "name", NULL)
                                                                  : NULL;
                else
                        value = tree_text(node, "metadata", "labels", key, NULL);
                if (!requirement_holds(one, value))
                        return false;
        }
        return true;
}

/* Terms are ORed, requirements within a term ANDed; an empty term matches nothing. */
static bool affinity_holds(const json_t *pod, const json_t *node) {
        const json_t *terms =
                tree_at(pod, "spec", "affinity", "nodeAffinity",
                        "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", NULL);
        const json_t *term;
        size_t i;

        if (!terms)
                return true;
        json_array_foreach(terms, i, term) {
                const json_t *expressions = json_object_get(term, "matchExpressions");
                const json_t *fields = json_object_get(term, "matchFields");

                if (json_array_size(expressions) + json_array_size(fields) == 0)
                        continue;
                if (requirements_hold(expressions, node, false) && requirements_hold(fields, node, true))
                        return true;
        }
        return false;
}

static bool selector_passes(const json_t *pod, const json_t *node, Buf *reason) {
        json_t *selector = tree_at(pod, "spec", "nodeSelector", NULL), *wanted;
        const char *key;
        bool holds = affinity_holds(pod, node);

        json_object_foreach(selector, key, wanted) {
                const char *value = tree_text(node, "metadata", "labels", key, NULL);

                holds = holds && value && json_is_string(wanted) &&
                        strcmp(value, json_string_value(wanted)) == 0;
        }
        if (!holds)
                buf_append_str(reason, STR("node(s) didn't match Pod's node affinity/selector"));
        return holds;
}

/* --- resources -------------------------------------------------------------------------------- */

static bool is_ours(const char *resource) {
        return strcmp(resource, RESOURCE_GPU_MEM) == 0 || strcmp(resource, RESOURCE_GPU_CORE) == 0 ||
               strcmp(resource, RESOURCE_GPU_COUNT) == 0 || strcmp(resource, RESOURCE_GPU) == 0;
}

/* Resources that the extender counts by card, so that no sum over the node can refuse them.
 * gpu-count is not one of them: a container's limit of it is an ordinary extended resource, which
 * kube-scheduler (NodeResourcesFit) and the kubelet compare with status.allocatable. */
static bool is_the_extenders(const char *resource) {
        return strcmp(resource, RESOURCE_GPU_MEM) == 0 || strcmp(resource, RESOURCE_GPU_CORE) == 0 ||
               strcmp(resource, RESOURCE_GPU) == 0;
}

/* A quantity in thousandths, rounded up like the scheduler's. Malformed quantities count as zero;
 * the API server has refused them. Sums of two stay within the type. */
static int64_t to_milli(const json_t *quantity) {
        const int64_t most = INT64_MAX / 2;
        const char *written = json_string_value(quantity);
        char number[32];
        Str text;
        uint64_t whole;
        int64_t milli;

        if (!written) /* a number in JSON; 0 for what is none */
                (void) snprintf(number, sizeof number, "%.15g", json_number_value(quantity));
        text = str_from(written ? written : number);
        if (quantity_parse_milli(text, &milli))
                return milli < most ? milli : most;
        return quantity_parse(text, &whole) == 0 ? most : 0;
}

static int64_t sum_of(const json_t *sums, const char *resource) {
        return json_integer_value(json_object_get(sums, resource));
}

static int add_to(json_t *sums, const char *resource, int64_t milli) {
        int64_t sum;

        if (__builtin_add_overflow(sum_of(sums, resource), milli, &sum))
                sum = INT64_MAX;
        return json_object_set_new(sums, resource, json_integer(sum)) < 0 ? -ENOMEM : 0;
}

/* Adds one container's requests; a limit without a request counts as request (the API server's
 * defaulting). */
static int add_container(json_t *sums, const json_t *container) {
        json_t *requests = tree_at(container, "resources", "requests", NULL), *quantity;
        json_t *limits = tree_at(container, "resources", "limits", NULL);
        const char *resource;
        int r = 0;

        json_object_foreach(requests, resource, quantity) {
                if (r == 0 && !is_the_extenders(resource))
                        r = add_to(sums, resource, to_milli(quantity));
        }
        json_object_foreach(limits, resource, quantity) {
                if (r == 0 && !is_the_extenders(resource) && !json_object_get(requests, resource))
                        r = add_to(sums, resource, to_milli(quantity));
        }
        return r;
}

static int raise_to(json_t *sums, json_t *floor) {
        const char *resource;
        json_t *milli;

        json_object_foreach(floor, resource, milli) {
                if (json_integer_value(milli) > sum_of(sums, resource) &&
                    json_object_set(sums, resource, milli) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Init containers run one after another, beside the sidecars that precede them. The pod needs the
 * larger of each such moment and of the sum of what stays. */
static int sum_of_pod(const json_t *pod, json_t *sums) {
        _cleanup_json_ json_t *sidecars = json_object(), *peak = json_object();
        const json_t *containers = tree_at(pod, "spec", "containers", NULL);
        const json_t *inits = tree_at(pod, "spec", "initContainers", NULL), *one;
        size_t i;
        int r = sidecars && peak ? 0 : -ENOMEM;

        json_array_foreach(inits, i, one) {
                const char *policy = tree_text(one, "restartPolicy", NULL);
                _cleanup_json_ json_t *moment = NULL;

                if (policy && strcmp(policy, "Always") == 0) {
                        r = r < 0 ? r : add_container(sidecars, one);
                        continue;
                }
                moment = json_copy(sidecars);
                r = r < 0 || !moment ? -ENOMEM : add_container(moment, one);
                r = r < 0 ? r : raise_to(peak, moment);
        }
        r = r < 0 ? r : (json_object_update(sums, sidecars) < 0 ? -ENOMEM : 0);
        json_array_foreach(containers, i, one) {
                r = r < 0 ? r : add_container(sums, one);
        }
        r = r < 0 ? r : raise_to(sums, peak);
        return r < 0 ? r : add_to(sums, "pods", 1000);
}

int predicates_charge(json_t *used, const json_t *pod) {
        _cleanup_json_ json_t *ask = json_object();
        const char *resource;
        json_t *milli;
        int r = ask ? sum_of_pod(pod, ask) : -ENOMEM;

        json_object_foreach(ask, resource, milli) {
                r = r < 0 ? r : add_to(used, resource, json_integer_value(milli));
        }
        return r;
}

static bool resources_pass(const json_t *pod, const json_t *node, const json_t *used, Buf *reason) {
        _cleanup_json_ json_t *ask = json_object();
        const char *resource;
        json_t *milli;

        if (!ask || sum_of_pod(pod, ask) < 0) {
                buf_append_str(reason, STR("out of memory"));
                return false;
        }
        json_object_foreach(ask, resource, milli) {
                const json_t *offered = tree_at(node, "status", "allocatable", resource, NULL);
                bool extended = strchr(resource, '/');

                /* A simulated node may omit its number of cores, but it lacks an extended resource
                 * that it does not name. */
                if ((!offered && !extended) || json_integer_value(milli) == 0)
                        continue;
                if (json_integer_value(milli) <= (offered ? to_milli(offered) : 0) - sum_of(used, resource))
                        continue;
                if (strcmp(resource, "pods") == 0)
                        buf_append_str(reason, STR("Too many pods"));
                else
                        buf_appendf(reason, "Insufficient %s", resource);
                return false;
        }
        return true;
}

/* -------------------------------------------------------------------------------------------- */

bool predicates_pass(const json_t *pod, const json_t *node, const json_t *used, Buf *reason) {
        return schedulable_passes(pod, node, reason) && taints_pass(pod, node, reason) &&
               selector_passes(pod, node, reason) && resources_pass(pod, node, used, reason);
}

bool predicates_suits(const json_t *pod, const json_t *node) {
        _cleanup_buf_ Buf reason = BUF_NULL;

        return taints_pass(pod, node, &reason) && selector_passes(pod, node, &reason);
}

static bool names_ours(const json_t *list) {
        const json_t *container;
        size_t i;

        json_array_foreach(list, i, container) {
                static const char *const parts[] = {"limits", "requests"};

                for (size_t p = 0; p < ELEMENTSOF(parts); p++) {
                        json_t *amounts = tree_at(container, "resources", parts[p], NULL), *value;
                        const char *resource;

                        json_object_foreach(amounts, resource, value) {
                                if (is_ours(resource))
                                        return true;
                        }
                }
        }
        return false;
}

bool predicates_is_managed(const json_t *pod) {
        return names_ours(tree_at(pod, "spec", "containers", NULL)) ||
               names_ours(tree_at(pod, "spec", "initContainers", NULL));
}
