/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view.h"

#include <errno.h>

#include "base/log.h"
#include "scheduler/webhook/verdict.h"
#include "share/fault_join.h"
#include "share/pod_grant.h"
#include "wire/annotation.h"
#include "wire/node.h"
#include "wire/pod.h"
#include "wire/topology_keys.h"

static const char *const kind_names[] = {[VIEW_NODES] = "nodes",
                                         [VIEW_PODS] = "pods",
                                         [VIEW_CONFIGMAPS] = "configmaps",
                                         [VIEW_BUDGETS] = "poddisruptionbudgets",
                                         [VIEW_POLICIES] = "resourcepolicies"};

enum { NAME_MAX_LEN = 253 }; /* the longest name in Kubernetes (RFC 1123); UIDs are shorter */

int view_new(View **ret) {
        _cleanup_(view_freep) View *v = calloc(1, sizeof *v);
        int r;

        if (!v)
                return -ENOMEM;
        r = ledger_new(&v->ledger);
        if (r < 0)
                return r;
        r = directory_new(&v->directory);
        if (r == 0)
                r = policy_table_new(v->directory, &v->policies);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(v);
        return 0;
}

static void drop_cpu(ViewPod *pod) {
        if (pod->cpu_node)
                ledger_node_subtract_cpu(TAKE_PTR(pod->cpu_node), pod->cpu);
}

void view_pod_take_plan(View *v, ViewPod *pod) {
        v->n_from_plan += !pod->from_plan;
        pod->from_plan = true;
}

void view_pod_settle(View *v, ViewPod *pod) {
        if (!pod->from_plan)
                return;
        pod->from_plan = false;
        if (--v->n_from_plan == 0 && v->on_settled)
                v->on_settled(v->settled_userdata);
}

static void pod_free(View *v, ViewPod *pod) {
        view_pod_settle(v, pod);
        HASH_DELETE(hh, v->pods, pod);
        drop_cpu(pod);
        grant_free(pod->grant);
        free(pod->request);
        free(pod);
}

View *view_free(View *v) {
        ViewPod *pod, *next;

        if (!v)
                return NULL;
        HASH_ITER(hh, v->pods, pod, next)
        pod_free(v, pod);
        hold_end(&v->hold);
        profiles_done(&v->profiles);
        budgets_done(&v->budgets);
        if (v->ledger)
                fences_done(&v->fences, v->ledger);
        policy_table_free(v->policies);
        directory_free(v->directory);
        ledger_free(v->ledger);
        arena_done(&v->arena);
        free(v);
        return NULL;
}

bool view_in_sync(const View *v) {
        return v->kinds[VIEW_NODES].synced && v->kinds[VIEW_PODS].synced && !v->policies_awaited;
}

/* After a first complete list, a difference is one that the watch has missed. */
static void count_difference(View *v, ViewKind kind, ReflectorEvent event) {
        if (event == REFLECTOR_LISTED && v->kinds[kind].synced)
                v->kinds[kind].differences++;
}

/* ---- pods ---- */

ViewPod *view_pod_find(const View *v, Str uid) {
        ViewPod *pod;

        HASH_FIND(hh, v->pods, uid.data, uid.len, pod);
        return pod;
}

ViewPod *view_pod_ensure(View *v, Str uid) {
        ViewPod *pod = view_pod_find(v, uid);

        if (pod)
                return pod;
        if (uid.len > UINT16_MAX)
                return NULL;
        pod = calloc(1, sizeof *pod + uid.len);
        if (!pod)
                return NULL;
        memcpy(pod->uid, uid.data, uid.len);
        pod->uid_len = (uint16_t) uid.len;
        pod->priority = INT64_MIN;
        pod->generation = v->kinds[VIEW_PODS].generation;
        HASH_ADD_KEYPTR(hh, v->pods, pod->uid, pod->uid_len, pod);
        if (!hash_added(pod, hh)) {
                free(pod);
                return NULL;
        }
        return pod;
}

int64_t view_pod_priority(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->request ? pod->priority : INT64_MIN;
}

void view_pod_drop_if_unused(View *v, ViewPod *pod) {
        if (!pod->grant && !pod->cpu_node && !pod->request && !pod->asks_nothing && !pod->bind &&
            pod->reported == 0)
                pod_free(v, pod);
}

