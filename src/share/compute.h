/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nodes and pods say about compute (CONTRACT sections 5, 8 and 13), as numbers. Pure. */

#include "share/mode.h"
#include "slice/compute_policy.h"
#include "wire/node.h"
#include "wire/pod.h"

/* Of a node whose annotations say nothing. */
CardCompute compute_configured(ComputePolicy policy);

/* The node's annotations as they are now; where one is not there `configured` holds, or nothing is
 * said. Of one that is malformed the value before stays, and the fault names all such:
 * COMPUTE_E_NODE. 0 when all are good. A policy that was configured yields more than one that an
 * annotation says: preemptive always does, native only where no annotation says it. */
enum { COMPUTE_E_NODE = 1 };
int compute_update(CardCompute *c, const NodeAnnotations *annotations, ComputePolicy configured,
                   Fault *fault);

/* The same on a node of this mode: where it gives out percentages they are held. */
CardCompute compute_for_mode(const CardCompute *node, ShareMode mode);

/* What a container's environment asks. Values that are not understood, or come from elsewhere
 * (valueFrom), are as if they were not there; percent stays 0; the fault names all such: COMPUTE_E_REQUEST. */
enum { COMPUTE_E_REQUEST = 1 };
int compute_request(const PodContainer *c, ComputeRequest *ret, Fault *fault);
