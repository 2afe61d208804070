/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/model.h"
#include "wire/object.h"

/* What a pod holds on each card, as the ledger reads it from the pod's own object (share/allocation.h), summed by
 * Kubernetes' formula. Fills uses and pending of *ret; `uses` lives in `arena`, `scratch` is for the way there. Returns 0
 * or -ENOMEM; the fault has words, with 0 returned, when an annotation was passed over. */
int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault);