int view_pod_set_request(ViewPod *pod, const Request *request) {
        void *copy = malloc(request_size(request));

        if (!copy)
                return -ENOMEM;
        free(pod->request);
        pod->request = request_copy(request, copy);
        pod->asks_nothing = false;
        return 0;
}

static void drop_request(ViewPod *pod) {
        free(pod->request);
        pod->request = NULL;
        pod->asks_nothing = false;
}

static void drop_grant(View *v, ViewPod *pod) {
        pod->grant = grant_free(pod->grant);
        pod->reserved = false;
        view_pod_settle(v, pod);
}

static bool has_slice(const Grant *g, const Slice *wanted) {
        const Slice *s;
        size_t n;

        s = grant_slices(g, &n);
        for (size_t i = 0; i < n; i++)
                if (s[i].card == wanted->card && s[i].container == wanted->container &&
                    s[i].kind == wanted->kind)
                        return s[i].mem == wanted->mem && s[i].core == wanted->core;
        return false;
}

enum { COMPARED_SLICES_MAX = 32 };

/* Most events about a pod concern its status, and do not change the ledger. Pods with very many
 * slices count as changed, which costs no more than a new grant. */
static bool grant_says(const Grant *g, const GrantSpec *spec) {
        size_t n;

        (void) grant_slices(g, &n);
        if (n != spec->n_slices || n > COMPARED_SLICES_MAX || grant_pending(g) != spec->pending_mem ||
            grant_pending_core(g) != spec->pending_core || grant_cpu(g) != spec->cpu ||
            !str_eq(ledger_node_name(grant_node(g)), spec->node))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!has_slice(g, &spec->slices[i]))
                        return false;
        return true;
}

/* Makes the grant that the pod's own object says. The new grant is made before the old one is
 * freed, so that a lack of memory keeps the old one. */
static int pod_hold(View *v, const GrantSpec *spec, ReflectorEvent event) {
        ViewPod *pod = view_pod_ensure(v, spec->uid);
        Grant *grant;
        int r;

        if (!pod)
                return -ENOMEM;
        pod->generation = v->kinds[VIEW_PODS].generation;
        if (pod->bound_at > 0)
                histogram_observe(&v->stats.lag, clock_monotonic_usec() - pod->bound_at);
        pod->bound_at = 0;
        drop_request(pod);
        drop_cpu(pod);
        if (pod->grant && grant_says(pod->grant, spec)) {
                pod->reserved = false;
                view_pod_settle(v, pod);
                return 0;
        }
        count_difference(v, VIEW_PODS, event);
        r = grant_new(v->ledger, spec, &grant);
        if (r < 0) {
                view_pod_drop_if_unused(v, pod);
                return r;
        }
        drop_grant(v, pod);
        pod->grant = grant;
        return 0;
}

/* The pod holds nothing, or is gone. */
static void pod_release(View *v, Str uid, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, uid);

        if (!pod)
                return;
        pod->generation = v->kinds[VIEW_PODS].generation;
        count_difference(v, VIEW_PODS, event);
        drop_request(pod);
        drop_grant(v, pod);
        drop_cpu(pod);
        view_pod_drop_if_unused(v, pod);
}

/* A bound pod without a share. Most events about it concern its status, and change nothing. */
static int pod_count_cpu(View *v, const Pod *object, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, object->meta.uid);
        uint32_t cpu = request_cpu_of_pod(object);

        if (pod && pod->cpu_node && pod->cpu == cpu &&
            str_eq(ledger_node_name(pod->cpu_node), object->node_name)) {
                pod->generation = v->kinds[VIEW_PODS].generation;
                return 0;
        }
        pod_release(v, object->meta.uid, event);
        if (cpu == 0)
                return 0;
        pod = view_pod_ensure(v, object->meta.uid);
        if (!pod)
                return -ENOMEM;
        pod->cpu = cpu;
        pod->cpu_node = ledger_node_add_cpu(v->ledger, object->node_name, cpu);
        if (pod->cpu_node)
                return 0;
        view_pod_drop_if_unused(v, pod);
        return -ENOMEM;
}

/* Whether the pod waits for a Binding from here. request: the result of request_from_pod(). Of pods
 * that ask for nothing only those of our own profile do. */
static bool is_bindable(const Pod *object, int request) {
        if (object->meta.terminating)
                return false;
        return request == 0 ||
               (request == REQUEST_E_NONE && str_eq(object->scheduler_name, STR(VERDICT_SCHEDULER)));
}

