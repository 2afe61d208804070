/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/view-internal.h"

#include <errno.h>

#include "base/log.h"
#include "scheduler/webhook/verdict.h"
#include "share/fault_join.h"
#include "share/pod_grant.h"
#include "share/unserved_key.h"
#include "wire/annotation.h"
#include "wire/pod.h"
#include "wire/topology_keys.h"

/* Annotations of a bound pod do not decode, or differ from its limits. */
#define REASON_DIFFERS "GPUAllocationDiffers"
#define REASON_KEY     "GPUKeyNotServed" /* a waiting pod has a key without effect */

/* ---- a bound pod ---- */

enum { COMPARED_SLICES_MAX = 32 };

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

/* Whether the grant is as the pod's object says. Most events of a pod concern its status and change
 * nothing. More than COMPARED_SLICES_MAX slices count as a change, which costs a new grant. */
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

/* Makes the grant of the pod's own object. The old grant is freed afterwards, so it stays when
 * memory is out. Returns 0 or -ENOMEM, or an error of grant_new(). */
static int pod_hold(View *v, const GrantSpec *spec, bool terminating, ReflectorEvent event) {
        ViewPod *pod = view_pod_ensure(v, spec->uid);
        Grant *grant;
        int r;

        if (!pod)
                return -ENOMEM;
        pod->bound_in = v->kinds[VIEW_PODS].generation;
        pod->terminating = terminating;
        if (pod->bound_at > 0)
                histogram_observe(&v->stats.lag, clock_monotonic_usec() - pod->bound_at);
        pod->bound_at = 0;
        view_pod_drop_request(pod);
        view_pod_drop_cpu(pod);
        if (pod->grant && grant_says(pod->grant, spec)) {
                pod->reserved = false;
                view_pod_settle(v, pod);
                return 0;
        }
        view_count_difference(v, VIEW_PODS, event);
        r = grant_new(v->ledger, spec, &grant);
        if (r < 0) {
                view_pod_drop_if_unused(v, pod);
                return r;
        }
        view_pod_drop_grant(v, pod);
        pod->grant = grant;
        return 0;
}

/* The pod is gone, or bound without anything to keep: gives back what its entry holds. */
static void pod_release(View *v, Str uid, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, uid);

        if (!pod)
                return;
        view_count_difference(v, VIEW_PODS, event);
        view_pod_drop_request(pod);
        view_pod_drop_grant(v, pod);
        view_pod_drop_cpu(pod);
        view_pod_drop_if_unused(v, pod);
}

/* The API server has the pod no more: only a bind that is under way keeps its entry. */
static void pod_set_gone(View *v, ViewPod *pod) {
        pod->gone = true;
        view_pod_drop_request(pod);
        view_pod_drop_grant(v, pod);
        view_pod_drop_cpu(pod);
        view_pod_drop_if_unused(v, pod);
}

/* Counts the cpu of a bound pod without a share on its node. Most of its events change nothing.
 * Returns 0 or -ENOMEM. */
static int pod_count_cpu(View *v, const Pod *object, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, object->meta.uid);
        uint32_t cpu = request_cpu_of_pod(object);

        if (pod && pod->cpu_node && pod->cpu == cpu &&
            str_eq(ledger_node_name(pod->cpu_node), object->node_name))
                return 0;
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

/* ---- a pod that waits ---- */

/* Whether the pod waits for a Binding by us. request: result of request_from_pod(). A pod without a
 * share does if it names our scheduler. */
static bool is_bindable(const Pod *object, int request) {
        if (object->meta.terminating)
                return false;
        return request == 0 ||
               (request == REQUEST_E_NONE && str_eq(object->scheduler_name, STR(VERDICT_SCHEDULER)));
}

/* Reports a key without effect, once for each pod. has_share: the pod asks for a resource of
 * ours. */
static void report_unserved(View *v, ViewPod *pod, const Pod *object, bool has_share) {
        const char *text = unserved_key_of(object, has_share, v->groups_pods);

        if (!text || pod->told_unserved)
                return;
        pod->told_unserved = true;
        view_report(v, "Pod", &object->meta, REASON_KEY, text);
}

/* Takes over a pod without nodeName. Its grant stays: nodeName never vanishes, so the object shows
 * the pod before it was bound. Only a list that began after the bind may contradict. Returns 0 or
 * -ENOMEM. */
static int pod_wait(View *v, const Pod *object, ReflectorEvent event) {
        ViewPod *pod = view_pod_find(v, object->meta.uid);
        uint32_t generation = v->kinds[VIEW_PODS].generation;
        Request request;
        Refusal refusal;
        int r;

        if (pod && pod->grant) {
                bool known_better = event == REFLECTOR_LISTED && !pod->bind && pod->bound_in != generation;

                if (!known_better)
                        return 0;
                view_count_difference(v, VIEW_PODS, event);
                view_pod_drop_grant(v, pod);
        }
        r = request_from_pod(object, &v->arena, &request, &refusal);
        if (r < 0)
                return r;
        if (!is_bindable(object, r)) {
                if (pod) {
                        view_pod_drop_request(pod);
                        view_pod_drop_if_unused(v, pod);
                }
                return 0;
        }
        if (!pod)
                pod = view_pod_ensure(v, object->meta.uid);
        if (!pod)
                return -ENOMEM;
        pod->carried = pod_system_keys(object);
        report_unserved(v, pod, object, r == 0);
        if (r == 0)
                return view_pod_set_request(pod, &request);
        pod->asks_nothing = true;
        return 0;
}

