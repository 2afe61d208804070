/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/view.h"

#include <errno.h>

#include "base/log.h"
#include "scheduler/view/view-internal.h"

static const char *const kind_names[] = {[VIEW_NODES] = "nodes",
                                         [VIEW_PODS] = "pods",
                                         [VIEW_CONFIGMAPS] = "configmaps",
                                         [VIEW_BUDGETS] = "poddisruptionbudgets",
                                         [VIEW_POLICIES] = "resourcepolicies"};

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

View *view_free(View *v) {
        ViewPod *pod, *next;

        if (!v)
                return NULL;
        HASH_ITER(hh, v->pods, pod, next)
        view_pod_free(v, pod);
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

void view_count_difference(View *v, ViewKind kind, ReflectorEvent event) {
        if (event == REFLECTOR_LISTED && v->kinds[kind].synced)
                v->kinds[kind].differences++;
}

void view_report(const View *v, const char *kind, const ObjectMeta *about, const char *reason,
                 const char *note) {
        if (v->on_report)
                v->on_report(v->userdata, &(ViewReport){kind, about, reason, note});
}

bool view_is_news(uint64_t *told, const char *text) {
        uint64_t hash = text[0] != '\0' ? str_hash64(str_from(text), 0) | 1 : 0;

        if (*told == hash)
                return false;
        *told = hash;
        return hash != 0;
}

void view_forget_reports(View *v) {
        view_node_forget_reports(v);
        view_pod_forget_reports(v);
}

/* ---- the other objects ---- */

static int configmap_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        int r = fences_set(&v->fences, v->ledger, object, event == REFLECTOR_DELETED,
                           v->kinds[VIEW_CONFIGMAPS].generation, fault);

        return r == FENCE_E_NOT_OURS ? 0 : r;
}

static int budget_object(View *v, ReflectorEvent event, Str object, Fault *fault) {
        return budgets_set(&v->budgets, object, event == REFLECTOR_DELETED, v->kinds[VIEW_BUDGETS].generation,
                           fault);
}

/* Calls on_policies if policies have changed; during a list once, at its end. */
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

/* ---- what the reflectors tell ---- */

static size_t sweep_kind(View *v, ViewKind kind) {
        switch (kind) {
        case VIEW_POLICIES:
                return policy_table_sweep(v->policies, v->kinds[VIEW_POLICIES].generation,
                                          &v->policies_changed);
        case VIEW_PODS:
                return view_pod_sweep(v);
        case VIEW_NODES:
                return view_node_sweep(v);
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
                                       Fault *) = {[VIEW_NODES] = view_node_object,
                                                   [VIEW_PODS] = view_pod_object,
                                                   [VIEW_CONFIGMAPS] = configmap_object,
                                                   [VIEW_BUDGETS] = budget_object,
                                                   [VIEW_POLICIES] = policy_object};
        Fault fault = FAULT_NULL;
        int r;

        arena_reset(&v->arena);
        r = handlers[kind](v, event, object, &fault);
        v->stats.objects[kind]++;
        v->kinds[kind].incomplete |= r < 0; /* what is missing in the view for that is not gone */
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
                differences += sweep_kind(v, kind);
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

void view_passed_over(View *v, ViewKind kind) {
        v->kinds[kind].incomplete = true; /* the name of the object is not known */
}

void view_trouble(View *v, ViewKind kind, const Fault *fault) {
        /* Without the right to list policies the scheduler goes on without them. */
        if (kind == VIEW_POLICIES)
                v->policies_awaited = false;
        log_warning("trouble with the view of %s: %s", kind_names[kind], fault->text);
}
