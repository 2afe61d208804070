/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One scheduling cycle, as kube-scheduler runs it with an extender. Built-in predicates run on
 * every node; then, for pods that want the extender's resources, its filter and prioritize. The
 * extender binds these pods, the scheduler itself the others. The extender is called over HTTP, as
 * in a real cluster. */

#include "base/buf.h"
#include "kube/client.h"
#include "local/tree.h"

typedef struct Cycle Cycle;

enum { CYCLE_E_REFUSED = 1 };

/* extender: a client with its address. nodes: Node objects in name order. Both must outlive the
 * cycle. all: the extender is also asked about pods without a GPU, as the profile for a cluster
 * with ResourcePolicies does. */
int cycle_new(KubeClient *api, KubeClient *extender, const json_t *nodes, bool all, Cycle **ret);
Cycle *cycle_free(Cycle *c);

/* Counts a pod that already has a node in the predicates' sums. Returns 0 or -ENOMEM. */
int cycle_charge(Cycle *c, const json_t *pod);

/* Finds a node and binds the pod to it. Returns 0, CYCLE_E_REFUSED with a reason for people in
 * *reason ("0/3 nodes are available: ..."), or negative errno with a fault. */
int cycle_schedule(Cycle *c, const json_t *pod, Buf *reason, Fault *fault);

DEFINE_CLEANUP(Cycle *, cycle_free)
