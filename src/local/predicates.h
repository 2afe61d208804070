/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What kube-scheduler asks of a node before it asks an extender: preset node, schedulability,
 * taints, node selector and required node affinity, and the resources that are not Aliquot's. The
 * words of each "no" are kube-scheduler's, because people search for them. Pod affinity and
 * topology spread are not judged here. */

#include "base/buf.h"
#include "local/tree.h"

/* May the pod go to this node? false: *reason gets the words. used: what pods on the node ask for
 * already, as made by predicates_charge(). */
bool predicates_pass(const json_t *pod, const json_t *node, const json_t *used, Buf *reason);

/* Adds what the pod asks for to the node's sums: an object of resource -> thousandths. Returns 0 or
 * -ENOMEM. */
int predicates_charge(json_t *used, const json_t *pod);

/* Does a container of the pod name a resource of ours, in limits or requests? It is then the
 * extender's to judge, whatever the amount is: so does kube-scheduler with managedResources. */
bool predicates_is_managed(const json_t *pod);
