/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node's side of a pod's life, as kubelet and node agent play it: a pod that was bound is given its slices
 * (`assigned`), and runs. A pod that came with a node of its own choice, past the scheduler, is placed by the node itself
 * when a card has room. */

#include "base/buf.h"
#include "kube/client.h"

enum { AGENT_E_REFUSED = 1 };

/* Admits one pod that has a node. Pods that run already, and those that have ended, are left as they are. Returns 0,
 * AGENT_E_REFUSED with a sentence in *reason (the pod is then Failed, as after an admission error), or negative errno
 * with a fault. */
int agent_admit(KubeClient *api, const char *namespace_, const char *name, Buf *reason, Fault *fault);
