/* SPDX-License-Identifier: Apache-2.0 */
#include "local/workload.h"

#include <errno.h>

#include "local/predicates.h"

typedef struct Shape Shape;

/* The number of pods of a workload, and what its controller adds to the template of each. */
struct Shape {
        const char *api_version, *kind;
        /* whether it must have a selector, which its template's labels match */
        bool selects;
        int (*count)(const json_t *workload, const json_t *nodes, uint64_t *ret, Fault *fault);
        int (*dress)(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index);
        bool by_node; /* a pod for each node that suits the template, and no other */
};

/* Reads a count in the spec; `otherwise` when it is absent. */
static int read_count(const json_t *workload, const char *field, uint64_t otherwise, uint64_t *ret,
                      Fault *fault) {
        const json_t *value = tree_at(workload, "spec", field, NULL);

        if (!value || json_is_null(value)) {
                *ret = otherwise;
                return 0;
        }
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return fault_set(fault, WORKLOAD_E_INVALID, "spec.%s must be a whole number from 0", field);
        if (json_integer_value(value) > WORKLOAD_MAX_PODS)
                return fault_set(fault, WORKLOAD_E_INVALID,
                                 "spec.%s is %" JSON_INTEGER_FORMAT ", must be at most %d", field,
                                 json_integer_value(value), WORKLOAD_MAX_PODS);
        *ret = (uint64_t) json_integer_value(value);
        return 0;
}

static int count_replicas(const json_t *workload, const json_t *nodes, uint64_t *ret, Fault *fault) {
        return read_count(workload, "replicas", 1, ret, fault);
}

/* A job runs min(parallelism, completions) pods at a time. With parallelism alone it is a work
 * queue with that many. */
static int count_job(const json_t *workload, const json_t *nodes, uint64_t *ret, Fault *fault) {
        uint64_t parallelism, completions;
        int r;

        r = read_count(workload, "parallelism", 1, &parallelism, fault);
        if (r != 0)
                return r;
        r = read_count(workload, "completions", parallelism, &completions, fault);
        if (r != 0)
                return r;
        if (json_is_true(tree_at(workload, "spec", "suspend", NULL)))
                parallelism = 0;
        *ret = parallelism < completions ? parallelism : completions;
        return 0;
}

static int count_nodes(const json_t *workload, const json_t *nodes, uint64_t *ret, Fault *fault) {
        *ret = json_array_size(nodes);
        return 0;
}

static int count_none(const json_t *workload, const json_t *nodes, uint64_t *ret, Fault *fault) {
        *ret = 0;
        return 0;
}

/* The alphabet of Kubernetes' suffixes (apimachinery, util/rand): without vowels, so that no words
 * appear. */
static void write_suffix(uint64_t hash, size_t n, char *ret) {
        static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";

        for (size_t i = 0; i < n; i++) {
                ret[i] = letters[hash % (sizeof letters - 1)];
                hash /= sizeof letters - 1;
        }
        ret[n] = '\0';
}

static uint64_t workload_hash(const json_t *workload, uint64_t seed) {
        char name[TREE_NAME_MAX];

        tree_pod_name(workload, name);
        return str_hash64(str_from(name), str_hash64(str_from(tree_text(workload, "kind", NULL)), seed));
}

/* The suffix of pod `index`. The API server draws again when a name is taken. Here the draw is a
 * walk over all 27^5 suffixes in steps of their golden section. It shares no factor with them, so
 * none appears twice. */
static void pod_suffix(const json_t *workload, uint64_t index, char ret[static 6]) {
        static const uint64_t n_suffixes = UINT64_C(27) * 27 * 27 * 27 * 27, step = 8868112;

        write_suffix((workload_hash(workload, 1) % n_suffixes + index * step) % n_suffixes, 5, ret);
}

/* Names the pod WORKLOAD-LAST or WORKLOAD-MIDDLE-LAST. */
static int set_name(json_t *pod, const json_t *workload, const char *middle, const char *last) {
        char name[512];

        (void) snprintf(name, sizeof name, "%s%s%s-%s", tree_text(workload, "metadata", "name", NULL),
                        middle ? "-" : "", middle ? middle : "", last);
        return tree_set_text(tree_at(pod, "metadata", NULL), "name", name);
}

static int add_label(json_t *pod, const char *key, const char *value) {
        json_t *labels = tree_make(pod, "metadata", "labels", NULL);

        return labels ? tree_set_text(labels, key, value) : -ENOMEM;
}

/* NAME-xxxxx, the generateName of the Job, DaemonSet and ReplicaSet controllers. */
static int finish_suffixed(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index) {
        char letters[6];

        pod_suffix(workload, index, letters);
        return set_name(pod, workload, NULL, letters);
}

static int finish_deployment(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index) {
        char template_hash[11], letters[6];
        int r;

        write_suffix(workload_hash(workload, 0), 10, template_hash);
        pod_suffix(workload, index, letters);
        r = add_label(pod, "pod-template-hash", template_hash);
        return r < 0 ? r : set_name(pod, workload, template_hash, letters);
}

