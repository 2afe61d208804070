/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/pending.h"

#include <stdlib.h>

static void end_tries(Pending *p, PendingPod *pod) {
        for (size_t i = 0; pod->due > 0 && i < PENDING_TRIES_MAX; i++)
                if (p->tries[i] == pod)
                        p->tries[i] = NULL;
        buf_done(&pod->nodes);
        pod->due = 0;
        pod->attempt = 0;
}

void pending_forget(Pending *p, PendingPod *pod) {
        end_tries(p, pod);
        HASH_DEL(p->by_uid, pod);
        free(pod);
}

PendingPod *pending_find(const Pending *p, Str uid) {
        PendingPod *pod;

        HASH_FIND(hh, p->by_uid, uid.data, uid.len, pod);
        return pod;
}

/* The API server accepts no longer names, so such a pod cannot exist. */
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

        while (pod && pod->waits_for_plan)
                pod = pod->hh.next;
        pending_forget(p, pod ? pod : p->by_uid);
}

PendingPod *pending_note(Pending *p, Str namespace_, Str name, Str uid) {
        PendingPod *pod = pending_find(p, uid);

        if (pod)
                HASH_DEL(p->by_uid, pod); /* is added again at the young end */
        else
                pod = pod_new(namespace_, name, uid);
        if (!pod)
                return NULL;
        if (HASH_COUNT(p->by_uid) >= PENDING_MAX)
                forget_oldest(p);
        HASH_ADD_KEYPTR(hh, p->by_uid, pod->uid.data, pod->uid.len, pod);
        if (!hash_added(pod, hh)) {
                end_tries(p, pod);
                free(pod);
                return NULL;
        }
        pod->refused = true;
        return pod;
}

/* ---- for the evictor ---- */

static bool rests_now(const PendingPod *pod) {
        return pod->nodes.len == 0;
}

void pending_rest(Pending *p, Str uid) {
        PendingPod *pod = pending_find(p, uid);

        if (pod)
                buf_clear(&pod->nodes);
}

void pending_clear_tries(Pending *p) {
        for (size_t i = 0; i < PENDING_TRIES_MAX; i++)
                if (p->tries[i])
                        end_tries(p, p->tries[i]);
}

bool pending_any(const Pending *p) {
        for (size_t i = 0; i < PENDING_TRIES_MAX; i++)
                if (p->tries[i] && !rests_now(p->tries[i]))
                        return true;
        return false;
}

static bool gives_way_before(const PendingPod *a, const PendingPod *b) {
        return rests_now(a) != rests_now(b) ? rests_now(a) : a->priority < b->priority;
}

/* A place in `tries`: a free one, else that of a pod that rests, else that of the lowest priority
 * if it is below this one. NULL: none. */
static PendingPod **place_for(Pending *p, int64_t priority) {
        PendingPod **lowest = &p->tries[0];

        for (size_t i = 0; i < PENDING_TRIES_MAX; i++) {
                if (!p->tries[i])
                        return &p->tries[i];
                if (gives_way_before(p->tries[i], *lowest))
                        lowest = &p->tries[i];
        }
        if (!rests_now(*lowest) && (*lowest)->priority >= priority)
                return NULL;
        end_tries(p, *lowest);
        return lowest;
}

static void note_nodes(Pending *p, PendingPod *pod, const FilterResult *result, int64_t priority,
                       usec_t now) {
        PendingPod **place = pod->due > 0 ? NULL : place_for(p, priority);

        if (place)
                *place = pod;
        else if (pod->due == 0)
                return;
        if (rests_now(pod) && pod->due < now + PENDING_DELAY)
                pod->due = now + PENDING_DELAY;
        pod->priority = priority;
        buf_clear(&pod->nodes);
        for (size_t i = 0; i < result->n_for_cards; i++)
                buf_appendf(&pod->nodes, STR_FMT "\n", STR_ARG(result->for_cards[i]));
        if (buf_result(&pod->nodes) < 0)
                end_tries(p, pod);
        else
                p->on_news(p->userdata);
}

static bool goes_before(const PendingPod *a, const PendingPod *b) {
        return a->priority != b->priority ? a->priority > b->priority : a->due < b->due;
}