/* What a key of ACK asks for, of which nothing is served; NULL: the pod has no such key. */
static const char *unserved_key(const View *v, const Pod *pod) {
        if (!str_is_empty(pod->topology_job) && !request_is_whole(pod))
                return "label " LABEL_TOPOLOGY_JOB " has no effect: the pod asks for no " RESOURCE_GPU;
        if (!str_is_empty(pod->topology_job) && !v->has_gangs)
                return "label " LABEL_TOPOLOGY_JOB " has no effect: the pods of a job are placed one by one";
        if (!str_is_empty(pod->annotations.cpuset))
                return "annotation " ANNOTATION_CPUSET " has no effect: CPUs are not placed by NUMA node";
        if (!str_is_empty(pod->annotations.numa_spec))
                return "annotation " ANNOTATION_NUMA_SPEC " has no effect: CPUs are not placed by NUMA node";
        return NULL;
}

static void report_unserved(View *v, ViewPod *pod, const Pod *object) {
        const char *text = pod->told_unserved ? NULL : unserved_key(v, object);

        if (!text)
                return;
        pod->told_unserved = true;
        if (v->on_unserved_key)
                v->on_unserved_key(v->userdata, object, text);
}

/* An object without spec.nodeName does not take a grant away. The API server never unsets nodeName,
 * so that this is an old state of a pod that was bound since. Only a list that began after the bind
 * knows better. */
static int pod_wait(View *v, const Pod *object, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, object->meta.uid);
        uint32_t generation = v->kinds[VIEW_PODS].generation;
        Request request;
        Refusal refusal;
        int r;

        if (pod && pod->grant) {
                bool known_better = event == REFLECTOR_LISTED && !pod->bind && pod->generation != generation;

                pod->generation = generation;
                if (!known_better)
                        return 0;
                count_difference(v, VIEW_PODS, event);
                drop_grant(v, pod);
        }
        if (pod)
                pod->generation = generation;
        r = request_from_pod(object, &v->arena, &request, &refusal);
        if (r < 0)
                return r;
        if (!is_bindable(object, r)) {
                if (pod) {
                        drop_request(pod);
                        view_pod_drop_if_unused(v, pod);
                }
                return 0;
        }
        if (!pod)
                pod = view_pod_ensure(v, object->meta.uid);
        if (!pod)
                return -ENOMEM;
        pod->carried = pod_system_keys(object);
        if (r == 0)
                report_unserved(v, pod, object);
        if (r == 0)
                return view_pod_set_request(pod, &request);
        pod->asks_nothing = true;
        return 0;
}

/* Never 0, which stands for no report. */
static uint64_t hash_of(const char *text) {
        return str_hash64(str_from(text), 0) | 1;
}

/* Reports on the annotations of a pod. The pod is remembered for that, even when it holds
 * nothing. */
static int report_odd_pod(View *v, const Pod *object, const char *text) {
        ViewPod *pod =
                text[0] != '\0' ? view_pod_ensure(v, object->meta.uid) : view_pod_find(v, object->meta.uid);
        uint64_t reported = text[0] != '\0' ? hash_of(text) : 0;

        if (!pod)
                return reported == 0 ? 0 : -ENOMEM;
        if (pod->reported == reported)
                return 0;
        pod->reported = reported;
        if (reported == 0)
                return 0;
        log_warning("pod=" STR_FMT "/" STR_FMT " %s", STR_ARG(object->meta.namespace_),
                    STR_ARG(object->meta.name), text);
        if (v->on_odd_pod)
                v->on_odd_pod(v->userdata, object, text);
        return 0;
}

int view_pod_set(View *v, const Pod *pod, ReflectorEvent event) {
        Fault fault = FAULT_NULL, differs = FAULT_NULL;
        int r, compared, reported;
        GrantSpec spec;

        if (event == REFLECTOR_DELETED) {
                (void) report_odd_pod(v, pod, ""); /* removes the grant, which needs no memory */
                pod_release(v, pod->meta.uid, event);
                return 0;
        }
        r = pod_grant_spec(pod, &v->arena, &spec, &fault);
        compared = r < 0 ? r : pod_grant_compare(pod, &v->arena, &differs);
        if (compared < 0)
                return compared;
        fault_join(&fault, &differs);
        reported = report_odd_pod(v, pod, fault.text);
        if (reported < 0)
                return reported;
        if (r == 0)
                return pod_hold(v, &spec, event);
        if (str_is_empty(pod->node_name) && !pod_is_terminal(pod))
                return pod_wait(v, pod, event);
        if (ledger_order(v->ledger) == NODE_ORDER_FRAGMENTATION && !pod_is_terminal(pod))
                return pod_count_cpu(v, pod, event);
        pod_release(v, pod->meta.uid, event);
        return 0;
}

