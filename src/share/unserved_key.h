/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of a pod that ask for something that is not served. The scheduler reports them in an Event,
 * the webhook in a warning. */

#include "wire/pod.h"

/* A sentence about the first such key, as static text; NULL: the pod has none. has_share: the pod
 * asks for a resource of ours. has_gangs: gangs are on. */
const char *unserved_key_of(const Pod *pod, bool has_share, bool has_gangs);
