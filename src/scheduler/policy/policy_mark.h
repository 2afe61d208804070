/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is written to a pod that a unit takes. These are the podLabels and podAnnotations of the
 * unit, the deletion cost, and an annotation that names the policy and, where the cost is ours, the
 * cost:
 *
 *     aliquot.dev/resource-policy: NAME/-100
 *
 * The ReplicaSet controller removes the pods of the smallest cost first (pod-deletion-cost of
 * controller_utils.go): unit k costs -100 k. A cost that a pod had before is its user's, and is
 * left alone. */

#include "base/buf.h"
#include "scheduler/policy/policy_member.h"
#include "scheduler/policy/policy_spec.h"

/* What the annotations of a pod say. */
typedef struct PolicyMark {
        bool placed;             /* the annotation names the policy */
        bool has_cost, our_cost; /* there is a cost; and it is the one that was written with the name */
        int32_t cost;            /* ours */
} PolicyMark;

void policy_mark_read(const PolicySpec *spec, const PolicyMember *m, PolicyMark *ret);

/* Appends the annotations of a pod that goes to that unit, as members of a JSON object with a comma
 * before each. */
void policy_mark_annotations(const PolicySpec *spec, size_t unit, const PolicyMark *mark, Buf *out);

/* Appends the labels as a JSON object; nothing when there are none. */
void policy_mark_labels(const PolicySpec *spec, size_t unit, Buf *out);

/* A merge patch for a pod that is bound to that unit: a cost that changed, and the labels where
 * lacks_labels. Nothing when the pod is as it should be. */
void policy_mark_patch(const PolicySpec *spec, size_t unit, const PolicyMark *mark, bool lacks_labels,
                       Str uid, Buf *out);
