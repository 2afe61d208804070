/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The calls that Aliquot makes, as one line each at the caller. All are asynchronous; see kube/client.h for `done`. */

#include "kube/client.h"

/* GET without resourceVersion: a quorum read, the way to learn what became of an unknown outcome. */
int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret);

/* POST pods/NAME/binding. The API server merges metadata.annotations into the pod together with spec.nodeName, under
 * the UID precondition, in one write (registry/core/pod/storage, assignPod). annotations: a JSON object. */
typedef struct KubeBinding {
        Str namespace_, name, uid, node;
        Str annotations;
} KubeBinding;
int kube_bind(KubeClient *c, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret);

/* JSON merge patch (RFC 7386). resource_version, when not empty, becomes metadata.resourceVersion of the patch: 409
 * when the object has moved on. subresource: "" or "status". path: of the object. patch: a JSON object without
 * metadata.resourceVersion. */
int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret);

/* An Event of v1 about a pod or a node. Repeats of the same (object, reason, note) within ten minutes are counted and
 * patched instead of created again, as client-go's correlator does; at most 25 per object and then one per 5 min. */
typedef struct KubeEventRecorder KubeEventRecorder;
typedef struct KubeEvent {
        const char *kind; /* "Pod", "Node" */
        Str namespace_, name, uid;
        const char *type;   /* "Normal", "Warning" */
        const char *reason; /* CamelCase */
        const char *note;
} KubeEvent;
int kube_event_recorder_new(KubeClient *c, const char *component, KubeEventRecorder **ret);
KubeEventRecorder *kube_event_recorder_free(KubeEventRecorder *r);
void kube_event(KubeEventRecorder *r, const KubeEvent *event); /* best effort: lost events are counted */

DEFINE_CLEANUP(KubeEventRecorder *, kube_event_recorder_free)