/* ---- any pod ---- */

/* Reports what is wrong with the pod's annotations; "": nothing. The entry is kept for that even if
 * it holds nothing else. Returns 0 or -ENOMEM. */
static int report_odd_pod(View *v, const Pod *object, const char *text) {
        ViewPod *pod =
                text[0] != '\0' ? view_pod_ensure(v, object->meta.uid) : view_pod_find(v, object->meta.uid);
        Fault note = FAULT_NULL;

        if (!pod)
                return text[0] == '\0' ? 0 : -ENOMEM;
        if (!view_is_news(&pod->reported, text))
                return 0;
        log_warning("pod=" STR_FMT "/" STR_FMT " %s", STR_ARG(object->meta.namespace_),
                    STR_ARG(object->meta.name), text);
        (void) fault_set(&note, 0, "%s; the limits count, and the annotations say only on which cards", text);
        view_report(v, "Pod", &object->meta, REASON_DIFFERS, note.text);
        return 0;
}

void view_pod_forget_reports(View *v) {
        for (ViewPod *pod = v->pods; pod; pod = pod->hh.next) {
                pod->reported = 0;
                pod->told_unserved = false;
        }
}

int view_pod_set(View *v, const Pod *pod, ReflectorEvent event) {
        Fault fault = FAULT_NULL, differs = FAULT_NULL;
        int r, compared, reported;
        ViewPod *known;
        GrantSpec spec;

        if (event == REFLECTOR_DELETED) {
                (void) report_odd_pod(v, pod, ""); /* removes the report, which needs no memory */
                known = view_pod_find(v, pod->meta.uid);
                if (known)
                        pod_set_gone(v, known);
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
                return pod_hold(v, &spec, pod->meta.terminating, event);
        if (str_is_empty(pod->node_name) && !pod_is_terminal(pod))
                return pod_wait(v, pod, event);
        if (ledger_order(v->ledger) == NODE_ORDER_FRAGMENTATION && !pod_is_terminal(pod))
                return pod_count_cpu(v, pod, event);
        pod_release(v, pod->meta.uid, event);
        return 0;
}

/* The API server creates no longer names, but its answers are not trusted. */
static int check_identity(const ObjectMeta *meta, Fault *fault) {
        if (meta->namespace_.len > VIEW_NAME_MAX || meta->name.len > VIEW_NAME_MAX)
                return fault_set(fault, OBJECT_E_MALFORMED,
                                 "a pod's name and namespace have more than %d characters", VIEW_NAME_MAX);
        if (str_is_empty(meta->uid) || meta->uid.len > VIEW_NAME_MAX)
                return fault_set(fault, OBJECT_E_MALFORMED,
                                 "pod " STR_FMT "/" STR_FMT ": its UID must have from 1 to %d characters",
                                 STR_ARG(meta->namespace_), STR_ARG(meta->name), VIEW_NAME_MAX);
        return 0;
}

/* Keeps the priority for the evictor: it comes from the API server, not from a request to the
 * extender. */
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

/* Keeps the profile of pods that preemption may concern. */
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

int view_pod_set_text(View *v, const Pod *pod, Str object, ReflectorEvent event) {
        if (!v->policies->policies)
                return 0;
        if (event == REFLECTOR_DELETED) {
                policy_table_pod_gone(v->policies, pod->meta.uid);
                return 0;
        }
        return policy_table_pod(v->policies, pod, object, event == REFLECTOR_LISTED,
                                v->kinds[VIEW_PODS].generation, &v->arena);
}

int view_pod_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        ViewPod *known;
        Pod pod;
        int r;

        r = pod_decode(object, &v->arena, &pod, fault);
        if (r == 0)
                r = check_identity(&pod.meta, fault);
        v->kinds[VIEW_PODS].incomplete |= r > 0;
        if (r == 0)
                r = view_pod_set(v, &pod, event);
        known = r == 0 ? view_pod_find(v, pod.meta.uid) : NULL;
        if (known)
                known->generation = v->kinds[VIEW_PODS].generation;
        if (r == 0)
                r = view_pod_set_text(v, &pod, object, event);
        if (r == 0)
                r = keep_profile(v, &pod, event, object);
        if (r == 0 && v->on_pod)
                v->on_pod(v->userdata, &pod, object, event);
        return r;
}

size_t view_pod_sweep(View *v) {
        ViewPod *pod, *next;
        size_t dropped = 0;

        profiles_sweep(&v->profiles, v->kinds[VIEW_PODS].generation);
        HASH_ITER(hh, v->pods, pod, next) {
                if (pod->generation == v->kinds[VIEW_PODS].generation)
                        continue;
                dropped++;
                if (pod->bind)
                        pod_set_gone(v, pod);
                else
                        view_pod_free(v, pod);
        }
        return dropped;
}
