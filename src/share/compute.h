/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What nodes and pods say about compute (docs/reference/reference.md), as numbers. Pure. */

#include "share/mode.h"
#include "slice/compute_policy.h"
#include "wire/node.h"
#include "wire/pod.h"

/* The settings of a node without annotations. */
CardCompute compute_configured(ComputePolicy policy);

/* Takes over the node's annotations. Where one is absent `configured` holds, or the value is
 * absent. Where one is malformed its value stays as it was, and the fault names all malformed ones.
 * A configured policy yields more than one of an annotation: preemptive always yields, native only
 * where no annotation names it.
 *
 * Returns 0, or COMPUTE_E_NODE when an annotation is malformed. */
enum { COMPUTE_E_NODE = 1 };
int compute_update(CardCompute *c, const NodeAnnotations *annotations, ComputePolicy configured,
                   Fault *fault);

/* The settings on a node of this mode. Where the mode gives out percentages, they are in force. */
CardCompute compute_for_mode(const CardCompute *node, ShareMode mode);

/* What a container's environment asks for; percent stays 0. A value that is not understood, or
 * comes from elsewhere (valueFrom), counts as absent. So does that of CGPU_DISABLE. Returns 0, or
 * COMPUTE_E_REQUEST with a fault that names all such values. */
enum { COMPUTE_E_REQUEST = 1 };
int compute_request(const PodContainer *c, ComputeRequest *ret, Fault *fault);
