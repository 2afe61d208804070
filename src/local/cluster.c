/* SPDX-License-Identifier: Apache-2.0 */
#include "local/cluster.h"

#include <errno.h>
#include <signal.h>

#include "local/apiserver/kind.h"
#include "local/apiserver/store.h"
#include "local/cycle.h"
#include "local/gang_parts.h"
#include "local/judges.h"
#include "local/manifest_check.h"
#include "local/node_admit.h"
#include "local/pod_cards.h"
#include "local/runner.h"
#include "local/simulated_node.h"
#include "local/sync_call.h"
#include "local/workload.h"
#include "scheduler/scheduler.h"
#include "wire/annotation.h"

/* The most to wait until the scheduler has listed all objects. */
static const usec_t ready_timeout = 60 * USEC_PER_SEC;

struct Cluster {
        sd_event *event;
        Store *store;
        KubeConfig *store_config, *extender_config;
        KubeClient *api, *extender;
        Scheduler *scheduler;
        const char *page_listen; /* NULL: no page */
        json_t *nodes;           /* the Node objects when the pods were scheduled */
        json_t *refused;         /* an array of [NAMESPACE/NAME, reason] */
        size_t n_invalid;
};

/* --- creation and end ------------------------------------------------------------------------- */

int cluster_new(Cluster **ret, Fault *fault) {
        _cleanup_(cluster_freep) Cluster *c = calloc(1, sizeof *c);
        int r;

        if (!c)
                return -ENOMEM;
        c->refused = json_array();
        if (!c->refused)
                return -ENOMEM;
        r = sd_event_new(&c->event);
        if (r < 0)
                return fault_set(fault, r, "event loop: %s", strerror(-r));
        r = store_new(c->event, NULL, &c->store, fault);
        if (r < 0)
                return r;
        r = kube_config_for_server(store_url(c->store), &c->store_config);
        if (r == 0)
                r = kube_client_new(c->event, c->store_config, &c->api);
        if (r < 0)
                return fault_set(fault, r, "API client: %s", strerror(-r));
        *ret = TAKE_PTR(c);
        return 0;
}

Cluster *cluster_free(Cluster *c) {
        if (!c)
                return NULL;
        (void) kube_client_free(c->extender);
        (void) scheduler_free(c->scheduler);
        (void) kube_client_free(c->api);
        (void) kube_config_free(c->extender_config);
        (void) kube_config_free(c->store_config);
        (void) store_free(c->store);
        sd_event_unref(c->event);
        json_decref(c->nodes);
        json_decref(c->refused);
        free(c);
        return NULL;
}

/* Starts the scheduler when the store is filled, so that its first list has everything. */
static int start_scheduler(Cluster *c, Fault *fault) {
        SchedulerOptions options = {
                .config = c->store_config, .listen = "127.0.0.1:0", .page_listen = c->page_listen};
        uint64_t deadline = clock_monotonic_usec() + ready_timeout;
        char url[64];
        int r;

        r = scheduler_new(c->event, &options, &c->scheduler, fault);
        if (r < 0)
                return r;
        while (!scheduler_is_ready(c->scheduler)) {
                if (clock_monotonic_usec() > deadline)
                        return fault_set(fault, -ETIMEDOUT, "the scheduler's view did not come in sync");
                r = sd_event_run(c->event, USEC_PER_SEC);
                if (r < 0)
                        return r;
        }
        (void) snprintf(url, sizeof url, "http://127.0.0.1:%u", scheduler_port(c->scheduler));
        r = kube_config_for_server(url, &c->extender_config);
        return r < 0 ? r : kube_client_new(c->event, c->extender_config, &c->extender);
}

/* --- objects ---------------------------------------------------------------------------------- */

static int append_tree(void *userdata, Str object) {
        json_t *tree = json_loadb(object.data, object.len, 0, NULL);

        return tree && json_array_append_new(userdata, tree) == 0 ? 0 : -ENOMEM;
}

static int read_objects(Cluster *c, const char *resource, json_t **ret) {
        _cleanup_json_ json_t *array = json_array();
        int r = array ? store_each(c->store, resource, append_tree, array) : -ENOMEM;

        if (r == 0)
                *ret = TAKE_PTR(array);
        return r;
}

/* POST ignores a pod's status, as in a cluster. A dump of a cluster has pods that run or have
 * ended, and these count differently. So their status is restored through the
 * status subresource. */
