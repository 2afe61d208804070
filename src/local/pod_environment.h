/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The environment of a container of a placed pod: PATH, HOME and HOSTNAME, the variables of its
 * slice (docs/reference/reference.md), and last the variables that the pod itself sets. */

#include "local/pod_slices.h"
#include "local/variables.h"

/* index: in spec.containers for CONTAINER_MAIN, else in spec.initContainers. *notes gets a line for
 * each variable that cannot be provided here. Returns 0 or -ENOMEM. */
int pod_environment_make(const BoundPod *place, const json_t *container, ContainerKind kind, uint32_t index,
                         Variables *ret, Buf *notes);

/* Prints the variables of a slice, and others of the same families, as NAME=VALUE lines in the
 * order of docs/reference/reference.md. */
void pod_environment_print(const Variables *v, Buf *out);
