/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is written into a pod that a unit takes: the unit's podLabels and podAnnotations, and the
 * deletion cost. Besides, an annotation with the name of the policy and, if we set the cost, the
 * cost:
 *
 *     aliquot.dev/resource-policy: NAME/-100
 *
 * The ReplicaSet controller removes pods of the smallest cost first (pod-deletion-cost of
 * controller_utils.go): unit k gets -100 k. A cost that the user has set is left alone. */

#include "base/buf.h"
#include "scheduler/policy/policy_member.h"
#include "scheduler/policy/policy_spec.h"

/* The mark of a policy in the annotations of a pod. */
typedef struct PolicyMark {
        bool placed; /* our annotation names this policy */
        /* has_cost: pod-deletion-cost is set; our_cost: to the cost in our annotation */
        bool has_cost, our_cost;
        int32_t cost; /* the value, if it is ours */
} PolicyMark;

void policy_mark_read(const PolicySpec *spec, const PolicyMember *m, PolicyMark *ret);

/* Appends the annotations of a pod that is bound to this unit, as members of a JSON object, each
 * with a comma before it. */
void policy_mark_annotations(const PolicySpec *spec, size_t unit, const PolicyMark *mark, Buf *out);

/* Appends the labels as a JSON object; nothing when there are none. */
void policy_mark_labels(const PolicySpec *spec, size_t unit, Buf *out);

/* Appends a merge patch for a pod that is bound to this unit: the cost, if it is missing or wrong,
 * and the labels if lacks_labels. Appends nothing when the pod needs no change. */
void policy_mark_patch(const PolicySpec *spec, size_t unit, const PolicyMark *mark, bool lacks_labels,
                       Str uid, Buf *out);