/* The API server creates no other names, but its answer is not trusted. */
static int check_identity(const ObjectMeta *meta, Fault *fault) {
        if (meta->namespace_.len > NAME_MAX_LEN || meta->name.len > NAME_MAX_LEN)
                return fault_set(fault, OBJECT_E_MALFORMED,
                                 "a pod's name and namespace have more than %d characters", NAME_MAX_LEN);
        if (str_is_empty(meta->uid) || meta->uid.len > NAME_MAX_LEN)
                return fault_set(fault, OBJECT_E_MALFORMED,
                                 "pod " STR_FMT "/" STR_FMT ": its UID must have from 1 to %d characters",
                                 STR_ARG(meta->namespace_), STR_ARG(meta->name), NAME_MAX_LEN);
        return 0;
}

/* The evictor uses the priority of the API server, not the one in a request to the extender. */
static int keep_priority(View *v, ViewPod *known, Str object) {
        PodProfile profile;
        int r;

        if (!known || !known->request)
                return 0;
        r = pod_profile_decode(object, &v->arena, &profile, NULL);
        if (r < 0)
                return r;
        known->priority = r == 0 ? profile.priority : INT64_MIN;
        known->never_preempts = r != 0 || profile.never_preempts;
        return 0;
}

/* Keeps what preemption needs, of the pods that it concerns. */
static int keep_profile(View *v, const Pod *pod, ReflectorEvent event, Str object) {
        ViewPod *known = view_pod_find(v, pod->meta.uid);
        int r = event == REFLECTOR_DELETED ? 0 : keep_priority(v, known, object);

        if (r < 0)
                return r;
        if (event != REFLECTOR_DELETED)
                return profiles_set(&v->profiles, pod, object, known && known->grant,
                                    v->kinds[VIEW_PODS].generation, &v->arena);
        profiles_drop(&v->profiles, pod->meta.uid);
        return 0;
}

int view_pod_set_policy(View *v, const Pod *pod, Str object, ReflectorEvent event) {
        if (!v->policies->policies)
                return 0;
        if (event == REFLECTOR_DELETED) {
                policy_table_pod_gone(v->policies, pod->meta.uid);
                return 0;
        }
        return policy_table_pod(v->policies, pod, object, event == REFLECTOR_LISTED,
                                v->kinds[VIEW_PODS].generation, &v->arena);
}

static int pod_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        Pod pod;
        int r;

        r = pod_decode(object, &v->arena, &pod, fault);
        if (r == 0)
                r = check_identity(&pod.meta, fault);
        v->kinds[VIEW_PODS].incomplete |= r > 0;
        if (r == 0)
                r = view_pod_set(v, &pod, event);
        if (r == 0)
                r = view_pod_set_policy(v, &pod, object, event);
        if (r == 0)
                r = keep_profile(v, &pod, event, object);
        if (r == 0 && v->on_pod)
                v->on_pod(v->userdata, &pod, object, event);
        return r;
}

static size_t sweep_pods(View *v) {
        ViewPod *pod, *next;
        size_t dropped = 0;

        profiles_sweep(&v->profiles, v->kinds[VIEW_PODS].generation);
        HASH_ITER(hh, v->pods, pod, next) {
                /* The bind finds out what becomes of a pod that is being bound. */
                if (pod->generation == v->kinds[VIEW_PODS].generation || pod->bind)
                        continue;
                pod_free(v, pod);
                dropped++;
        }
        return dropped;
}

/* ---- nodes ---- */

static void forget_node(View *v, DirectoryNode *n) {
        if (v->on_node_gone)
                v->on_node_gone(v->userdata, directory_name(n));
        policy_table_node_gone(v->policies, n);
        ledger_node_remove(v->ledger, directory_name(n));
        directory_remove(v->directory, n);
}