static int restore_status(Cluster *c, const json_t *pod, Fault *fault) {
        _cleanup_json_ json_t *status = NULL;
        const char *namespace_ = tree_text(pod, "metadata", "namespace", NULL);
        char path[640];

        if (!tree_text(pod, "status", "phase", NULL) || !tree_text(pod, "metadata", "name", NULL))
                return 0;
        status = json_pack("{s:O}", "status", json_object_get(pod, "status"));
        if (!status)
                return -ENOMEM;
        (void) snprintf(path, sizeof path, "/api/v1/namespaces/%s/pods/%s/status",
                        namespace_ ? namespace_ : "default", tree_text(pod, "metadata", "name", NULL));
        return sync_call_patch(c->api, path, status, fault);
}

/* Returns 0, STORE_E_*, or negative errno. */
static int create_object(Cluster *c, const json_t *object, Fault *fault) {
        _cleanup_free_ char *text = json_dumps(object, JSON_COMPACT);

        return text ? store_apply(c->store, str_from(text), fault) : -ENOMEM;
}

static const char *kind_of(const Manifest *m) {
        return tree_text(m->object, "kind", NULL);
}

static const char *api_version_of(const Manifest *m) {
        return tree_text(m->object, "apiVersion", NULL);
}

/* The kind that the store serves. Another group may have a kind of the same name. */
static const StoreKind *served_kind(const Manifest *m) {
        return store_kind_by_kind(str_from(api_version_of(m)), str_from(kind_of(m)));
}

static bool is_served(const Manifest *m, const char *kind) {
        return served_kind(m) && strcmp(kind_of(m), kind) == 0;
}

static bool is_pod(const Manifest *m) {
        return is_served(m, "Pod");
}

static bool is_workload(const Manifest *m) {
        return workload_is(api_version_of(m), kind_of(m));
}

/* An object that the API server refuses gets a line, and the others are applied, as by kubectl.
 * Returns 0 or negative errno. */
static int note_invalid(Cluster *c, const Manifest *m, int r, Buf *notes, Fault *fault) {
        if (r <= 0)
                return r;
        (void) manifest_fault(m, r, fault);
        buf_appendf(notes, "aliquot local: %s\n", fault->text);
        *fault = FAULT_NULL;
        c->n_invalid++;
        return buf_result(notes);
}

static void note_kind(const Manifest *m, const char *why, Buf *notes) {
        buf_appendf(notes, "aliquot local: %s: document %u (line %u): kind %s is passed over, %s\n", m->file,
                    m->document, m->line, kind_of(m), why);
}

/* The version in which this cluster has a kind of this name; NULL: none. */
static const char *served_version(const char *kind) {
        const char *version = workload_version(kind);

        for (size_t i = 0; i < STORE_N_KINDS && !version; i++)
                if (str_eq(store_kinds[i].kind, str_from(kind)))
                        version = store_kinds[i].api_version.data;
        return version;
}

/* Notes why the kind is skipped, and the kind that was probably meant. None is guessed for another
 * first letter or more than two changes: Role and JobSet are kinds, too. */
static void note_unknown_kind(const Manifest *m, Buf *notes) {
        static const char *const kinds[] = {"Pod",         "Node",       "Job",       "Deployment",
                                            "StatefulSet", "ReplicaSet", "DaemonSet", "List"};
        const char *kind = kind_of(m), *version = served_version(kind);
        char why[160] = "this cluster does not serve it";

        if (version)
                (void) snprintf(why, sizeof why, "this cluster serves it as %s and not as %.80s", version,
                                api_version_of(m));
        for (size_t i = 0; i < ELEMENTSOF(kinds) && !version; i++)
                if ((kind[0] | 0x20) == (kinds[i][0] | 0x20) &&
                    str_misspelling(str_from(kind), str_from(kinds[i])) <= 2)
                        (void) snprintf(why, sizeof why, "this cluster does not serve it; did you mean %s?",
                                        kinds[i]);
        note_kind(m, why, notes);
}

typedef struct Judged {
        const Manifest *manifest;
        Buf *notes;
} Judged;

static int note_judgement(void *userdata, const char *text) {
        const Judged *j = userdata;
        const Manifest *m = j->manifest;
        const char *name = tree_text(m->object, "metadata", "name", NULL);

        buf_appendf(j->notes, "aliquot local: %s: document %u (line %u): %s %s: %s\n", m->file, m->document,
                    m->line, kind_of(m), name ? name : "", text);
        return buf_result(j->notes);
}

