/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keys of a pod that ask for something of which nothing is served. The scheduler says so in an
 * Event, and the webhook at submission. */

#include "wire/pod.h"

/* A sentence about the first such key; NULL: the pod has none. Static text. has_share: the pod asks
 * for a resource of ours. has_gangs: gangs are placed as wholes. */
const char *unserved_key_of(const Pod *pod, bool has_share, bool has_gangs);
