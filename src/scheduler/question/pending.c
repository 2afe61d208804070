/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/pending.h"

#include <stdlib.h>

void pending_forget(Pending *p, PendingPod *pod) {
        HASH_DEL(p->by_uid, pod);
        free(pod);
}

PendingPod *pending_find(const Pending *p, Str uid) {
        PendingPod *pod;

        HASH_FIND(hh, p->by_uid, uid.data, uid.len, pod);
        return pod;
}

/* No API server serves a pod with other texts, so nothing can be patched. */
static bool is_text(Str s) {
        return s.len > 0 && s.len <= PENDING_TEXT_MAX;
}

static PendingPod *pod_new(Str namespace_, Str name, Str uid) {
        PendingPod *pod = NULL;
        char *at;

        if (is_text(namespace_) && is_text(name) && is_text(uid))
                pod = calloc(1, sizeof *pod + namespace_.len + name.len + uid.len);
        if (!pod)
                return NULL;
        at = pod->texts;
        pod->namespace_ = str_put(&at, namespace_);
        pod->name = str_put(&at, name);
        pod->uid = str_put(&at, uid);
        return pod;
}

static void forget_oldest(Pending *p) {
        PendingPod *pod = p->by_uid;

        while (pod && pod->waits_for_gang)
                pod = pod->hh.next;
        pending_forget(p, pod ? pod : p->by_uid);
}

PendingPod *pending_note(Pending *p, Str namespace_, Str name, Str uid) {
        PendingPod *pod = pending_find(p, uid);

        if (pod)
                HASH_DEL(p->by_uid, pod); /* goes to the young end */
        else
                pod = pod_new(namespace_, name, uid);
        if (!pod)
                return NULL;
        if (HASH_COUNT(p->by_uid) >= PENDING_MAX)
                forget_oldest(p);
        HASH_ADD_KEYPTR(hh, p->by_uid, pod->uid.data, pod->uid.len, pod);
        if (!hash_added(pod, hh)) {
                free(pod);
                return NULL;
        }
        pod->refused = true;
        return pod;
}

PendingPod *pending_filtered(Pending *p, const FilterResult *result) {
        bool refused = result->request && !result->fits;
        PendingPod *pod = refused ? pending_note(p, result->namespace_, result->name, result->uid)
                                  : pending_find(p, result->uid);

        if (!pod)
                return NULL;
        pod->lost_to_plan = result->lost_to_plan;
        if (refused)
                return pod;
        pod->refused = pod->waits_for_gang = false;
        pod->woken = 0;
        return pod;
}

bool pending_is_known(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->request;
}

void pending_pod(Pending *p, const View *v, const Pod *object, ReflectorEvent event) {
        PendingPod *pod = pending_find(p, object->meta.uid);
        bool waits =
                event != REFLECTOR_DELETED && str_is_empty(object->node_name) && !pod_is_terminal(object);

        if (pod && !(waits && (pod->waits_for_gang || pending_is_known(v, pod->uid))))
                pending_forget(p, pod);
}

void pending_listed(Pending *p, const View *v) {
        PendingPod *pod, *next;

        HASH_ITER(hh, p->by_uid, pod, next)
        if (!pod->waits_for_gang && !pending_is_known(v, pod->uid))
                pending_forget(p, pod);
}

void pending_done(Pending *p) {
        while (p->by_uid)
                pending_forget(p, p->by_uid);
}
