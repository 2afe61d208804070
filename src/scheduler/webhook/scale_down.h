/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the cluster autoscaler from evicting pods that ask for our resources. It judges nodes by
 * cpu and memory (simulator/utilization/info.go), and by sums whether pods fit elsewhere, not by
 * cards. With the annotation it does not remove the pod's node. */

#include "scheduler/webhook/subject.h"

#define ANNOTATION_SAFE_TO_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"

typedef struct ScaleDownNeed {
        bool wanted;          /* the pod asks for our resources and has not the annotation */
        bool has_annotations; /* the pod has metadata.annotations */
} ScaleDownNeed;

/* json: the text of the new pod. Returns 0 or -ENOMEM. */
int scale_down_read(const Subject *s, Str json, Arena *arena, ScaleDownNeed *ret);

/* Appends the operation of a JSON patch that sets the annotation to "false". */
void scale_down_write(const ScaleDownNeed *need, Buf *out);
