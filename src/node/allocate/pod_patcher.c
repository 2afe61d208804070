/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/pod_patcher.h"

#include <errno.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "kube/writer.h"
#include "node/allocate/pod_keys.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/pod.h"

/* What is still to be written of one pod. Each try makes the patch anew from the roster, so that it
 * is never out of date. */
typedef struct PendingPatch {
        UT_hash_handle hh; /* by uid */
        PodPatcher *patcher;
        Writer writer;
        bool place, assigned; /* the placement, or `assigned`, is to be written */
        bool due;             /* the last patch has not all of it, or was refused */
        char uid[];
} PendingPatch;

struct PodPatcher {
        KubeClient *client;
        Roster *roster;
        PendingPatch *patches;
};

static void patch_free(PendingPatch *patch) {
        HASH_DELETE(hh, patch->patcher->patches, patch);
        writer_done(&patch->writer);
        free(patch);
}

int pod_patcher_new(KubeClient *client, Roster *roster, PodPatcher **ret) {
        PodPatcher *p = calloc(1, sizeof *p);

        if (!p)
                return -ENOMEM;
        *p = (PodPatcher){.client = client, .roster = roster};
        *ret = p;
        return 0;
}

PodPatcher *pod_patcher_free(PodPatcher *p) {
        if (!p)
                return NULL;
        while (p->patches)
                patch_free(p->patches);
        free(p);
        return NULL;
}

size_t pod_patcher_waiting(const PodPatcher *p) {
        return HASH_COUNT(p->patches);
}

/* ---- the patch ---- */

/* Whether the older annotation keys apply to the pod: memory on one card, neither whole cards nor
 * several. */
static bool has_older_form(const RosterPod *pod) {
        const Slice *slices;
        size_t n;

        slices = grant_slices(pod->grant, &n);
        for (size_t i = 1; i < n; i++)
                if (slices[i].card != slices[0].card)
                        return false;
        return !share_mode_has_whole(ledger_node_mode(grant_node(pod->grant)));
}

static void write_assigned(const RosterPod *pod, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, ANNOTATION_ASSIGNED, "true");
        if (has_older_form(pod))
                json_write_text(&w, ANNOTATION_OLD_ASSIGNED, "true");
        json_write_object_end(&w);
}

/* Removes the keys that the place does not need: a pod that this node places may carry any. */
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

static int write_patch(const PendingPatch *patch, RosterPod *pod, Buf *out) {
        _cleanup_buf_ Buf annotations = BUF_NULL;
        JsonWriter w;
        int r = 0;

        if (patch->place)
                r = write_place(patch->assigned, pod, &annotations);
        else
                write_assigned(pod, &annotations);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        /* the API server answers 409 if the name is another pod's by now */
        json_write_text(&w, "uid", pod->api_uid);
        json_write_raw(&w, "annotations", buf_str(&annotations));
        json_write_object_end(&w);
        json_write_object_end(&w);
        return r < 0 || annotations.broken ? -ENOMEM : buf_result(out);
}

static int reconcile_patch(void *userdata) {
        _cleanup_buf_ Buf text = BUF_NULL, path = BUF_NULL;
        PendingPatch *patch = userdata;
        RosterPod *pod = roster_find(patch->patcher->roster, str_from(patch->uid));
        int r;

        if (!patch->due || !pod || !pod->grant || !pod->placed) {
                patch_free(patch); /* all is written, or the pod holds nothing any more */
                return 0;
        }
        kube_pod_path(&path, str_from(pod->namespace_), str_from(pod->name));
        if (write_patch(patch, pod, &text) < 0 || buf_result(&path) < 0)
                return -ENOMEM;
        r = kube_merge_patch(patch->patcher->client, path.data, "", buf_str(&text), STR(""), writer_answer,
                             &patch->writer, &patch->writer.call);
        patch->due = r < 0;
        return r;
}

/* Keeps the resourceVersion of the object that answers the patch: an older object in the watch does
 * not show the patch yet. */
static void keep_version(const PendingPatch *patch, Str body) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RosterPod *pod = roster_find(patch->patcher->roster, str_from(patch->uid));
        Pod object;

        if (pod && pod_decode(body, &arena, &object, NULL) == 0)
                (void) str_to_u64(object.meta.resource_version, &pod->written); /* else it stays as it was */
}

static WriterNext on_answer(void *userdata, const KubeReply *reply, bool written) {
        PendingPatch *patch = userdata;

        if (written) {
                keep_version(patch, reply->body);
                return WRITER_RECONCILE;
        }
        /* 404: the pod is gone. 409 has two causes and may pass: another UID, which the watch will
         * show and which ends the patch, or other clients that write the pod at the same time. */
        if (reply->outcome == KUBE_DONE && (reply->status == 404 || reply->status == 422)) {
                log_info("annotations of pod uid=%s are not written: %s", patch->uid, reply->fault.text);
                patch->due = false;
                return WRITER_RECONCILE;
        }
        log_warning("annotations of pod uid=%s wait: %s", patch->uid, reply->fault.text);
        patch->due = true;
        return WRITER_PAUSE;
}

static const WriterRule rule = {200 * USEC_PER_MSEC, 30 * USEC_PER_SEC, reconcile_patch, on_answer};

static void queue_patch(PodPatcher *p, const RosterPod *pod, bool place, bool assigned) {
        size_t n = strlen(pod->uid);
        PendingPatch *patch;

        HASH_FIND(hh, p->patches, pod->uid, n, patch);
        if (!patch) {
                patch = calloc(1, sizeof *patch + n + 1);
                if (!patch) {
                        log_error("out of memory: annotations of pod uid=%s are not written", pod->uid);
                        return;
                }
                patch->patcher = p;
                patch->writer = (Writer){.rule = &rule, .client = p->client, .userdata = patch};
                memcpy(patch->uid, pod->uid, n + 1);
                HASH_ADD_KEYPTR(hh, p->patches, patch->uid, n, patch);
                if (!hash_added(patch, hh)) {
                        free(patch);
                        return;
                }
        }
        patch->due |= place || !patch->assigned;
        patch->place |= place;
        patch->assigned |= assigned;
        writer_poke(&patch->writer);
}

void pod_patcher_place(PodPatcher *p, const RosterPod *pod) {
        queue_patch(p, pod, true, false);
}

void pod_patcher_assign(PodPatcher *p, const RosterPod *pod) {
        if (!pod->assigned)
                queue_patch(p, pod, false, true);
}

void pod_patcher_restore(PodPatcher *p, const RosterPod *pod) {
        queue_patch(p, pod, true, true);
}

bool pod_patcher_is_pending(const PodPatcher *p, const RosterPod *pod) {
        PendingPatch *patch;

        HASH_FIND(hh, p->patches, pod->uid, strlen(pod->uid), patch);
        return patch != NULL;
}