static void report_mode(View *v, DirectoryNode *n, const Node *node) {
        ShareMode mode = share_mode_from_label(node->mode);
        bool unserved = mode == SHARE_MODE_MPS || mode == SHARE_MODE_MIG;

        if (unserved && n->mode_reported != mode && v->on_unserved_mode)
                v->on_unserved_mode(v->userdata, node, mode);
        n->mode_reported = (uint8_t) mode;
}

static void forget_node_reports(DirectoryNode *n) {
        n->mode_reported = SHARE_MODE_NONE;
        n->wrong_reported = 0;
}

void view_forget_reports(View *v) {
        for (size_t i = 0; i < directory_size(v->directory); i++)
                forget_node_reports(directory_at(v->directory, i));
        for (ViewPod *pod = v->pods; pod; pod = pod->hh.next) {
                pod->reported = 0;
                pod->told_unserved = false;
        }
}

/* A node with a mode in force has an agent of ours, which reports the wrong keys itself. */
static void report_wrong_node(View *v, DirectoryNode *n, const Node *node, const char *text) {
        uint64_t reported = text[0] != '\0' ? hash_of(text) : 0;

        if (n->wrong_reported == reported)
                return;
        n->wrong_reported = reported;
        if (reported == 0)
                return;
        log_warning("%s", text);
        if (v->on_wrong_node && str_is_empty(node->annotations.mode_in_force))
                v->on_wrong_node(v->userdata, node, text);
}

static int node_set(View *v, const Node *node, ReflectorEvent event) {
        size_t before = directory_size(v->directory),
               cards = ledger_node_n_healthy(ledger_node_find(v->ledger, node->meta.name));
        Fault wrong = FAULT_NULL;
        LedgerNode *ledger_node;
        DirectoryNode *n;
        int r, said;

        r = ledger_node_set(v->ledger, node, &wrong);
        ledger_node = ledger_node_find(v->ledger, node->meta.name);
        if (!ledger_node || (r < 0 && !directory_find(v->directory, node->meta.name)))
                return r < 0 ? r : -ENOMEM;
        said = r;
        r = directory_put(v->directory, node->meta.name, ledger_node, &n);
        if (r < 0) {
                ledger_node_remove(v->ledger, node->meta.name);
                return r;
        }
        n->generation = v->kinds[VIEW_NODES].generation;
        if (directory_size(v->directory) != before)
                count_difference(v, VIEW_NODES, event);
        report_mode(v, n, node);
        if (said < 0)
                return said;
        report_wrong_node(v, n, node, wrong.text);
        if (v->fences.on_room && ledger_node_n_healthy(ledger_node) > cards)
                v->fences.on_room(v->fences.room_userdata, node->meta.name);
        if (v->on_node)
                v->on_node(v->userdata, node);
        return 0;
}

static int node_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        DirectoryNode *n;
        Node node;
        int r;

        r = node_decode(object, &v->arena, &node, fault);
        if (r == 0 && (str_is_empty(node.meta.name) || node.meta.name.len > NAME_MAX_LEN))
                r = fault_set(fault, OBJECT_E_MALFORMED, "a node's name must have from 1 to %d characters",
                              NAME_MAX_LEN);
        v->kinds[VIEW_NODES].incomplete |= r > 0;
        if (r != 0)
                return r;
        node_defaults_apply(&v->defaults, &node);
        r = event == REFLECTOR_DELETED ? 0 : node_set(v, &node, event);
        n = directory_find(v->directory, node.meta.name);
        if (!n)
                return r;
        if (event != REFLECTOR_DELETED)
                return r < 0 ? r : policy_table_node(v->policies, n, object, &v->arena);
        forget_node(v, n);
        return 0;
}

static size_t sweep_nodes(View *v) {
        size_t dropped = 0;

        for (size_t i = directory_size(v->directory); i-- > 0;) {
                DirectoryNode *n = directory_at(v->directory, i);

                if (n->generation == v->kinds[VIEW_NODES].generation)
                        continue;
                forget_node(v, n);
                dropped++;
        }
        return dropped;
}

/* ---- what the reflectors tell ---- */

static int configmap_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        int r = fences_set(&v->fences, v->ledger, object, event == REFLECTOR_DELETED,
                           v->kinds[VIEW_CONFIGMAPS].generation, fault);

        return r == FENCE_E_NOT_OURS ? 0 : r;
}

static int budget_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        return budgets_set(&v->budgets, object, event == REFLECTOR_DELETED, v->kinds[VIEW_BUDGETS].generation,
                           fault);
}

