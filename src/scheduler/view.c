/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view.h"

#include <errno.h>

#include "base/log.h"
#include "share/fault_join.h"
#include "share/pod_grant.h"
#include "wire/node.h"
#include "wire/pod.h"

static const char *const kind_names[] = {[VIEW_NODES] = "nodes",
                                         [VIEW_PODS] = "pods",
                                         [VIEW_CONFIGMAPS] = "configmaps",
                                         [VIEW_BUDGETS] = "poddisruptionbudgets"};

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
        if (r < 0)
                return r;
        *ret = TAKE_PTR(v);
        return 0;
}

static void pod_free(View *v, ViewPod *pod) {
        HASH_DELETE(hh, v->pods, pod);
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
        directory_free(v->directory);
        ledger_free(v->ledger);
        arena_done(&v->arena);
        free(v);
        return NULL;
}

bool view_in_sync(const View *v) {
        return v->kinds[VIEW_NODES].synced && v->kinds[VIEW_PODS].synced;
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
        if (!pod->grant && !pod->request && !pod->bind && pod->reported == 0)
                pod_free(v, pod);
}

int view_pod_set_request(ViewPod *pod, const Request *request) {
        size_t containers = request->n_containers * sizeof *request->containers;
        Request *copy = malloc(sizeof *copy + containers);

        if (!copy)
                return -ENOMEM;
        *copy = *request;
        copy->containers = (RequestContainer *) (copy + 1);
        memcpy(copy->containers, request->containers, containers);
        free(pod->request);
        pod->request = copy;
        return 0;
}

static void drop_request(ViewPod *pod) {
        free(pod->request);
        pod->request = NULL;
}

static void drop_grant(ViewPod *pod) {
        pod->grant = grant_free(pod->grant);
        pod->reserved = false;
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
            grant_pending_core(g) != spec->pending_core ||
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
        drop_request(pod);
        if (pod->grant && grant_says(pod->grant, spec)) {
                pod->reserved = false;
                return 0;
        }
        count_difference(v, VIEW_PODS, event);
        r = grant_new(v->ledger, spec, &grant);
        if (r < 0) {
                view_pod_drop_if_unused(v, pod);
                return r;
        }
        drop_grant(pod);
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
        drop_grant(pod);
        view_pod_drop_if_unused(v, pod);
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
                drop_grant(pod);
        }
        if (pod)
                pod->generation = generation;
        r = request_from_pod(object, &v->arena, &request, &refusal);
        if (r < 0)
                return r;
        if (r > 0 || object->meta.terminating) { /* nothing to bind */
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
        return view_pod_set_request(pod, &request);
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

static int pod_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        Pod pod;
        int r;

        r = pod_decode(object, &v->arena, &pod, fault);
        if (r == 0)
                r = check_identity(&pod.meta, fault);
        v->kinds[VIEW_PODS].incomplete |= r > 0;
        if (r == 0)
                r = view_pod_set(v, &pod, event);
        return r == 0 ? keep_profile(v, &pod, event, object) : r;
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
        ledger_node_remove(v->ledger, directory_name(n));
        directory_remove(v->directory, n);
}

static void report_mode(View *v, DirectoryNode *n, const Node *node) {
        ShareMode mode = share_mode_from_label(node->mode);
        bool unserved = mode == SHARE_MODE_MPS || mode == SHARE_MODE_TOPOLOGY || mode == SHARE_MODE_MIG;

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
        for (ViewPod *pod = v->pods; pod; pod = pod->hh.next)
                pod->reported = 0;
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
        size_t before = directory_size(v->directory);
        Fault wrong = FAULT_NULL;
        LedgerNode *ledger_node;
        DirectoryNode *n;
        int r, said;

        r = ledger_node_set(v->ledger, node, &wrong);
        ledger_node = ledger_node_find(v->ledger, node->meta.name);
        if (!ledger_node)
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
        if (event != REFLECTOR_DELETED)
                return node_set(v, &node, event);
        n = directory_find(v->directory, node.meta.name);
        if (n)
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

static size_t sweep(View *v, ViewKind kind) {
        switch (kind) {
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
}

int view_object(View *v, ViewKind kind, ReflectorEvent event, Str object) {
        static int (*const handlers[])(View *, ReflectorEvent, Str,
                                       Fault *) = {[VIEW_NODES] = node_object,
                                                   [VIEW_PODS] = pod_object,
                                                   [VIEW_CONFIGMAPS] = configmap_object,
                                                   [VIEW_BUDGETS] = budget_object};
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
        if (v->on_list_end)
                v->on_list_end(v->userdata, kind);
}

void view_trouble(View *v, ViewKind kind, const Fault *fault) {
        /* During a list this may be an object that was passed over for its size. Its name is not
         * known. */
        if (v->kinds[kind].listing)
                v->kinds[kind].incomplete = true;
        log_warning("trouble with the view of %s: %s", kind_names[kind], fault->text);
}