/* Notes what the agent, the webhook and the scheduler of a cluster would say of the object. */
static int judge_manifest(const Manifest *m, Buf *notes) {
        Judged judged = {m, notes};

        return served_kind(m) || is_workload(m) ? judges_ask(m->object, note_judgement, &judged) : 0;
}

/* Objects of a dump have been judged where they come from. */
static bool is_new(const Manifest *m) {
        return !tree_text(m->object, "metadata", "uid", NULL);
}

static int check_manifest(const Manifest *m, Fault *fault) {
        const char *name = tree_text(m->object, "metadata", "name", NULL);
        int r = served_kind(m) || is_workload(m) ? manifest_check(m->object, fault) : 0;

        return r > 0 ? fault_wrap(fault, r, "%s %s", kind_of(m), name ? name : "") : r;
}

/* Applies everything but pods. A kind that is not served is no error: manifests of a real cluster
 * have Ingresses, too. */
static int apply_other(Cluster *c, const Manifest *m, Buf *notes, Fault *fault) {
        int r = check_manifest(m, fault);

        if (r == 0 && !is_workload(m) && is_new(m))
                r = judge_manifest(m, notes);
        if (r == 0 && is_served(m, "Node"))
                r = simulated_node_complete(m->object, fault);
        if (r == 0)
                r = create_object(c, m->object, fault);
        if (r == STORE_E_NOT_FOUND) {
                if (is_workload(m) && strcmp(kind_of(m), "CronJob") == 0)
                        note_kind(
                                m,
                                "it has no pods before its time; to try them, make a Job of its jobTemplate",
                                notes);
                else if (!is_workload(m))
                        note_unknown_kind(m, notes);
                return 0;
        }
        return r;
}

/* Keeps the UID that the store gave the workload, because its pods point to it. */
static void copy_uid(const json_t *stored, json_t *workload) {
        char name[TREE_NAME_MAX], other[TREE_NAME_MAX];
        const json_t *one;
        size_t i;

        tree_pod_name(workload, name);
        json_array_foreach(stored, i, one) {
                tree_pod_name(one, other);
                if (strcmp(tree_text(one, "kind", NULL), tree_text(workload, "kind", NULL)) == 0 &&
                    strcmp(name, other) == 0)
                        (void) json_object_set(json_object_get(workload, "metadata"), "uid",
                                               tree_at(one, "metadata", "uid", NULL));
        }
}

static int apply_workload(Cluster *c, const Manifest *m, const json_t *stored, const json_t *nodes,
                          Fault *fault) {
        _cleanup_json_ json_t *pods = json_array();
        const json_t *pod;
        size_t i;
        int r;

        if (!pods)
                return -ENOMEM;
        copy_uid(stored, m->object);
        r = workload_expand(m->object, nodes, pods, fault);
        if (r > 0)
                (void) fault_wrap(fault, r, "%s %s", kind_of(m),
                                  tree_text(m->object, "metadata", "name", NULL));
        json_array_foreach(pods, i, pod) {
                r = r == 0 ? create_object(c, pod, fault) : r;
        }
        return r;
}

static int apply_pod(Cluster *c, const Manifest *m, Fault *fault) {
        int r;

        r = check_manifest(m, fault);
        if (r == 0)
                r = create_object(c, m->object, fault);
        return r == 0 ? restore_status(c, m->object, fault) : r;
}

static int read_workloads(Cluster *c, json_t **ret) {
        static const char *const resources[] = {"deployments", "statefulsets", "replicasets", "daemonsets",
                                                "jobs"};
        _cleanup_json_ json_t *all = json_array();

        if (!all)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
                int r = store_each(c->store, resources[i], append_tree, all);

                if (r < 0 && r != -ENOENT)
                        return r;
        }
        *ret = TAKE_PTR(all);
        return 0;
}

/* Everything that others refer to goes before pods. *ret_good tells which objects were taken. */
static int apply_others(Cluster *c, const Manifests *manifests, bool *ret_good, Buf *notes, Fault *fault) {
        int r = 0;

        for (size_t i = 0; i < manifests->n && r == 0; i++) {
                const Manifest *m = &manifests->items[i];

                r = is_pod(m) ? 0 : apply_other(c, m, notes, fault);
                ret_good[i] = r == 0;
                r = note_invalid(c, m, r, notes, fault);
        }
        return r;
}

