/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One scheduling cycle as kube-scheduler runs it with an extender: built-in predicates on every
 * node, then the extender's filter and prioritize for pods that want its resources, then bind,
 * which the extender does for these and the scheduler itself for others. The extender is spoken to
 * over HTTP, as in a real cluster. */

#include "base/buf.h"
#include "kube/client.h"
#include "local/tree.h"

typedef struct Cycle Cycle;

enum { CYCLE_E_REFUSED = 1 };

/* extender: a client for its address. nodes: Node objects in name order. Both outlive the cycle. */
int cycle_new(KubeClient *api, KubeClient *extender, const json_t *nodes, Cycle **ret);
Cycle *cycle_free(Cycle *c);

/* A pod that has a node already takes its part of what the predicates count. Returns 0 or
 * -ENOMEM. */
int cycle_charge(Cycle *c, const json_t *pod);

/* Finds a node and binds the pod to it. Returns 0, CYCLE_E_REFUSED with the reason for people in
 * *reason ("0/3 nodes are available: ..."), or negative errno with a fault. */
int cycle_schedule(Cycle *c, const json_t *pod, Buf *reason, Fault *fault);

DEFINE_CLEANUP(Cycle *, cycle_free)