PendingPod *pending_next(Pending *p, usec_t now, usec_t since) {
        PendingPod *next = NULL;

        for (size_t i = 0; i < PENDING_TRIES_MAX; i++) {
                PendingPod *pod = p->tries[i];

                if (!pod)
                        continue;
                if (pod->attempt == 0 && pod->seen + PENDING_STALE <= now)
                        end_tries(p, pod);
                else if (pod->seen + PENDING_FRESH <= now && pod->seen <= since)
                        buf_clear(&pod->nodes);
                if (!rests_now(pod) && pod->due <= now && (!next || goes_before(pod, next)))
                        next = pod;
        }
        return next;
}

/* ---- filter ---- */

/* Whether the evictor may help the pod: some nodes refuse it for their cards alone, and it may
 * preempt. */
static bool may_be_tried(const View *v, const FilterResult *result) {
        const ViewPod *known = result->n_for_cards > 0 ? view_pod_find(v, result->uid) : NULL;

        return known && known->request && known->priority != INT64_MIN && !known->never_preempts;
}

PendingPod *pending_filtered(Pending *p, const View *v, const FilterResult *result, usec_t now) {
        bool refused = result->request && !result->fits;
        PendingPod *pod = refused ? pending_note(p, result->namespace_, result->name, result->uid)
                                  : pending_find(p, result->uid);

        if (!pod)
                return NULL;
        pod->seen = now;
        pod->lost_to_plan = result->lost_to_plan;
        if (refused && p->on_news && may_be_tried(v, result))
                note_nodes(p, pod, result, view_pod_priority(v, pod->uid), now);
        else
                buf_clear(&pod->nodes);
        if (refused)
                return pod;
        pod->refused = pod->waits_for_plan = false;
        pod->woken = 0;
        return pod;
}

static bool may_tell(Pending *p, usec_t now) {
        if (p->n_told == 0 || now - p->minute >= 60 * USEC_PER_SEC) {
                p->minute = now;
                p->n_told = 0;
        }
        return p->n_told++ < PENDING_EVENTS_PER_MINUTE;
}

/* Whether the watch has it as a pod with a share that is not bound. */
static bool is_known(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        return pod && pod->request;
}

void pending_tell(Pending *p, PendingPod *pod, KubeEventRecorder *recorder, const View *v,
                  const FilterResult *result, usec_t now) {
        _cleanup_buf_ Buf note = BUF_NULL;
        uint64_t hash;

        if (result->fits || result->nearest.n == 0 || !is_known(v, pod->uid) ||
            (pod->told != 0 && now - pod->told_at < PENDING_EVENT_REST))
                return;
        nearest_format(&result->nearest, result->request, pod->namespace_, pod->name, &note);
        hash = str_hash64(buf_str(&note), 0) | 1; /* 0 stands for no Event */
        if (buf_result(&note) < 0 || hash == pod->told || !may_tell(p, now))
                return;
        pod->told = hash;
        pod->told_at = now;
        kube_event(recorder, &(KubeEvent){.kind = "Pod",
                                          .namespace_ = pod->namespace_,
                                          .name = pod->name,
                                          .uid = pod->uid,
                                          .type = "Normal",
                                          .reason = "GPUNearestCards",
                                          .note = note.data,
                                          .replaces = true});
}

/* ---- the watch ---- */

void pending_pod(Pending *p, const View *v, const Pod *object, ReflectorEvent event) {
        PendingPod *pod = pending_find(p, object->meta.uid);
        bool waits =
                event != REFLECTOR_DELETED && str_is_empty(object->node_name) && !pod_is_terminal(object);

        if (pod && !(waits && (pod->waits_for_plan || is_known(v, pod->uid))))
                pending_forget(p, pod);
}

void pending_listed(Pending *p, const View *v) {
        PendingPod *pod, *next;

        HASH_ITER(hh, p->by_uid, pod, next)
        if (!pod->waits_for_plan && !is_known(v, pod->uid))
                pending_forget(p, pod);
}

void pending_done(Pending *p) {
        while (p->by_uid)
                pending_forget(p, p->by_uid);
}
