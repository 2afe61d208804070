/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* GetAllocatableResources of PodResources v1 (Kubernetes 1.23): the healthy devices of the plugins
 * that the kubelet knows. It lists no device of a plugin that it has dropped. */

#include "base/fault.h"
#include "base/str.h"

#define ALLOCATABLE_METHOD "/v1.PodResourcesLister/GetAllocatableResources"

/* Counts the devices of one resource in the message. Returns 0, or ALLOCATABLE_E_MALFORMED with a
 * fault. */
enum { ALLOCATABLE_E_MALFORMED = 1 };
int allocatable_count(Str message, Str resource, size_t *ret, Fault *fault);