/* Notes once which members of pods only a cluster judges. good: which objects were taken, and
 * come from no dump. */
static int note_unread(const Manifests *manifests, const bool *good, Buf *notes) {
        _cleanup_buf_ Buf names = BUF_NULL;

        for (size_t i = 0; i < manifests->n; i++)
                if (good[i] && (is_pod(&manifests->items[i]) || is_workload(&manifests->items[i])))
                        judges_add_unread(manifests->items[i].object, &names);
        if (names.len > 0)
                buf_appendf(notes,
                            "aliquot local: not judged here: " STR_FMT
                            "; a cluster judges all: kubectl apply --dry-run=server -f FILE\n",
                            STR_ARG(buf_str(&names)));
        return names.broken ? buf_result(&names) : buf_result(notes);
}

/* As in a cluster, where validating webhooks see what the API server has found valid. */
static int apply_and_judge(Cluster *c, const Manifest *m, const json_t *stored, const json_t *nodes,
                           Buf *notes, Fault *fault) {
        bool judged = is_new(m); /* a workload gets the UID of the stored one */
        int r = is_pod(m) ? apply_pod(c, m, fault) : apply_workload(c, m, stored, nodes, fault);

        return r == 0 && judged ? judge_manifest(m, notes) : r;
}

int cluster_apply(Cluster *c, const Manifests *manifests, Buf *notes, Fault *fault) {
        _cleanup_free_ bool *good = calloc(manifests->n + 1, sizeof *good);
        _cleanup_json_ json_t *workloads = NULL, *nodes = NULL;
        int r;

        if (manifests->n == 0)
                buf_append_str(notes, STR("aliquot local: the files have no manifest\n"));
        r = good ? apply_others(c, manifests, good, notes, fault) : -ENOMEM;
        if (r == 0)
                r = read_workloads(c, &workloads);
        if (r == 0)
                r = read_objects(c, "nodes", &nodes);
        for (size_t i = 0; i < manifests->n && r == 0; i++) {
                const Manifest *m = &manifests->items[i];
                bool fresh = is_new(m);

                if (is_pod(m) || (good[i] && is_workload(m)))
                        r = apply_and_judge(c, m, workloads, nodes, notes, fault);
                good[i] = r == 0 && fresh && (good[i] || is_pod(m));
                r = note_invalid(c, m, r, notes, fault);
        }
        return r == 0 ? note_unread(manifests, good, notes) : r;
}

size_t cluster_n_invalid(const Cluster *c) {
        return c->n_invalid;
}

/* --- the scheduling queue --------------------------------------------------------------------- */

typedef struct Queued {
        const json_t *pod;
        int64_t priority;
        uint64_t created; /* resourceVersion of its creation, from the one counter of all objects */
} Queued;

static int by_priority(const void *a, const void *b) {
        const Queued *x = a, *y = b;

        if (x->priority != y->priority)
                return x->priority < y->priority ? 1 : -1;
        return (x->created > y->created) - (x->created < y->created);
}

static bool is_over(const json_t *pod) {
        const char *phase = tree_text(pod, "status", "phase", NULL);

        return phase && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0);
}

static Queued *make_queue(const json_t *pods, size_t *ret_n) {
        Queued *queue = calloc(json_array_size(pods) + 1, sizeof *queue);
        const json_t *pod;
        size_t i, n = 0;

        if (!queue)
                return NULL;
        json_array_foreach(pods, i, pod) {
                Queued q = {.pod = pod,
                            .priority = json_integer_value(tree_at(pod, "spec", "priority", NULL))};

                (void) str_to_u64(str_from(tree_text(pod, "metadata", "resourceVersion", NULL)), &q.created);
                if (!is_over(pod))
                        queue[n++] = q;
        }
        qsort(queue, n, sizeof *queue, by_priority);
        *ret_n = n;
        return queue;
}

static int refuse_pod(Cluster *c, const json_t *pod, const Buf *reason) {
        char name[TREE_NAME_MAX];

        tree_pod_name(pod, name);
        return json_array_append_new(
                       c->refused,
                       json_pack("[s, s%]", name, reason->len > 0 ? reason->data : "", reason->len)) < 0
                       ? -ENOMEM
                       : 0;
}

static bool node_exists(const Cluster *c, const char *name) {
        const json_t *node;
        size_t i;

        json_array_foreach(c->nodes, i, node) {
                if (strcmp(tree_text(node, "metadata", "name", NULL), name) == 0)
                        return true;
        }
        return false;
}

