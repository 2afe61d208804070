/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container of a placed pod finds in its environment: a path and a home, its slice as
 * CONTRACT section 5 tells it, and over both what the pod itself sets. */

#include "local/pod_slices.h"
#include "local/variables.h"

/* index: in spec.containers for CONTAINER_MAIN, else in spec.initContainers. *notes gets a line for
 * each variable that cannot be had here. Returns 0 or -ENOMEM. */
int pod_environment_make(const BoundPod *place, const json_t *container, ContainerKind kind, uint32_t index,
                         Variables *ret, Buf *notes);

/* The variables of CONTRACT section 5, and others of the same families, one NAME=VALUE per line in
 * CONTRACT's order. */
void pod_environment_print(const Variables *v, Buf *out);
