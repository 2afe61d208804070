/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/inspect/model.h"
#include "wire/pod.h"

/* What a pod holds on each card, summed by Kubernetes' formula. Memory is what the current
 * annotations say, as older tools show it, also where the limits differ; without them, and for
 * compute, it is what the ledger counts (share/pod_grant.h). A pod that asks for no gpu-mem holds
 * nothing. Fills uses, pending and difference of *ret; these live in `arena`, `scratch` is for the
 * way there. Returns 0 or -ENOMEM; the fault has words, with 0 returned, when an annotation was
 * passed over. */
int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault);