static int admit_pod(Cluster *c, const json_t *pod, bool scheduled, Fault *fault) {
        const char *node = tree_text(pod, "spec", "nodeName", NULL);
        _cleanup_buf_ Buf reason = BUF_NULL;
        int r = NODE_ADMIT_E_REFUSED;

        if (node && !node_exists(c, node))
                buf_appendf(&reason, "spec.nodeName \"%s\": no such node here", node);
        else
                r = node_admit(c->api, tree_text(pod, "metadata", "namespace", NULL),
                               tree_text(pod, "metadata", "name", NULL), scheduled, &reason, fault);
        return r == NODE_ADMIT_E_REFUSED ? refuse_pod(c, pod, &reason) : r;
}

static int schedule_pod(Cluster *c, Cycle *cycle, const json_t *pod, Fault *fault) {
        _cleanup_buf_ Buf reason = BUF_NULL;
        int r;

        r = cycle_schedule(cycle, pod, &reason, fault);
        if (r == CYCLE_E_REFUSED)
                return refuse_pod(c, pod, &reason);
        return r < 0 ? r : admit_pod(c, pod, true, fault);
}

static bool has_node(const json_t *pod) {
        const char *node = tree_text(pod, "spec", "nodeName", NULL);

        return node && *node;
}

static bool is_pending(const json_t *pod) {
        const char *phase = tree_text(pod, "status", "phase", NULL);

        return !phase || strcmp(phase, "Pending") == 0;
}

/* Pods that came with a node are handled first: they hold their resources, whatever the scheduler
 * decides. Pods that already run, in the dump of a cluster, are only counted. */
static int settle_bound(Cluster *c, Cycle *cycle, const Queued *queue, size_t n, Fault *fault) {
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                if (!has_node(queue[i].pod))
                        continue;
                r = cycle_charge(cycle, queue[i].pod);
                if (r == 0 && is_pending(queue[i].pod))
                        r = admit_pod(c, queue[i].pod, false, fault);
        }
        return r;
}

static int refuse_gang(void *userdata, const char *namespace_, const char *gang, const char *text) {
        Cluster *c = userdata;

        return json_array_append_new(c->refused, json_pack("[s++, s]", namespace_, "/gang ", gang, text)) < 0
                       ? -ENOMEM
                       : 0;
}

static int tell_gangs(Cluster *c, const json_t *before) {
        _cleanup_json_ json_t *pods = NULL;
        int r = read_objects(c, "pods", &pods);

        return r < 0 ? r : gang_parts_find(pods, before, refuse_gang, c);
}

int cluster_schedule(Cluster *c, Fault *fault) {
        _cleanup_json_ json_t *pods = NULL, *policies = NULL;
        _cleanup_free_ Queued *queue = NULL;
        _cleanup_(cycle_freep) Cycle *cycle = NULL;
        size_t n = 0;
        int r;

        r = read_objects(c, "nodes", &c->nodes);
        if (r == 0)
                r = read_objects(c, "pods", &pods);
        if (r == 0)
                r = read_objects(c, "resourcepolicies", &policies);
        if (r < 0)
                return r;
        queue = make_queue(pods, &n);
        if (!queue)
                return -ENOMEM;
        r = start_scheduler(c, fault);
        if (r == 0)
                r = cycle_new(c->api, c->extender, c->nodes, json_array_size(policies) > 0, &cycle);
        if (r == 0)
                r = settle_bound(c, cycle, queue, n, fault);
        for (size_t i = 0; i < n && r == 0; i++)
                if (!has_node(queue[i].pod))
                        r = schedule_pod(c, cycle, queue[i].pod, fault);
        return r < 0 ? r : tell_gangs(c, pods);
}

/* --- the page --------------------------------------------------------------------------------- */

void cluster_offer_page(Cluster *c, const char *listen) {
        c->page_listen = listen;
}

uint16_t cluster_page_port(const Cluster *c) {
        return c->scheduler ? scheduler_page_port(c->scheduler) : 0;
}

uint16_t cluster_metrics_port(const Cluster *c) {
        return c->scheduler ? scheduler_port(c->scheduler) : 0;
}

int cluster_serve(Cluster *c) {
        static const int ends[] = {SIGINT, SIGTERM};
        sigset_t set;

        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigemptyset(&set) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                if (sigaddset(&set, ends[i]) < 0)
                        return -errno;
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                int r = sd_event_add_signal(c->event, NULL, ends[i], NULL, NULL); /* ends the loop */

                if (r < 0)
                        return r;
        }
        return sd_event_loop(c->event);
}