static int finish_ordinal(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index) {
        char number[24];
        json_t *spec = tree_make(pod, "spec", NULL);
        const char *name;
        int r;

        index += (uint64_t) json_integer_value(tree_at(workload, "spec", "ordinals", "start", NULL));
        (void) snprintf(number, sizeof number, "%llu", (unsigned long long) index);
        r = set_name(pod, workload, NULL, number);
        if (r < 0 || !spec)
                return -ENOMEM;
        name = tree_text(pod, "metadata", "name", NULL);
        r = add_label(pod, "statefulset.kubernetes.io/pod-name", name);
        if (r == 0)
                r = add_label(pod, "apps.kubernetes.io/pod-index", number);
        return r < 0 ? r : tree_set_text(spec, "hostname", name);
}

static int finish_job(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index) {
        int r;

        r = add_label(pod, "job-name", tree_text(workload, "metadata", "name", NULL));
        if (r == 0)
                r = add_label(pod, "batch.kubernetes.io/job-name",
                              tree_text(workload, "metadata", "name", NULL));
        return r < 0 ? r : finish_suffixed(workload, nodes, pod, index);
}

/* The DaemonSet controller leaves the choice of node to the scheduler and pins it by a matchFields
 * term, in place of the template's terms, which it has judged itself. */
static int finish_daemon(const json_t *workload, const json_t *nodes, json_t *pod, uint64_t index) {
        const char *node = tree_text(json_array_get(nodes, index), "metadata", "name", NULL);
        json_t *affinity = tree_make(pod, "spec", "affinity", "nodeAffinity", NULL);

        if (!affinity || json_object_set_new(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
                                             json_pack("{s:[{s:[{s:s, s:s, s:[s]}]}]}", "nodeSelectorTerms",
                                                       "matchFields", "key", "metadata.name", "operator",
                                                       "In", "values", node ? node : "")) < 0)
                return -ENOMEM;
        return finish_suffixed(workload, nodes, pod, index);
}

static const Shape shapes[] = {
        {"apps/v1", "Deployment", true, count_replicas, finish_deployment},
        {"apps/v1", "ReplicaSet", true, count_replicas, finish_suffixed},
        {"v1", "ReplicationController", false, count_replicas, finish_suffixed},
        {"apps/v1", "StatefulSet", true, count_replicas, finish_ordinal},
        {"batch/v1", "Job", false, count_job, finish_job},
        {"apps/v1", "DaemonSet", true, count_nodes, finish_daemon, true},
        {"batch/v1", "CronJob", false, count_none, finish_suffixed},
};

static const Shape *shape_of(const char *kind) {
        for (size_t i = 0; i < ELEMENTSOF(shapes); i++)
                if (strcmp(shapes[i].kind, kind) == 0)
                        return &shapes[i];
        return NULL;
}

const char *workload_version(const char *kind) {
        const Shape *shape = shape_of(kind);

        return shape ? shape->api_version : NULL;
}

bool workload_is(const char *api_version, const char *kind) {
        const char *version = workload_version(kind);

        return version && strcmp(version, api_version) == 0;
}

static int set_uid(json_t *workload) {
        json_t *meta = json_object_get(workload, "metadata");
        uint64_t a = workload_hash(workload, 1), b = workload_hash(workload, 2);
        char uid[40];

        /* In the form of a random UUID (RFC 9562, version 4), which tools check. */
        (void) snprintf(uid, sizeof uid, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned) (a >> 32),
                        (unsigned) (a >> 16) & 0xffff, (unsigned) a & 0xfff, (unsigned) (b >> 48) & 0xfff,
                        (unsigned long long) b & 0xffffffffffff);
        return tree_default_text(meta, "uid", uid);
}

static json_t *pod_from_template(const json_t *workload, const json_t *template_) {
        const json_t *labels = tree_at(template_, "metadata", "labels", NULL);
        const json_t *annotations = tree_at(template_, "metadata", "annotations", NULL);
        const char *namespace_ = tree_text(workload, "metadata", "namespace", NULL);

        return json_pack("{s:s, s:s, s:{s:s, s:o*, s:o*, s:[{s:s, s:s, s:s, s:s, s:b, s:b}]}, s:o}",
                         "apiVersion", "v1", "kind", "Pod", "metadata", "namespace",
                         namespace_ ? namespace_ : "default", "labels",
                         labels ? json_deep_copy(labels) : NULL, "annotations",
                         annotations ? json_deep_copy(annotations) : NULL, "ownerReferences", "apiVersion",
                         tree_text(workload, "apiVersion", NULL), "kind", tree_text(workload, "kind", NULL),
                         "name", tree_text(workload, "metadata", "name", NULL), "uid",
                         tree_text(workload, "metadata", "uid", NULL), "controller", 1, "blockOwnerDeletion",
                         1, "spec", json_deep_copy(tree_at(template_, "spec", NULL)));
}

