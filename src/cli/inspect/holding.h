/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/arena.h"
#include "base/fault.h"
#include "cli/inspect/report_rows.h"
#include "share/grant.h"
#include "wire/pod.h"

/* What a pod holds on each card, summed by Kubernetes' formula: what the ledger counts, by its
 * limits (share/pod_grant.h). A pod without gpu-mem holds nothing. Beside it stands the size in
 * force of a resized pod (share/resize_status.h): of its main containers and sidecars, because its
 * init containers have ended.
 *
 * Sets uses, pending, resized and difference of *ret; they live in `arena`. `scratch` is for
 * temporary memory. Returns 0 or -ENOMEM. With 0, the fault is not empty when an annotation was
 * ignored. */
int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault);

/* Like holding_from_pod(), for slices that processes of a deleted pod hold (share/held.h). */
int holding_from_held(const GrantSpec *spec, Arena *scratch, Arena *arena, InspectPod *ret);
