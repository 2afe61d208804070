/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/view_pod.h"

#include <errno.h>

#include "scheduler/view/view-internal.h"

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

void view_pod_drop_cpu(ViewPod *pod) {
        if (pod->cpu_node)
                ledger_node_subtract_cpu(TAKE_PTR(pod->cpu_node), pod->cpu);
}

void view_pod_drop_request(ViewPod *pod) {
        free(pod->request);
        pod->request = NULL;
        pod->asks_nothing = false;
}

void view_pod_drop_grant(View *v, ViewPod *pod) {
        pod->grant = grant_free(pod->grant);
        pod->reserved = false;
        view_pod_settle(v, pod);
}

void view_pod_free(View *v, ViewPod *pod) {
        view_pod_settle(v, pod);
        HASH_DELETE(hh, v->pods, pod);
        view_pod_drop_cpu(pod);
        grant_free(pod->grant);
        free(pod->request);
        free(pod);
}

void view_pod_drop_if_unused(View *v, ViewPod *pod) {
        if (!pod->grant && !pod->cpu_node && !pod->request && !pod->asks_nothing && !pod->bind &&
            pod->reported == 0)
                view_pod_free(v, pod);
}

int64_t view_pod_priority(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->request ? pod->priority : INT64_MIN;
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
