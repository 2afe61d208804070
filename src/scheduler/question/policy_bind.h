/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* bind for pods that a ResourcePolicy selects. The unit is counted once more, because filter's
 * answer may be old, and other pods may have gone there since. */

#include "scheduler/policy/policy_table.h"
#include "scheduler/question/feature_hooks.h"

enum { POLICY_E_REFUSED = 2 };

/* The hooks of a table, which outlives them. userdata of the functions below: the table. */
UnitHooks policy_bind_hooks(PolicyTable *t);

/* The pod is about to be bound to the node. Returns
 *     0                 it may: the members of its annotations, each with a comma before, are
 *                       appended to `annotations`, and its labels to `labels` as a JSON object.
 *                       Nothing for pods without a policy
 *     POLICY_E_REFUSED  the fault has the reason, which is filter's form (refusal_reason.h). Also
 *                       for each pod of a namespace while a policy of it is not ready, because the
 *                       table does not know then whether the policy selects the pod
 *     -ENOMEM
 * After 0 policy_bind_end() must be called once, when it is known whether the pod is bound. */
int policy_bind_begin(void *userdata, Str namespace_, Str uid, Str node, usec_t now, Buf *annotations,
                      Buf *labels, Fault *fault);

/* The bind of the pod has ended. Also called for pods without policy_bind_begin(), because their
 * policy came later: a bound one counts from now on. generation: number of the last list of pods
 * that was begun. */
void policy_bind_end(void *userdata, Str uid, Str node, bool bound, uint32_t generation);

/* Appends a merge patch with what a bound pod lacks; nothing if it lacks nothing. Labels are
 * missing if the API server (before 1.35) takes none from a Binding. The cost is missing or wrong
 * if the policy came or changed after the Binding. */
void policy_bind_patch(const PolicyPod *pod, Buf *out);
