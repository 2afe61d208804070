/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kubelet says it can give out: GetAllocatableResources of PodResources v1 (Kubernetes
 * 1.23). Healthy devices of plugins that it knows stand there; of one that it has dropped, none. */

#include "base/fault.h"
#include "base/str.h"

#define ALLOCATABLE_METHOD "/v1.PodResourcesLister/GetAllocatableResources"

/* How many devices of that resource; the answer is not kept. 0, or ALLOCATABLE_E_MALFORMED with a
 * fault. */
enum { ALLOCATABLE_E_MALFORMED = 1 };
int allocatable_count(Str message, Str resource, size_t *ret, Fault *fault);
