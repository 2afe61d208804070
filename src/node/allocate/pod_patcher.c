/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pod_patcher.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "node/allocate/pod_keys.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/pod.h"

#define RETRY_BASE (200 * USEC_PER_MSEC)
#define RETRY_CAP  (30 * USEC_PER_SEC)

/* What is still to be said about one pod. Said anew from the roster at each try, so that it is
 * never out of date. */
typedef struct PendingPatch {
        UT_hash_handle hh; /* by uid */
        PodPatcher *pod_patcher;
        KubeCall *call;
        sd_event_source *retry;
        unsigned attempt;
        bool place, assigned; /* to be said */
        bool sent_place, sent_assigned;
        char uid[];
} PendingPatch;

struct PodPatcher {
        KubeClient *client;
        Roster *roster;
        PendingPatch *tales;
};

static void tale_free(PendingPatch *tale) {
        HASH_DELETE(hh, tale->pod_patcher->tales, tale);
        kube_call_free(tale->call);
        sd_event_source_disable_unref(tale->retry);
        free(tale);
}

int pod_patcher_new(KubeClient *client, Roster *roster, PodPatcher **ret) {
        PodPatcher *t = calloc(1, sizeof *t);

        if (!t)
                return -ENOMEM;
        *t = (PodPatcher){.client = client, .roster = roster};
        *ret = t;
        return 0;
}

PodPatcher *pod_patcher_free(PodPatcher *t) {
        PendingPatch *tale, *next;

        if (!t)
                return NULL;
        HASH_ITER(hh, t->tales, tale, next)
        tale_free(tale);
        free(t);
        return NULL;
}

size_t pod_patcher_waiting(const PodPatcher *t) {
        return HASH_COUNT(t->tales);
}

/* ---- the patch ---- */

static void write_assigned(const RosterPod *pod, Buf *out) {
        JsonWriter w;
        const Slice *slices;
        bool one_card = true;
        size_t n;

        slices = grant_slices(pod->grant, &n);
        for (size_t i = 1; i < n; i++)
                one_card = one_card && slices[i].card == slices[0].card;
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, ANNOTATION_ASSIGNED, "true");
        if (one_card)
                json_write_text(&w, ANNOTATION_OLD_ASSIGNED, "true");
        json_write_object_end(&w);
}

/* Keys that the place does not need are removed: a pod that this node places may carry any. */
static int write_place(bool assigned, RosterPod *pod, Buf *out) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodKeys keys;
        int r;

        if (pod->assume == 0)
                pod->assume = clock_realtime_nsec();
        r = pod_keys_make(pod, assigned, &arena, &keys);
        if (r == 0)
                pod_keys_write(&keys, out);
        return r;
}

static int write_patch(const PendingPatch *tale, RosterPod *pod, Buf *out) {
        _cleanup_buf_ Buf annotations = BUF_NULL;
        JsonWriter w;
        int r = 0;

        if (tale->place)
                r = write_place(tale->assigned, pod, &annotations);
        else
                write_assigned(pod, &annotations);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_text(&w, "uid", pod->api_uid); /* another one: 409 */
        json_write_raw(&w, "annotations", buf_str(&annotations));
        json_write_object_end(&w);
        json_write_object_end(&w);
        return r < 0 || annotations.broken ? -ENOMEM : buf_result(out);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata);
static void on_told(void *userdata, const KubeReply *reply);

static void retry_later(PendingPatch *tale, usec_t after) {
        sd_event *event = kube_client_event(tale->pod_patcher->client);

        sd_event_source_disable_unref(tale->retry);
        tale->retry = NULL;
        if (sd_event_add_time_relative(event, &tale->retry, CLOCK_MONOTONIC,
                                       1 + kube_backoff(tale->attempt++, RETRY_BASE, RETRY_CAP, after), 0,
                                       on_retry, tale) < 0)
                log_error("out of memory: annotations of pod uid=%s wait for its next change", tale->uid);
}

