/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The API calls that Aliquot makes, one function each. All are asynchronous; see kube/client.h for
 * `done`. Names are escaped here, so a name with a "/" cannot change the path. Events are in
 * kube/event.h. */

#include "kube/client.h"
#include "kube/event.h"

/* GET without resourceVersion: a quorum read, which shows whether a call that ended as KUBE_UNKNOWN
 * was carried out. */
int kube_get_pod(KubeClient *c, Str namespace_, Str name, KubeDone done, void *userdata, KubeCall **ret);

/* POST pods/NAME/binding. The API server merges metadata.annotations into the pod together with
 * spec.nodeName, under the UID precondition, in one write (registry/core/pod/storage, assignPod).
 * annotations: a JSON object. 409: the pod has another UID or is bound already, perhaps by an
 * earlier attempt whose answer was lost. */
typedef struct KubeBinding {
        Str namespace_, name, uid, node;
        Str annotations;
        Str labels; /* empty, or a JSON object. Merged from 1.35 on; older servers drop them */
} KubeBinding;
int kube_bind(KubeClient *c, const KubeBinding *b, KubeDone done, void *userdata, KubeCall **ret);

/* POST pods/NAME/eviction (policy/v1), for the pod of this UID alone. The answers
 * (registry/core/pod/storage/eviction.go):
 *     201  the pod is being deleted, unless the body is a Status with a code of 400 or more
 *          (a pod in several PodDisruptionBudgets: 500)
 *     404  the pod is gone
 *     409  another pod has its name
 *     429  a PodDisruptionBudget allows no more disruption now */
int kube_evict(KubeClient *c, Str namespace_, Str name, Str uid, KubeDone done, void *userdata,
               KubeCall **ret);

/* JSON merge patch (RFC 7386). path: of the object. subresource: "" or "status". patch: a JSON
 * object, else -EINVAL. resource_version, when not empty, becomes metadata.resourceVersion of the
 * patch; 409: the object has changed since. */
int kube_merge_patch(KubeClient *c, const char *path, const char *subresource, Str patch,
                     Str resource_version, KubeDone done, void *userdata, KubeCall **ret);
