/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers Allocate, which follows GetPreferredAllocation at once. It works from memory and waits
 * for nothing, because the kubelet's main loop stands still meanwhile. */

#include "node/allocate/node_context.h"
#include "node/allocate/pending_admission.h"

typedef struct Allocator {
        const NodeContext *node;
        PendingAdmission *pending;
        bool with_cdi;
} Allocator;

enum { ALLOCATOR_E_UNKNOWN = 1 };
/* Whether this node offers these devices. 0, or ALLOCATOR_E_UNKNOWN with a fault that names the
 * first that it does not offer. */
int allocator_check(const Allocator *a, DeviceKind kind, const DeviceSet *set, Fault *fault);

/* Answers the call, and records which container was given what. Only the answer for memory has
 * environment, mounts and devices: if the answers for two resources had them, the kubelet would
 * take either. False when no container is known that was to get exactly these devices. */
bool allocator_answer(const Allocator *a, DeviceKind kind, const DeviceSet *set, RpcCall *call);