/* Within a list the owner hears of the changes once, at its end. */
static void tell_policies(View *v, bool changed) {
        v->policies_changed |= changed;
        if (!v->policies_changed || v->kinds[VIEW_POLICIES].listing)
                return;
        v->policies_changed = false;
        if (v->on_policies)
                v->on_policies(v->userdata);
}

static int policy_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        PolicyGenerations at = {.policies = v->kinds[VIEW_POLICIES].generation,
                                .pods = v->kinds[VIEW_PODS].generation,
                                .nodes = v->kinds[VIEW_NODES].generation};
        bool changed = false;
        int r = policy_table_set(v->policies, object, event == REFLECTOR_DELETED, &at, &changed, fault);

        v->kinds[VIEW_POLICIES].incomplete |= r > 0;
        tell_policies(v, changed);
        return r;
}

static size_t sweep(View *v, ViewKind kind) {
        switch (kind) {
        case VIEW_POLICIES:
                return policy_table_sweep(v->policies, v->kinds[VIEW_POLICIES].generation,
                                          &v->policies_changed);
        case VIEW_PODS:
                return sweep_pods(v);
        case VIEW_NODES:
                return sweep_nodes(v);
        case VIEW_BUDGETS:
                return budgets_sweep(&v->budgets, v->kinds[VIEW_BUDGETS].generation);
        default:
                return fences_sweep(&v->fences, v->ledger, v->kinds[VIEW_CONFIGMAPS].generation);
        }
}

void view_list_begin(View *v, ViewKind kind) {
        v->kinds[kind].generation++;
        v->kinds[kind].listing = true;
        v->kinds[kind].incomplete = false;
        v->kinds[kind].differences = 0;
        if (v->on_list_begin)
                v->on_list_begin(v->userdata, kind);
}

int view_object(View *v, ViewKind kind, ReflectorEvent event, Str object) {
        static int (*const handlers[])(View *, ReflectorEvent, Str,
                                       Fault *) = {[VIEW_NODES] = node_object,
                                                   [VIEW_PODS] = pod_object,
                                                   [VIEW_CONFIGMAPS] = configmap_object,
                                                   [VIEW_BUDGETS] = budget_object,
                                                   [VIEW_POLICIES] = policy_object};
        Fault fault = FAULT_NULL;
        int r;

        arena_reset(&v->arena);
        r = handlers[kind](v, event, object, &fault);
        v->stats.objects[kind]++;
        if (r <= 0)
                return r;
        v->stats.malformed[kind]++;
        log_warning("an object of %s does not decode: %s", kind_names[kind], fault.text);
        return 0;
}

static void list_end_policies(View *v, ViewKind kind) {
        if (kind == VIEW_PODS)
                policy_table_pods_listed(v->policies, v->kinds[kind].generation, !v->kinds[kind].incomplete);
        else if (kind == VIEW_NODES)
                policy_table_nodes_listed(v->policies, v->kinds[kind].generation);
        else if (kind == VIEW_POLICIES) {
                v->policies_awaited = false;
                tell_policies(v, false);
        }
}

void view_list_end(View *v, ViewKind kind) {
        uint64_t differences = v->kinds[kind].differences;

        if (v->kinds[kind].incomplete)
                log_warning("nothing was dropped after the list of %s, because not all of it could be read",
                            kind_names[kind]);
        else
                differences += sweep(v, kind);
        if (v->kinds[kind].synced && differences > 0)
                log_warning("listed again %s, differences=%llu", kind_names[kind],
                            (unsigned long long) differences);
        v->stats.differences[kind] += differences;
        v->stats.lists[kind]++;
        v->kinds[kind].listing = false;
        v->kinds[kind].synced = true;
        list_end_policies(v, kind);
        if (v->on_list_end)
                v->on_list_end(v->userdata, kind, !v->kinds[kind].incomplete);
}

void view_trouble(View *v, ViewKind kind, const Fault *fault) {
        /* During a list this may be an object that was passed over for its size. Its name is not
         * known. */
        if (v->kinds[kind].listing)
                v->kinds[kind].incomplete = true;
        /* Without the right to list policies the scheduler goes on without them. */
        if (kind == VIEW_POLICIES)
                v->policies_awaited = false;
        log_warning("trouble with the view of %s: %s", kind_names[kind], fault->text);
}
