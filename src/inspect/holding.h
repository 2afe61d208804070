/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "inspect/model.h"
#include "wire/object.h"

/* What a pod holds, by its own object (CONTRACT section 11): the current annotation when it decodes to
 * something, with its units even where they differ from the limits; else the older form, with the pod's
 * limits on its card; else everything is pending. Fills uses and pending of *ret; `uses` lives in `arena`,
 * `scratch` is for the way there.
 *
 * Init containers run one after another before the others, so that per card they count by maximum and the
 * others by sum; sidecars stay, and count for the init containers behind them too. This is Kubernetes'
 * formula for cpu.
 *
 * Returns 0 or -ENOMEM; the fault has words, with 0 returned, when an annotation was passed over. */
int holding_from_pod(const Pod *pod, Arena *scratch, Arena *arena, InspectPod *ret, Fault *fault);
