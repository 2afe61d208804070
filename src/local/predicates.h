/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The checks that kube-scheduler makes before it calls an extender: preset node, schedulability,
 * taints, node selector, required node affinity, and resources other than those that the extender
 * counts by card. Refusals use kube-scheduler's text, because people search for it. Pod affinity
 * and topology spread are not checked. */

#include "base/buf.h"
#include "local/tree.h"

/* Whether the pod may go to this node; if not, *reason gets the text. used: what pods on the node
 * request, from predicates_charge(). */
bool predicates_pass(const json_t *pod, const json_t *node, const json_t *used, Buf *reason);

/* Whether the node's labels and taints permit the pod, whatever else the node holds. */
bool predicates_suits(const json_t *pod, const json_t *node);

/* Adds the pod's requests to the node's sums: an object of resource -> thousandths. Returns 0 or
 * -ENOMEM. */
int predicates_charge(json_t *used, const json_t *pod);

/* Whether a container of the pod names one of our resources in limits or requests, with any amount.
 * The extender then decides, as with kube-scheduler's managedResources. */
bool predicates_is_managed(const json_t *pod);
