/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Admission of a pod on its node, as kubelet and node agent do it. A bound pod is given its slices
 * (`assigned`) and runs. A pod that names its node itself, and so passed by the scheduler, is
 * placed by the node if a card has room. */

#include "base/buf.h"
#include "kube/client.h"

enum { NODE_ADMIT_E_REFUSED = 1 };

/* Admits one pod that has a node. A pod that was not `scheduled` may bring annotations; they are
 * checked against the node's cards and the running pods. Without annotations that decode, the node
 * places it. Pods that run or have ended stay unchanged.
 *
 * Returns 0, NODE_ADMIT_E_REFUSED with a sentence in *reason (the pod is then Failed, as after an
 * admission error), or negative errno with a fault. */
int node_admit(KubeClient *api, const char *namespace_, const char *name, bool scheduled, Buf *reason,
               Fault *fault);