/* --- output ----------------------------------------------------------------------------------- */

Store *cluster_store(Cluster *c) {
        return c->store;
}

size_t cluster_n_refused(const Cluster *c) {
        return json_array_size(c->refused);
}

void cluster_print_refused(const Cluster *c, Buf *out) {
        const json_t *one;
        size_t i;

        json_array_foreach(c->refused, i, one) {
                buf_appendf(out, "%s: %s\n", json_string_value(json_array_get(one, 0)),
                            json_string_value(json_array_get(one, 1)));
        }
}

typedef struct Feeding {
        Inspect *inspect;
        Str kind;
        Buf *notes;
} Feeding;

static int feed_object(void *userdata, Str object) {
        Feeding *f = userdata;
        Fault fault = FAULT_NULL;
        int r;

        r = inspect_add(f->inspect, f->kind, object, &fault);
        if (*fault.text)
                buf_appendf(f->notes, "%s\n", fault.text);
        return r < 0 ? r : 0;
}

int cluster_print_summary(Cluster *c, const InspectScreen *screen, Buf *out, Buf *notes) {
        _cleanup_(inspect_freep) Inspect *inspect = NULL;
        Feeding feeding = {.kind = STR("Node"), .notes = notes};
        int r;

        r = inspect_new(&inspect);
        if (r < 0)
                return r;
        feeding.inspect = inspect;
        r = store_each(c->store, "nodes", feed_object, &feeding);
        feeding.kind = STR("Pod");
        if (r == 0)
                r = store_each(c->store, "pods", feed_object, &feeding);
        feeding.kind = STR("ConfigMap");
        if (r == 0)
                r = store_each(c->store, "configmaps", feed_object, &feeding);
        if (r == 0 && screen)
                return inspect_print_cards(inspect, (Str){NULL, 0}, screen, out, NULL);
        return r < 0 ? r : inspect_print_summary(inspect, (Str){NULL, 0}, out, NULL);
}

int cluster_print_placements(Cluster *c, const InspectScreen *screen, Buf *out) {
        _cleanup_json_ json_t *pods = NULL;
        int r;

        r = read_objects(c, "pods", &pods);
        return r < 0 ? r : pod_cards_print(pods, c->nodes, screen, out);
}

int cluster_print_objects(Cluster *c, const char *resources, Buf *out, Buf *notes, Fault *fault) {
        _cleanup_json_ json_t *items = json_array(), *list = NULL;
        _cleanup_free_ char *text = NULL;
        Str rest = str_from(resources);

        if (!items)
                return -ENOMEM;
        do {
                _cleanup_free_ char *resource = str_dup(str_trim(str_split(&rest, ',')));
                size_t before = json_array_size(items);
                int r = resource ? store_each(c->store, resource, append_tree, items) : -ENOMEM;

                if (r == -ENOENT)
                        return fault_set(fault, CLUSTER_E_INVALID, "--get %s: no such resource here",
                                         resource);
                if (r < 0)
                        return r;
                if (json_array_size(items) == before)
                        buf_appendf(notes, "aliquot local: --get %s: there are none; no manifest has one\n",
                                    resource);
        } while (rest.data);
        list = json_pack("{s:s, s:O, s:s, s:{s:s}}", "apiVersion", "v1", "items", items, "kind", "List",
                         "metadata", "resourceVersion", "");
        text = list ? json_dumps(list, JSON_INDENT(4)) : NULL;
        buf_append_str(out, str_from(text));
        buf_append_char(out, '\n');
        return text ? buf_result(out) : -ENOMEM;
}

int cluster_print_logs(Cluster *c, const RunnerOptions *options, Buf *out, Buf *notes) {
        _cleanup_json_ json_t *pods = NULL, *placed = json_array();
        const json_t *pod;
        size_t i;
        int r;

        r = placed ? read_objects(c, "pods", &pods) : -ENOMEM;
        json_array_foreach(pods, i, pod) {
                const char *phase = tree_text(pod, "status", "phase", NULL);

                if (r == 0 && has_node(pod) && phase && strcmp(phase, "Running") == 0)
                        r = json_array_append(placed, (json_t *) pod) < 0 ? -ENOMEM : 0;
        }
        return r < 0 ? r : runner_run(placed, c->nodes, options, out, notes);
}
