/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What preemption needs to know of a pod besides its slices. Like every object it is a view
 * (wire/object.h). It is decoded apart from Pod, because preemption concerns few pods of a
 * cluster. */

#include "wire/object.h"

enum {
        POD_PROFILE_LABELS_MAX = 256,   /* with more labels, `labels_cut` is set */
        POD_PROFILE_RESOURCES_MAX = 64, /* with more resources, `requests_unknown` is set */
};

#define POD_PROFILE_NOT_STARTED INT64_MAX

typedef struct PodLabel {
        Str key, value;
} PodLabel;

/* What the pod requests of one resource, in thousandths of its unit, as kube-scheduler counts
 * (PodRequests of component-helpers/resource). Main containers and sidecars count by sum, other
 * init containers by maximum. spec.resources replaces both for the resources that it names, and
 * spec.overhead is added. */
typedef struct PodResource {
        Str name;
        int64_t milli;
} PodResource;

typedef struct PodProfile {
        int64_t priority; /* spec.priority; 0 when absent, as kube-scheduler takes it */
        /* status.startTime as YYYYMMDDhhmmss; POD_PROFILE_NOT_STARTED when absent. */
        int64_t start;
        bool never_preempts; /* preemptionPolicy: Never */
        /* A host port, a claim, or a volume that is not listed at pod_profile_decode(). */
        bool holds_more;
        /* The pod has affinity or anti-affinity to pods, or topology spread constraints. */
        bool affine;
        bool requests_unknown; /* a quantity cannot be read, or there are too many resources */
        bool labels_cut;
        Str nominated_node; /* status.nominatedNodeName */
        PodLabel *labels;
        size_t n_labels;
        PodResource *requests;
        size_t n_requests;
} PodProfile;

/* holds_more is false for volumes that no other pod can be waiting for: configMap, secret,
 * emptyDir, projected, downwardAPI, hostPath and image.
 *
 * Returns 0, OBJECT_E_MALFORMED with a fault that names the path (*ret untouched), or -ENOMEM. */
int pod_profile_decode(Str json, Arena *arena, PodProfile *ret, Fault *fault);
