/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node's side of a pod's life, as kubelet and node agent play it: a pod that was bound is given
 * its slices (`assigned`), and runs. A pod that came with a node of its own choice, past the
 * scheduler, is placed by the node itself when a card has room. */

#include "base/buf.h"
#include "kube/client.h"

enum { NODE_ADMIT_E_REFUSED = 1 };

/* Admits one pod that has a node. One that was not `scheduled` may bring annotations of its own,
 * which are held against the node's cards and the pods that run there; without any that decode the
 * node places it. Pods that run already, and those that have ended, are left as they are. Returns
 * 0, NODE_ADMIT_E_REFUSED with a sentence in *reason (the pod is then Failed, as after an admission
 * error), or negative errno with a fault. */
int node_admit(KubeClient *api, const char *namespace_, const char *name, bool scheduled, Buf *reason,
               Fault *fault);