/* Checks that a template has a spec, and that the members which a controller writes into are
 * objects. */
static int check_template(const json_t *template_, Fault *fault) {
        const json_t *parts[] = {tree_at(template_, "metadata", NULL),
                                 tree_at(template_, "metadata", "labels", NULL),
                                 tree_at(template_, "spec", "affinity", NULL),
                                 tree_at(template_, "spec", "affinity", "nodeAffinity", NULL)};
        static const char *const names[] = {"metadata", "metadata.labels", "spec.affinity",
                                            "spec.affinity.nodeAffinity"};

        if (!json_is_object(tree_at(template_, "spec", NULL)))
                return fault_set(fault, WORKLOAD_E_INVALID,
                                 "spec.template.spec is missing, must be an object");
        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                if (parts[i] && !json_is_null(parts[i]) && !json_is_object(parts[i]))
                        return fault_set(fault, WORKLOAD_E_INVALID, "spec.template.%s must be an object",
                                         names[i]);
        return 0;
}

/* ValidateJobSpec and ValidatePodTemplateSpecForRC etc. of pkg/apis: a Job's pods end, the others'
 * are kept running. */
static int check_restart_policy(const json_t *workload, const json_t *template_, Fault *fault) {
        const char *policy = tree_text(template_, "spec", "restartPolicy", NULL);
        bool is_job = strcmp(tree_text(workload, "kind", NULL), "Job") == 0;

        if (is_job && !policy)
                return fault_set(fault, WORKLOAD_E_INVALID,
                                 "spec.template.spec.restartPolicy: Required value: valid values: "
                                 "\"OnFailure\", \"Never\"");
        if (!policy || strcmp(policy, "Always") == 0
                    ? !is_job
                    : is_job && (strcmp(policy, "OnFailure") == 0 || strcmp(policy, "Never") == 0))
                return 0;
        return fault_set(
                fault, WORKLOAD_E_INVALID,
                "spec.template.spec.restartPolicy: Unsupported value: \"%.40s\": supported values: %s",
                policy, is_job ? "\"OnFailure\", \"Never\"" : "\"Always\"");
}

static int no_match(Fault *fault) {
        return fault_set(fault, WORKLOAD_E_INVALID,
                         "spec.template.metadata.labels: Invalid value: `selector` does not match template "
                         "`labels`");
}

/* Checks the template's labels against matchLabels, and of matchExpressions only that the keys for
 * In and Exists are there. */
static int check_selector(const json_t *workload, const json_t *template_, Fault *fault) {
        const json_t *labels = tree_at(template_, "metadata", "labels", NULL), *one;
        const json_t *expressions = tree_at(workload, "spec", "selector", "matchExpressions", NULL);
        json_t *wanted = tree_at(workload, "spec", "selector", "matchLabels", NULL), *value;
        const char *key;
        size_t i;

        if (json_object_size(wanted) == 0 && json_array_size(expressions) == 0)
                return fault_set(fault, WORKLOAD_E_INVALID, "spec.selector: Required value");
        json_object_foreach(wanted, key, value) {
                if (!json_equal(value, json_object_get(labels, key)))
                        return no_match(fault);
        }
        json_array_foreach(expressions, i, one) {
                const char *operator_ = tree_text(one, "operator", NULL), *name = tree_text(one, "key", NULL);
                const json_t *has = name ? json_object_get(labels, name) : NULL;
                bool needs = operator_ && (strcmp(operator_, "In") == 0 || strcmp(operator_, "Exists") == 0);

                if (needs && !has)
                        return no_match(fault);
        }
        return 0;
}

int workload_expand(json_t *workload, const json_t *nodes, json_t *pods, Fault *fault) {
        const Shape *shape = shape_of(tree_text(workload, "kind", NULL));
        const json_t *template_ = tree_at(workload, "spec", "template", NULL);
        uint64_t n = 0;
        int r;

        r = shape->count(workload, nodes, &n, fault);
        if (r != 0 || n == 0)
                return r;
        if (!tree_text(workload, "metadata", "name", NULL))
                return fault_set(fault, WORKLOAD_E_INVALID, "metadata.name is missing, must be a string");
        r = check_template(template_, fault);
        if (r == 0)
                r = check_restart_policy(workload, template_, fault);
        if (r == 0 && shape->selects)
                r = check_selector(workload, template_, fault);
        if (r == 0)
                r = set_uid(workload);
        for (uint64_t i = 0; i < n && r == 0; i++) {
                json_t *pod = pod_from_template(workload, template_);

                if (pod && shape->by_node && !predicates_suits(pod, json_array_get(nodes, i))) {
                        json_decref(pod);
                        continue;
                }
                if (!pod || json_array_append_new(pods, pod) < 0)
                        return -ENOMEM;
                r = shape->dress(workload, nodes, pod, i);
        }
        return r;
}