static void send_tale(PendingPatch *tale) {
        _cleanup_buf_ Buf patch = BUF_NULL, path = BUF_NULL;
        RosterPod *pod = roster_find(tale->pod_patcher->roster, str_from(tale->uid));

        if (!pod || !pod->grant || !pod->placed) {
                tale_free(tale); /* it holds nothing any more: there is nothing to say */
                return;
        }
        tale->sent_place = tale->place;
        tale->sent_assigned = tale->assigned;
        buf_append_str(&path, STR("/api/v1/namespaces/"));
        kube_url_escape(&path, str_from(pod->namespace_));
        buf_append_str(&path, STR("/pods/"));
        kube_url_escape(&path, str_from(pod->name));
        if (write_patch(tale, pod, &patch) < 0 || buf_result(&path) < 0 ||
            kube_merge_patch(tale->pod_patcher->client, path.data, "", buf_str(&patch), STR(""), on_told,
                             tale, &tale->call) < 0)
                retry_later(tale, 0);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PendingPatch *tale = userdata;

        tale->retry = sd_event_source_disable_unref(tale->retry);
        send_tale(tale);
        return 0;
}

/* The answer of a patch is the whole object: what the watch shows of an older one is not what was
 * written. */
static void keep_version(const PendingPatch *tale, Str body) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RosterPod *pod = roster_find(tale->pod_patcher->roster, str_from(tale->uid));
        Pod object;

        if (pod && pod_decode(body, &arena, &object, NULL) == 0)
                (void) str_to_u64(object.meta.resource_version, &pod->written); /* else it stays as it was */
}

static void on_told(void *userdata, const KubeReply *reply) {
        PendingPatch *tale = userdata;
        bool done = reply->outcome == KUBE_DONE && reply->status < 300;

        tale->call = NULL;
        if (done)
                keep_version(tale, reply->body);
        if (done && tale->place == tale->sent_place && tale->assigned == tale->sent_assigned) {
                tale_free(tale);
                return;
        }
        if (done) {
                tale->attempt = 0;
                send_tale(tale); /* more was to be said meanwhile */
                return;
        }
        /* 404: the pod is gone. Anything else may pass: 409 is said of another UID, which our watch
         * will tell, and the tale ends then; but also when others write the pod all the time. */
        if (reply->outcome == KUBE_DONE && (reply->status == 404 || reply->status == 422)) {
                log_info("annotations of pod uid=%s are not written: %s", tale->uid, reply->fault.text);
                tale_free(tale);
                return;
        }
        log_warning("annotations of pod uid=%s wait: %s", tale->uid, reply->fault.text);
        retry_later(tale, reply->retry_after);
}

static void tell(PodPatcher *t, const RosterPod *pod, bool place, bool assigned) {
        size_t n = strlen(pod->uid);
        PendingPatch *tale;

        HASH_FIND(hh, t->tales, pod->uid, n, tale);
        if (!tale) {
                tale = calloc(1, sizeof *tale + n + 1);
                if (!tale) {
                        log_error("out of memory: annotations of pod uid=%s are not written", pod->uid);
                        return;
                }
                tale->pod_patcher = t;
                memcpy(tale->uid, pod->uid, n + 1);
                HASH_ADD_KEYPTR(hh, t->tales, tale->uid, n, tale);
                if (!hash_added(tale, hh)) {
                        free(tale);
                        return;
                }
        }
        tale->place |= place;
        tale->assigned |= assigned;
        if (!tale->call && !tale->retry)
                send_tale(tale);
}

void pod_patcher_place(PodPatcher *t, const RosterPod *pod) {
        tell(t, pod, true, false);
}

void pod_patcher_assign(PodPatcher *t, const RosterPod *pod) {
        if (!pod->assigned)
                tell(t, pod, false, true);
}

void pod_patcher_restore(PodPatcher *t, const RosterPod *pod) {
        tell(t, pod, true, true);
}

bool pod_patcher_is_pending(const PodPatcher *t, const RosterPod *pod) {
        PendingPatch *tale;

        HASH_FIND(hh, t->tales, pod->uid, strlen(pod->uid), tale);
        return tale != NULL;
}
