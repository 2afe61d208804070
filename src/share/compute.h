/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The settings of nodes and pods about compute (docs/reference/reference.md), decoded. Pure. */

#include "share/mode.h"
#include "slice/compute_policy.h"
#include "wire/node.h"
#include "wire/pod.h"

/* The settings of a node without annotations. */
CardCompute compute_configured(ComputePolicy policy);

/* Takes over the node's annotations. An absent policy becomes `configured`, another absent value 0.
 * A malformed annotation leaves its value unchanged, and the fault names all malformed ones. A
 * policy that is configured yields more often than one of an annotation: preemptive yields always,
 * native only if no annotation names it.
 *
 * Returns 0, or COMPUTE_E_NODE when an annotation is malformed. */
enum { COMPUTE_E_NODE = 1 };
int compute_update(CardCompute *c, const NodeAnnotations *annotations, ComputePolicy configured,
                   Fault *fault);

/* The settings that hold on a node in this mode: a mode with percentages of compute enforces
 * them. */
CardCompute compute_for_mode(const CardCompute *node, ShareMode mode);

/* What a container's environment asks for; ret->percent stays 0. A value that is malformed or comes
 * from elsewhere (valueFrom) counts as absent; so does CGPU_DISABLE. Returns 0, or
 * COMPUTE_E_REQUEST with a fault that names all such values. */
enum { COMPUTE_E_REQUEST = 1 };
int compute_request(const PodContainer *c, ComputeRequest *ret, Fault *fault);
